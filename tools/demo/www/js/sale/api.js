/*
 * The HTTP interface of one activity.  Every call ends as an answer
 *
 *   { code, data, retryAfterMs }
 *
 * or, when there was none that could be understood, as { lost: true }: the
 * request may have arrived or not.
 */

const CALL_MS = 8000;

const LOST = Object.freeze({ lost: true });

function parse(text) {
  try {
    const body = JSON.parse(text);
    return Number.isInteger(body?.code) ? body : null;
  } catch {
    return null;
  }
}

export class Api {
  #base;
  #prefix;
  #activity;
  #clock;

  /* the token of the visitor, or null */
  token = null;

  constructor(prefix, activity, clock) {
    this.#prefix = prefix;
    this.#activity = encodeURIComponent(activity);
    this.#base = `${prefix}/${this.#activity}`;
    this.#clock = clock;
  }

  facts() {
    return this.#call(this.#base, { anonymous: true });
  }

  buy() {
    return this.#call(this.#base, { method: 'POST' });
  }

  /* with the ticket of the purchase, or with the visitor's token */
  result(ticket, waitSeconds = 0) {
    return this.#call(this.resultUrl(ticket, waitSeconds), {
      anonymous: ticket !== null,
      timeoutMs: CALL_MS + waitSeconds * 1000,
      held: waitSeconds > 0,
    });
  }

  resultUrl(ticket, waitSeconds = 0) {
    const query = new URLSearchParams();

    if (ticket !== null) {
      query.set('queue_token', ticket);
    }
    if (waitSeconds > 0) {
      query.set('wait', waitSeconds);
    }
    return `${this.#prefix}/result/${this.#activity}?${query}`;
  }

  /* what an event of the stream says */
  read(text, tripMs) {
    const body = parse(text);

    if (body === null) {
      return LOST;
    }
    this.#clock.learn(body.server_time_ms, tripMs);
    return { code: body.code, data: body.data, retryAfterMs: 0 };
  }

  async #call(url, { method = 'GET', anonymous = false, timeoutMs = CALL_MS, held = false } = {}) {
    const headers = {};
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(), timeoutMs);

    if (!anonymous && this.token !== null) {
      headers.Authorization = `Bearer ${this.token}`;
    }

    const sent = performance.now();

    try {
      const response = await fetch(url, {
        method, headers, cache: 'no-store', credentials: 'omit', signal: stop.signal,
      });
      const text = await response.text();
      /* an answer that was held back says nothing of the way */
      const answer = this.read(text, held ? undefined : performance.now() - sent);

      if (!answer.lost) {
        answer.retryAfterMs = 1000 * (parseInt(response.headers.get('Retry-After'), 10) || 0);
      }
      return answer;
    } catch {
      return LOST;
    } finally {
      clearTimeout(timer);
    }
  }
}
