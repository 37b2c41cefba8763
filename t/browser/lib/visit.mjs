/*
 * A visit of a page by somebody new: a context of its own, and at the end the
 * promises that hold for every visit: no error on the console, no request to
 * anywhere else.
 */

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { stack } from './stack.mjs';

const require = createRequire(stack.packages);
const { chromium } = require('playwright-core');

const ARGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', '--force-color-profile=srgb', '--font-render-hinting=none'];

/* for a machine that others use */
const PATIENCE_MS = 20000;

export const axeSource = require.resolve('axe-core/axe.min.js');

let browser = null;

/* a new, empty profile each time */
export async function start() {
  browser = await chromium.launch({ executablePath: stack.chromium, headless: true, args: ARGS });
  return browser.version();
}

export async function stop() {
  await browser?.close();
}

/* Remembers when the page entered which state, in true epoch milliseconds, whatever
   Date says there, and what it said then. */
function observe() {
  window.seen = [];
  const note = () => {
    const state = document.body?.dataset.state;
    if (state && window.seen.at(-1)?.state !== state) {
      window.seen.push({
        state,
        at: performance.timeOrigin + performance.now(),
        words: document.getElementById('status')?.innerText,
        button: document.getElementById('buy')?.innerText,
        clock: document.getElementById('clock-text')?.textContent,
      });
    }
  };
  new MutationObserver(note).observe(document, { subtree: true, attributes: true, childList: true, attributeFilter: ['data-state'] });
}

class Visit {
  #context;
  #faults = [];
  #allowed;
  #passed = 0;              /* states of the page's history that a test has waited for */

  posts = [];
  requests = [];

  constructor(context, page, allowed) {
    this.#context = context;
    this.page = page;
    this.#allowed = allowed;
    this.button = page.locator('#buy');
    this.status = page.locator('#status');

    page.on('framenavigated', (frame) => {
      if (frame === page.mainFrame()) {
        this.#passed = 0;
      }
    });
    page.on('pageerror', (error) => this.#faults.push(`error on the page: ${error.stack}`));
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) {
        this.#faults.push(`console: ${message.text()}`);
      }
    });
    context.on('request', (request) => {
      this.requests.push({ url: request.url(), type: request.resourceType(), at: Date.now() });
      if (request.method() === 'POST') {
        this.posts.push(request);
      }
      if (!request.url().startsWith(`${stack.base}/`)) {
        this.#faults.push(`request to elsewhere: ${request.url()}`);
      }
    });
  }

  get context() {
    return this.#context;
  }

  /* waits until the page is in that state, or was since the last one waited for: a
     slow machine may look late */
  async state(name, timeout = PATIENCE_MS) {
    try {
      const found = await this.page.waitForFunction(({ wanted, from }) => {
        const at = window.seen.findIndex(({ state }, i) => i >= from && state === wanted);

        return at >= 0 ? at + 1 : document.body?.dataset.state === wanted && window.seen.length;
      }, { wanted: name, from: this.#passed }, { timeout });
      this.#passed = await found.jsonValue();
    } catch {
      const now = await this.page.evaluate(() => document.body.dataset.state);
      throw new Error(`the page should be in the state "${name}", but is in "${now}"`);
    }
  }

  /* what the page, its button or its clock said when it came into the state last */
  async saidIn(name, what = 'words') {
    return (await this.seen()).findLast(({ state }) => state === name)[what].replace(/\s+/g, ' ');
  }

  /* the states so far, with their times */
  seen() {
    return this.page.evaluate(() => window.seen);
  }

  /* for whoever reads why a test failed */
  async history() {
    const states = (await this.seen()).map(({ state, at }) => `${state} at ${Math.round(at)}`);
    const asked = this.requests.filter(({ url }) => url.includes('/result/'))
      .map(({ url, type, at }) => `${type} ${new URL(url).searchParams.get('wait') ?? ''} at ${at}`);

    return `${states.join(', ')}; results were asked for by ${asked.join(', ') || 'nobody'}`;
  }

  async words() {
    return (await this.status.innerText()).replace(/\s+/g, ' ');
  }

  async shot(name, options = {}) {
    await this.page.waitForTimeout(450);      /* the seal has come down */
    await this.page.screenshot({ path: join(stack.shots, `${name}.png`), ...options });
  }

  async end() {
    await this.#context.close();
    const faults = this.#faults.filter((fault) => !this.#allowed.some((pattern) => pattern.test(fault)));
    assert.deepEqual(faults, []);
  }
}

/*
 * Runs the code in a visit.  user: null is nobody; allow: patterns of console
 * messages that belong to the test; prepare(page) runs before the page loads;
 * the rest are options of playwright's contexts.  The path may be a function that
 * makes it when the browser is ready, for what begins soon.
 */
export async function visit(where, options, code) {
  const { user, allow = [], prepare, locale = 'zh-CN', viewport = { width: 1200, height: 820 }, ...rest } = options;
  const context = await browser.newContext({ locale, viewport, ...rest });

  context.setDefaultTimeout(PATIENCE_MS);
  await context.addInitScript(observe);
  const page = await context.newPage();
  const one = new Visit(context, page, allow);
  let failure = null;

  try {
    await prepare?.(page, context);
    const url = new URL(typeof where === 'function' ? await where() : where, `${stack.base}/`);

    if (user !== undefined) {
      url.searchParams.set('user', user ?? 'none');
    }
    await page.goto(url.href);
    await code(one);
  } catch (error) {
    failure = error;
    failure.stack += `\nthe page went through ${await one.history().catch(() => 'unknown states')}`;
    await page.screenshot({ path: join(stack.shots, `failed-${Date.now()}.png`) }).catch(() => {});
  }
  try {
    await one.end();
  } catch (error) {
    failure ??= error;
  }
  if (failure !== null) {
    throw failure;
  }
}

export const salePath = (id) => `/?activity=${id}`;
