/*
 * Both languages, and which one is spoken: "?lang=", the visitor's last choice,
 * the browser's wish.
 */

import { query, setText } from './dom.js';
import zh from './text-zh.js';
import en from './text-en.js';

const dictionaries = { zh, en };
const tags = { zh: 'zh-CN', en: 'en' };
const KEY = 'seckill.language';

function remembered() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;    /* storage is forbidden: nothing is remembered */
  }
}

function choose() {
  for (const wish of [query.get('lang'), remembered()]) {
    if (wish in dictionaries) {
      return wish;
    }
  }
  return (navigator.language || 'zh').toLowerCase().startsWith('zh') ? 'zh' : 'en';
}

let current = choose();

export const language = () => current;
export const tag = () => tags[current];
export const other = () => (current === 'zh' ? 'en' : 'zh');

/* The text of a key, with {names} filled in. */
export function t(key, values = {}) {
  const text = dictionaries[current][key];

  if (text === undefined) {
    throw new Error(`no text "${key}" in "${current}"`);
  }
  return text.replace(/\{(\w+)\}/g, (all, name) => values[name] ?? all);
}

/* Everything of the document that carries a key. */
export function translate(titleKey) {
  document.documentElement.lang = tag();
  document.title = t(titleKey);

  for (const element of document.querySelectorAll('[data-text]')) {
    setText(element, t(element.dataset.text));
  }
  for (const element of document.querySelectorAll('[data-label]')) {
    element.setAttribute('aria-label', t(element.dataset.label));
  }
}

export function speak(wish) {
  current = wish;
  try {
    localStorage.setItem(KEY, wish);
  } catch {
    /* spoken, though not remembered */
  }
}

/* The button that changes the language names the other one, in that one. */
export function languageButton(button, changed) {
  const show = () => {
    setText(button, other() === 'en' ? 'English' : '中文');
    button.lang = tags[other()];
  };

  button.addEventListener('click', () => {
    speak(other());
    show();
    changed();
  });
  show();
}
