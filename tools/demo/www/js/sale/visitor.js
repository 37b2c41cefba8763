/*
 * Who is here.  A shop has its own login; the demo has a list of users with
 * their tokens, made when the stack started, and everybody may be anybody.
 */

import { query, setText } from '../shared/dom.js';
import { t } from '../shared/text.js';
import { savedVisitor, saveVisitor } from './store.js';

const LIST = 'demo/users.json';
const NOBODY = '';

export class Visitor {
  #select;
  #tokens = new Map();

  /* changed() is called when another visitor was picked */
  constructor(select, changed) {
    this.#select = select;
    this.#select.addEventListener('change', () => {
      saveVisitor(this.#select.value);
      changed();
    });
  }

  async load() {
    try {
      const response = await fetch(LIST, { cache: 'no-store' });
      if (response.ok) {
        for (const { user, token } of (await response.json()).tokens) {
          this.#tokens.set(user, token);
        }
      }
    } catch {
      /* no list: nobody is signed in, which the page says */
    }
    this.#fill();
    this.#select.value = this.#choose();
    saveVisitor(this.#select.value);
  }

  /* every tab of the demo is somebody else, unless the address says who */
  #choose() {
    const users = [NOBODY, ...this.#tokens.keys()];

    for (const wish of [query.get('user'), savedVisitor()]) {
      if (wish === 'none') {
        return NOBODY;
      }
      if (wish !== null && users.includes(wish)) {
        return wish;
      }
    }
    return users[users.length > 1 ? 1 + Math.floor(Math.random() * (users.length - 1)) : 0];
  }

  #fill() {
    this.#select.replaceChildren(...[NOBODY, ...this.#tokens.keys()].map((user) => {
      const option = document.createElement('option');
      option.value = user;
      return option;
    }));
    this.translate();
  }

  translate() {
    for (const option of this.#select.options) {
      setText(option, option.value === NOBODY ? t('visitor_none') : t('visitor_user', { user: option.value }));
    }
  }

  get user() {
    return this.#select.value;
  }

  get token() {
    return this.#tokens.get(this.#select.value) ?? null;
  }

  ask() {
    this.#select.focus();
  }
}
