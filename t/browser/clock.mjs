/* The countdown goes by the server's clock, whatever the visitor's says. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { api, sale } from './lib/stack.mjs';
import { salePath, visit } from './lib/visit.mjs';

const HOUR = 3600 * 1000;

async function startMs(id) {
  return (await (await fetch(api(id))).json()).data.start_ms;
}

/* every Date of the page is wrong from its first line on */
const wrong = (shift) => (page) => page.addInitScript((ms) => {
  const Real = Date;
  class Wrong extends Real {
    constructor(...args) {
      super(...(args.length === 0 ? [Real.now() + ms] : args));
    }

    static now() {
      return Real.now() + ms;
    }
  }
  window.Date = Wrong;
}, shift);

for (const [name, shift] of [['right', 0], ['an hour fast', HOUR], ['an hour slow', -HOUR]]) {
  test(`a visitor whose clock is ${name} can buy in time, and not too early`, async () => {
    let start = null;
    const soon = async () => {
      const id = await sale({ startsIn: 8 });

      start = await startMs(id);
      return salePath(id);
    };

    await visit(soon, { user: 21, prepare: wrong(shift) }, async (one) => {
      await one.state('not_started');
      assert.ok(Math.abs(await one.page.evaluate(() => Date.now()) - Date.now() - shift) < 5000, 'the clock is as wrong as wanted');
      assert.match(await one.saidIn('not_started', 'clock'), /^0小时 0分钟 [0-8]秒钟?$/);

      await one.state('running');
      const lit = (await one.seen()).find(({ state }) => state === 'running').at;
      assert.ok(lit >= start - 150, `lit ${start - lit} ms before the start`);
      assert.ok(lit < start + 1500, `lit ${lit - start} ms after the start`);

      await one.button.click();
      await one.state('success');
      assert.equal(one.posts.length, 1, 'the server thought so too');
    });
  });
}

test('the moments before the start are said to those who listen', async () => {
  const id = await sale({ startsIn: 300 });
  const start = await startMs(id);

  await visit(salePath(id), {
    user: 22,
    locale: 'en-GB',
    prepare: async (page) => {
      await page.clock.install();
      await page.addInitScript(() => {
        window.said = [];
        addEventListener('DOMContentLoaded', () => {
          const log = document.getElementById('announce');
          new MutationObserver(() => window.said.push(log.textContent)).observe(log, { childList: true });
        });
      });
    },
  }, async (one) => {
    const { clock } = one.page;

    await one.state('not_started');
    await clock.fastForward(start - Date.now() - 64000);
    await clock.runFor(8000);
    await clock.fastForward(42000);
    await clock.runFor(8000);
    await clock.runFor(10000);
    await one.state('running');
    assert.deepEqual(await one.page.evaluate(() => window.said),
      ['Starts in one minute', 'Starts in ten seconds', 'It has started, you can buy now']);
  });
});
