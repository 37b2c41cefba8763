/*
 * The server's clock.  It runs on the monotonic clock of the browser, so neither
 * a wrong time of day here nor a change of it matters.
 *
 * An answer says what time it was when it was made: after the request left, and
 * before the answer arrived, or long before that when it lay in a cache.  So the
 * largest difference to the time of arrival is a lower bound, and the shortest
 * round trip says how much can be missing at most; half of that is assumed.  A
 * click at the start then arrives half a round trip after it, never before.
 */

const SAMPLES = 8;

export class ServerClock {
  #samples = [];

  /* the server's epoch milliseconds of an answer that has just arrived, and how
     long the round trip took, when that is known */
  learn(serverMs, tripMs = Infinity) {
    if (Number.isFinite(serverMs)) {
      this.#samples.push({ lead: serverMs - performance.now(), tripMs });
      this.#samples.splice(0, this.#samples.length - SAMPLES);
    }
  }

  /* how far off now() may be, milliseconds; Infinity while nothing is known */
  get errorMs() {
    return Math.min(Infinity, ...this.#samples.map(({ tripMs }) => tripMs)) / 2;
  }

  /* epoch milliseconds; NaN while nothing is known */
  now() {
    if (this.#samples.length === 0) {
      return NaN;
    }
    const lead = Math.max(...this.#samples.map((sample) => sample.lead));

    return performance.now() + lead + (Number.isFinite(this.errorMs) ? this.errorMs : 0);
  }
}
