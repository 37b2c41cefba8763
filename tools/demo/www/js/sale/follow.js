/*
 * Following a purchase to its result, by the best way that works here: pushed by
 * server-sent events, else a long poll, else polls when the server says: 3 x 500 ms,
 * then every 2 s, later under load.  30 s at most, whatever the way; then
 * { late: true }.
 */

const TOTAL_MS = 30000;
const SPEAK_MS = 3000;      /* an open stream says something at once */
const ERRORS = 2;           /* of a stream before another way is taken */
const WAIT_S = 25;
const HELD_MS = 1000;       /* an answer before that was not held */
const UNTOLD_MS = 2000;     /* until the next poll, when no server said so */

const QUEUEING = 0;
const SUCCESS = 1;
const FAILED = 2;
const NO_RECORD = 40006;
const UNAUTHORIZED = 40100;

const isFinal = (answer) => !answer.lost
  && [SUCCESS, FAILED, NO_RECORD, UNAUTHORIZED].includes(answer.code);

export class Follow {
  #api;
  #ticket;
  #news;
  #until = performance.now() + TOTAL_MS;
  #stop = new AbortController();
  #lost = false;
  #held = null;               /* the last answer to a long poll */

  /* news({ transport, lost }) is called whenever the way or the network changes */
  constructor(api, ticket, news) {
    this.#api = api;
    this.#ticket = ticket;
    this.#news = news;
  }

  /* nobody wants to know any more */
  stop() {
    this.#stop.abort();
  }

  /* a final answer, { late: true }, or null when stopped */
  async run() {
    for (const way of [this.#push, this.#hold, this.#poll]) {
      const answer = await way.call(this);

      if (this.#stop.signal.aborted) {
        return null;
      }
      if (answer !== null) {
        return answer;
      }
    }
    return { late: true };
  }

  get #leftMs() {
    return this.#until - performance.now();
  }

  /* a new way does not mean that the network is back */
  #tell(transport, lost = this.#lost) {
    this.#lost = lost;
    if (!this.#stop.signal.aborted) {
      this.#news({ transport, lost });
    }
  }

  /* null: this way is closed here */
  #push() {
    if (this.#ticket === null || typeof EventSource === 'undefined') {
      return null;
    }
    this.#tell('push');

    return new Promise((resolve) => {
      const source = new EventSource(this.#api.resultUrl(this.#ticket));
      let errors = 0;

      const end = (answer) => {
        clearTimeout(silence);
        clearTimeout(late);
        source.close();
        resolve(answer);
      };
      const silence = setTimeout(end, SPEAK_MS, null);
      const late = setTimeout(end, this.#leftMs, { late: true });

      source.addEventListener('result', (event) => {
        const answer = this.#api.read(event.data);

        clearTimeout(silence);
        this.#tell('push', false);
        if (isFinal(answer)) {
          end(answer);
        }
      });

      source.addEventListener('error', () => {
        errors += 1;
        if (source.readyState === EventSource.CLOSED || errors > ERRORS) {
          end(null);
        } else {
          this.#tell('push', true);
        }
      });

      this.#stop.signal.addEventListener('abort', () => end(null));
    });
  }

  async #hold() {
    this.#tell('hold');

    while (this.#leftMs > HELD_MS) {
      const asked = performance.now();
      const seconds = Math.min(WAIT_S, Math.ceil(this.#leftMs / 1000));
      const answer = await this.#api.result(this.#ticket, seconds);

      if (this.#stop.signal.aborted || isFinal(answer)) {
        return answer;
      }
      if (answer.code !== QUEUEING || performance.now() - asked < HELD_MS) {
        this.#held = answer;
        return null;
      }
    }
    return { late: true };
  }

  async #poll() {
    this.#tell('poll');
    await this.#rest(this.#held);

    while (this.#leftMs > 0) {
      const answer = await this.#api.result(this.#ticket);

      if (this.#stop.signal.aborted || isFinal(answer)) {
        return answer;
      }
      this.#tell('poll', answer.lost === true);
      await this.#rest(answer);
    }
    return null;
  }

  /* as long as the answer asks for */
  #rest(answer) {
    return this.#sleep(Math.max(answer?.data?.poll_after_ms ?? UNTOLD_MS, answer?.retryAfterMs ?? 0));
  }

  /* ends early when nobody wants to know, or when time is up */
  #sleep(ms) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, Math.min(ms, Math.max(0, this.#leftMs)));

      this.#stop.signal.addEventListener('abort', () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}
