/* The operator's page tells what nginx counted. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buy, post, sale, until, withoutOrders } from './lib/stack.mjs';
import { visit } from './lib/visit.mjs';

const figure = (one, name) => one.page.locator(`#figure-${name}`).innerText();
const cursors = (one) => one.page.locator('.cursor:not([hidden])').count();
const legend = (one, plot) => one.page.locator(`#plot-${plot} .legend`).innerText();

test('figures, plots and totals follow the sale', async () => {
  const id = await sale({ stock: 3 });

  await visit(`/live.html?activity=${id}`, { locale: 'en-GB', viewport: { width: 1360, height: 860 } }, async (one) => {
    await one.page.waitForSelector('#totals tr');
    await one.page.waitForTimeout(1200);
    for (const user of [1, 2, 3]) {
      await buy(id, user);
    }
    await Promise.all([4, 5, 6, 7].map((user) => post(id, user)));
    await one.page.waitForFunction(() => document.querySelector('#figure-stock').innerText === '0');
    await one.page.waitForFunction(() => document.querySelector('#figure-accepted').innerText === '3');

    const totals = () => one.page.locator('#totals').innerText();
    await until(async () => /sold out\s+4\s/.test(await totals()), 'four who found it sold out');
    assert.match(await totals(), /accepted\s+3\s/);
    assert.match(await totals(), /repeat\s+0\s/);
    assert.match(await figure(one, 'redis'), /^([12]) \/ \1$/);
    assert.match(await figure(one, 'p99'), /^≤?[\d.]+ (ms|s)$/);

    const drawn = (plot, series) => one.page.locator(`#plot-${plot} .s-${series}[d]`).getAttribute('d');
    assert.match(await drawn('requests', 'accepted'), /^M[\d.]+ [\d.]+V/, 'a bar was drawn');
    assert.equal(await drawn('requests', 'trouble'), '', 'and none for what did not happen');
    await one.page.waitForFunction(() => document.querySelector('#plot-stock .line').getAttribute('d').includes('L'));
    assert.match(await one.page.locator('#plot-latency svg').getAttribute('aria-label'), /^Latency of requests: 50% .*99% /);
    await one.shot('live-en');
  });
});

test('what waits in the stream is told as seckilld counts it', async () => {
  const id = await sale({ stock: 9 });

  await visit(`/live.html?activity=${id}`, {}, async (one) => {
    const queue = (text) => one.page.waitForFunction(
      (wanted) => document.querySelector('#figure-queue').innerText === wanted, text);

    await buy(id, 1);
    await queue('0');
    await withoutOrders(id, async () => {
      await Promise.all([2, 3, 4].map((user) => post(id, user)));
      await queue('3');
      assert.match(await legend(one, 'waiting'), /待成订单 3$/);
    });
    await queue('0');
  });
});

test('without seckilld’s metrics the page knows nothing of the stream and says so', async () => {
  const asked = [];

  await visit('/live.html', {
    allow: [/404/],
    prepare: (page) => page.route('**/seckilld/metrics', (route) => {
      asked.push(route);
      return route.fulfill({ status: 404, body: '' });
    }),
  }, async (one) => {
    await one.page.waitForSelector('#totals tr');
    await one.page.waitForTimeout(2500);
    assert.equal(await figure(one, 'queue'), '–');
    assert.equal(asked.length, 1, 'it is not asked for again');
  });
});

test('the arrow keys read a moment in all plots, Escape returns', async () => {
  await visit('/live.html', { locale: 'en-GB' }, async (one) => {
    await one.page.waitForFunction(() => document.querySelector('#plot-stock .line')?.getAttribute('d').includes('L'));
    await one.page.locator('#plot-stock svg').focus();
    await one.page.keyboard.press('ArrowLeft');
    assert.equal(await cursors(one), 5);
    await one.page.keyboard.press('Escape');
    assert.equal(await cursors(one), 0);
  });
});

test('both languages, all activities or one', async () => {
  const id = await sale({ stock: 5 });

  await buy(id, 1);
  await visit('/live.html', { colorScheme: 'dark', viewport: { width: 1360, height: 860 } }, async (one) => {
    await one.page.waitForSelector('#totals tr');
    assert.equal(await one.page.title(), '秒杀实况');
    const all = Number(await figure(one, 'accepted'));
    await one.page.getByRole('combobox', { name: '活动' }).selectOption(String(id));
    assert.equal(await figure(one, 'accepted'), '1');
    assert.ok(all > 1, `${all} are accepted in all`);
    await one.shot('live-zh-dark');
    await one.page.getByRole('button', { name: 'English' }).click();
    assert.match(await legend(one, 'requests'), /accepted/);
    assert.equal(await one.page.title(), 'Flash sale, live');
  });
});

test('a status that cannot be read is said, and a gap', async () => {
  let cut = false;

  await visit('/live.html', {
    allow: [/ERR_/],
    prepare: (page) => page.route('**/status', (route) => (cut ? route.abort('connectionrefused') : route.continue())),
  }, async (one) => {
    await one.page.waitForSelector('#state[data-tone="good"]');
    cut = true;
    await one.page.waitForSelector('#state[data-tone="bad"]');
    assert.match(await one.page.locator('#state').innerText(), /读不到状态接口/);
    assert.equal(await legend(one, 'stock'), '剩余 –');
    cut = false;
    await one.page.waitForSelector('#state[data-tone="good"]');
  });
});
