/*
 * One visitor's purchase in one activity: a machine with one state at a time,
 *
 *   idle early sending queueing late success failed sold_out ended limited busy
 *   closed unsure offline not_taken no_record not_eligible login error
 *
 * A click sends one POST and nothing else can: buy() does nothing unless the
 * state allows it.  No answer is not a refusal: then the result is asked for.
 */

import { Follow } from './follow.js';
import { saveTicket, savedTicket } from './store.js';

/* how long to look for a purchase whose answer was lost */
const UNSURE_MS = [500, 1000, 2000];
const PAUSE_MS = 1000;

const REFUSALS = {
  40002: 'ended',
  40003: 'limited',
  40005: 'sold_out',
  40007: 'not_eligible',
  40100: 'login',
  50302: 'busy',
  50303: 'closed',
};

/* what ends by itself, when Retry-After is over */
const PAUSES = new Set(['limited', 'busy', 'closed']);

const MAY_BUY = new Set(['idle', 'not_taken', 'no_record', 'error', 'login']);
const MAY_CHECK = new Set(['late', 'offline']);

export class Purchase {
  #api;
  #activity;
  #user;
  #changed;
  #follow = null;
  #timer = 0;
  #over = false;

  state = { name: 'idle' };

  constructor(api, activity, user, changed) {
    this.#api = api;
    this.#activity = activity;
    this.#user = user;
    this.#changed = changed;
  }

  /* another visitor is here: nothing of this one is heard any more */
  end() {
    this.#over = true;
    this.#follow?.stop();
    clearTimeout(this.#timer);
  }

  /* after a reload: a purchase that was accepted is followed again */
  resume() {
    const ticket = savedTicket(this.#activity, this.#user);

    if (ticket !== null) {
      this.#track(ticket, true);
    }
  }

  async buy() {
    if (!MAY_BUY.has(this.state.name)) {
      return;
    }
    this.#enter('sending');
    const answer = await this.#api.buy();

    if (!this.#over) {
      this.#hear(answer);
    }
  }

  /* the visitor, or a network that came back, wants to know */
  check() {
    if (!MAY_CHECK.has(this.state.name)) {
      return;
    }
    if (this.state.name === 'late') {
      this.#track(this.state.ticket, this.state.repeat);
    } else {
      this.#find();
    }
  }

  /* the facts say that units are there again, or that the window is open */
  reopen() {
    if (this.state.name === 'sold_out' || this.state.name === 'early') {
      this.#enter('idle');
    }
  }

  #enter(name, detail = {}) {
    clearTimeout(this.#timer);
    this.state = { name, at: performance.now(), ...detail };
    this.#changed();
  }

  /* what a POST was told */
  #hear(answer) {
    if (answer.lost || answer.code === 50301) {
      this.#find();
    } else if (answer.code === 0) {
      this.#track(answer.data.queue_token, false);
    } else if (answer.code === 40004) {
      this.#repeat(answer.data);
    } else if (answer.code === 40001) {
      this.#pause('early', answer.retryAfterMs);
    } else if (answer.code in REFUSALS) {
      this.#refuse(REFUSALS[answer.code], answer);
    } else {
      this.#enter('error', { code: answer.code });
    }
  }

  #refuse(name, answer) {
    if (PAUSES.has(name)) {
      this.#pause(name, answer.retryAfterMs);
    } else {
      this.#enter(name, { expired: this.#api.token !== null });
    }
  }

  #pause(name, ms) {
    const wait = Math.max(ms, PAUSE_MS);

    this.#enter(name, { until: performance.now() + wait });
    this.#timer = setTimeout(() => this.#enter('idle'), wait);
  }

  #repeat(data) {
    saveTicket(this.#activity, this.#user, data.queue_token);

    if (data.state === 'success') {
      this.#enter('success', { orderNo: data.order_no, repeat: true });
    } else if (data.state === 'failed') {
      this.#enter('failed', { reason: data.reason });
    } else {
      this.#track(data.queue_token, true);
    }
  }

  /* a ticket of null stands for the visitor's own token */
  async #track(ticket, repeat) {
    if (ticket !== null) {
      saveTicket(this.#activity, this.#user, ticket);
    }
    this.#enter('queueing', { repeat, ticket, lost: false });

    this.#follow?.stop();
    const follow = new Follow(this.#api, ticket, ({ transport, lost }) => {
      this.state = { ...this.state, transport, lost };
      this.#changed();
    });
    this.#follow = follow;

    const answer = await follow.run();

    if (answer === null || this.#over || this.#follow !== follow) {
      return;
    }
    if (answer.late) {
      this.#enter('late', { ticket, repeat });
    } else {
      this.#conclude(answer, repeat);
    }
  }

  #conclude(answer, repeat) {
    if (answer.code === 1) {
      this.#enter('success', { orderNo: answer.data.order_no, repeat });
    } else if (answer.code === 2) {
      this.#enter('failed', { reason: answer.data?.reason });
    } else {
      /* no record, or a ticket that is not good any more */
      saveTicket(this.#activity, this.#user, null);
      this.#refuse(answer.code === 40100 ? 'login' : 'no_record', answer);
    }
  }

  /* A POST without an answer: it may have arrived.  Not found is only believed
     after a while, and posting again would be safe all the same. */
  async #find() {
    this.#enter('unsure');
    const { state } = this;
    let lost = true;

    for (const ms of UNSURE_MS) {
      await new Promise((resolve) => { setTimeout(resolve, ms); });
      if (this.#over || this.state !== state) {
        return;
      }
      const answer = await this.#api.result(null);

      if (this.#over || this.state !== state) {
        return;
      }
      if (answer.code === 0) {
        this.#track(null, false);
        return;
      }
      if (answer.code === 1 || answer.code === 2 || answer.code === 40100) {
        this.#conclude(answer, false);
        return;
      }
      lost = answer.code !== 40006;
    }
    this.#enter(lost ? 'offline' : 'not_taken');
  }
}
