/*
 * The time that is left, as tiles for the eye and as a sentence for the ear, and
 * the few moments that are worth saying aloud.
 */

import { byId, setAttribute, setText } from '../shared/dom.js';
import { t, tag } from '../shared/text.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const URGENT_MS = 10 * SECOND;

const MOMENTS = [
  { before: MINUTE, text: 'announce_minute' },
  { before: 10 * SECOND, text: 'announce_ten' },
];

const calm = matchMedia('(prefers-reduced-motion: reduce)');

/* "1 hour", "59 minutes" */
const spoken = (n, unit) => new Intl.NumberFormat(tag(), { style: 'unit', unit, unitDisplay: 'long' }).format(n);
const two = (n) => String(n).padStart(2, '0');

export class Countdown {
  #last = null;

  /* phase: of the offer; ms: to the start or to the end, null when neither */
  show(phase, ms) {
    const box = byId('countdown');
    const before = phase === 'not_started';

    setText(byId('countdown-label'),
      t(ms === null ? 'countdown_over' : before ? 'until_start' : 'until_end'));
    setAttribute(box, 'data-urgent', before && ms < URGENT_MS ? '' : null);

    if (ms === null) {
      this.#tiles('--', '--', '--', '');
      setText(byId('clock-text'), '');
    } else {
      this.#time(ms, before);
    }
    this.#say(before ? ms : phase === 'running' ? 0 : null);
  }

  #time(ms, before) {
    /* a second is shown until it is over, so that zero is the start */
    const whole = Math.ceil(ms / SECOND) * SECOND;
    const fine = before && ms < MINUTE && !calm.matches;
    const shown = fine ? Math.floor(ms / SECOND) * SECOND : whole;
    const days = Math.floor(shown / DAY);
    const hours = Math.floor((shown % DAY) / HOUR);
    const minutes = two(Math.floor((shown % HOUR) / MINUTE));
    const seconds = two(Math.floor((shown % MINUTE) / SECOND));

    if (days > 0) {
      this.#tiles(t('days', { n: days }), two(hours), minutes, '');
      this.#speak([days, 'day'], [hours, 'hour'], [Number(minutes), 'minute']);
      return;
    }
    this.#tiles(two(hours), minutes, seconds, fine ? `.${Math.floor((ms % SECOND) / 100)}` : '');
    this.#speak([hours, 'hour'], [Number(minutes), 'minute'], [Number(seconds), 'second']);
  }

  #speak(...parts) {
    setText(byId('clock-text'), parts.map(([n, unit]) => spoken(n, unit)).join(' '));
  }

  #tiles(hours, minutes, seconds, tenths) {
    setText(byId('hours'), hours);
    setText(byId('minutes'), minutes);
    setText(byId('seconds'), seconds);
    setText(byId('tenths'), tenths);
  }

  /* said once, when the moment is passed while somebody is here */
  #say(ms) {
    const last = this.#last;

    this.#last = ms;
    if (ms === null || last === null) {
      return;
    }
    if (ms === 0 && last > 0) {
      setText(byId('announce'), t('announce_start'));
    }
    for (const { before, text } of MOMENTS) {
      if (ms > 0 && ms <= before && last > before) {
        setText(byId('announce'), t(text));
      }
    }
  }
}
