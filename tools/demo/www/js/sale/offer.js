/*
 * The public facts of an activity, and the phase it is in by the server's clock:
 * loading, lost, missing, not_started, running, closed, sold_out, ended.
 *
 * They are asked for rarely and never by everybody at once: half a minute apart,
 * with a random part, and once shortly before the start, which also sets the
 * clock; a quarter of a minute apart while the sale runs.
 */

const IDLE_MS = 30000;
const RUNNING_MS = 15000;
const MISSING_MS = 10000;
const BEFORE_MS = 8000;
const RETRY_MS = [500, 1000, 2000, 4000, 8000];
const LONGEST_MS = 60000;

/* a clock that may be so wrong is set again, a few times */
const UNSURE_MS = 100;
const AGAIN_MS = 700;
const AGAIN = 3;

const FACTS = 0;

const jitter = (ms) => ms * (0.75 + Math.random() / 2);

export class Offer {
  #api;
  #clock;
  #changed;
  #timer = 0;
  #failures = 0;
  #asking = false;
  #again = 0;

  facts = null;
  missing = false;
  askedAt = -Infinity;      /* when the facts were asked for, performance.now() */

  constructor(api, clock, changed) {
    this.#api = api;
    this.#clock = clock;
    this.#changed = changed;
  }

  get lost() {
    return this.#failures > 0;
  }

  get phase() {
    const { facts } = this;

    if (facts === null) {
      return this.missing ? 'missing' : this.lost ? 'lost' : 'loading';
    }
    const now = this.#clock.now();

    if (facts.state === 'ended' || now >= facts.end_ms) {
      return 'ended';
    }
    if (facts.state === 'closed') {
      return 'closed';
    }
    if (now < facts.start_ms) {
      return 'not_started';
    }
    return facts.sold_out ? 'sold_out' : 'running';
  }

  async refresh() {
    if (this.#asking) {
      return;
    }
    this.#asking = true;
    clearTimeout(this.#timer);

    const asked = performance.now();
    const answer = await this.#api.facts();

    this.#asking = false;
    if (answer.lost || (answer.code >= 50000 && answer.code < 60000)) {
      this.#failures += 1;
    } else {
      this.#failures = 0;
      this.askedAt = asked;
      this.missing = answer.code !== FACTS;
      this.facts = this.missing ? null : answer.data;
    }
    this.#timer = setTimeout(() => this.refresh(), this.#nextMs());
    this.#changed();
  }

  #nextMs() {
    if (this.lost) {
      return jitter(RETRY_MS[Math.min(this.#failures, RETRY_MS.length) - 1]);
    }
    if (this.missing) {
      return jitter(MISSING_MS);
    }
    switch (this.phase) {
      case 'not_started': {
        const left = this.facts.start_ms - this.#clock.now();

        if (this.#clock.errorMs > UNSURE_MS && this.#again < AGAIN) {
          this.#again += 1;
          return jitter(AGAIN_MS);
        }
        const before = left - jitter(BEFORE_MS);
        /* not again in the last seconds: then everybody is busy */
        return before > 0 ? Math.min(jitter(IDLE_MS), before) : left + jitter(RUNNING_MS);
      }
      case 'ended':
        return LONGEST_MS;
      default:
        return jitter(RUNNING_MS);
    }
  }
}
