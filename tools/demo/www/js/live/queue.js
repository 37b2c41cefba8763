/*
 * Purchases on their way to an order, which nginx can't know: seckilld counts
 * them.  Read from its metrics where the server passes them on to this page;
 * elsewhere nothing is known, and nothing is shown.
 */

import { ALL } from './status.js';

const CALL_MS = 4000;
const GONE = 404;

/* what nobody has read, and what was read and is no order yet */
const LINE = /^seckilld_(?:unread|pending)\{activity="(\d+)"\} (\d+)$/gm;
const KNOWN = /^seckilld_activities \d+$/m;

/* null: seckilld does not know either, Redis is away */
export function parseQueue(text) {
  const queue = {};

  for (const [, activity, count] of text.matchAll(LINE)) {
    queue[activity] = (queue[activity] ?? 0) + Number(count);
  }
  return Object.keys(queue).length > 0 || KNOWN.test(text) ? queue : null;
}

/* null: not known */
export function queueOf(queue, activity) {
  if (queue === null) {
    return null;
  }
  return activity === ALL ? Object.values(queue).reduce((sum, n) => sum + n, 0) : queue[activity] ?? null;
}

export class Queue {
  #url;
  #none = false;

  constructor(url) {
    this.#url = url;
  }

  /* activities and their purchases; null when that can't be known now */
  async read() {
    if (this.#none) {
      return null;
    }
    try {
      const response = await fetch(this.#url, { cache: 'no-store', signal: AbortSignal.timeout(CALL_MS) });

      this.#none = response.status === GONE;
      return response.ok ? parseQueue(await response.text()) : null;
    } catch {
      return null;
    }
  }
}
