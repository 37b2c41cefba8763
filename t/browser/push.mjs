/* How the result comes: pushed at once, else by long poll, else by schedule. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { frozen, listeners, sale, stack, until } from './lib/stack.mjs';
import { salePath, visit } from './lib/visit.mjs';

/* on a machine that may stall; t/e2e/push.t measures the way up to the socket */
const PUSHED_MS = 1000;

const transport = (one) => one.status.getAttribute('data-transport');

test('the result is on the screen a moment after seckilld could write it', async (t) => {
  const id = await sale();

  await visit(salePath(id), { user: 23 }, async (one) => {
    await one.state('running');
    const began = await frozen(stack.seckilld, async (go) => {
      await one.button.click();
      await one.state('queueing');
      await listeners(id);
      await one.page.waitForTimeout(300);
      assert.equal(await transport(one), 'push');
      const now = Date.now();

      go();
      await one.state('success');
      return now;
    });
    const took = (await one.seen()).find(({ state }) => state === 'success').at - began;

    t.diagnostic(`shown ${took.toFixed(0)} ms after seckilld went on, its read and its commit included`);
    assert.ok(took < PUSHED_MS, `it took ${took} ms`);
    const asked = one.requests.filter(({ url }) => url.includes('/result/'));
    assert.deepEqual(asked.map(({ type }) => type), ['eventsource'], 'nothing was polled');
  });
});

test('a stream that nginx ends by a reload is opened again by itself', async () => {
  const id = await sale();

  await visit(salePath(id), { user: 24, allow: [/ERR_|Failed to load/] }, async (one) => {
    await one.state('running');
    await frozen(stack.seckilld, async (go) => {
      await one.button.click();
      await one.state('queueing');
      await listeners(id);
      process.kill(stack.nginx, 'SIGHUP');
      await until(() => one.requests.filter(({ type }) => type === 'eventsource').length > 1, 'a second stream');
      await listeners(id);
      go();
      await one.state('success');
    });
    assert.equal(one.posts.length, 1);
  });
});

test('without server-sent events a long poll brings the result', async () => {
  const id = await sale();

  await visit(salePath(id), {
    user: 25,
    allow: [/ERR_FAILED/],
    prepare: (page) => page.route('**/result/**', (route) => (route.request().resourceType() === 'eventsource'
      ? route.abort() : route.continue())),
  }, async (one) => {
    await one.state('running');
    await frozen(stack.seckilld, async (go) => {
      await one.button.click();
      await one.state('queueing');
      await listeners(id);
      assert.equal(await transport(one), 'hold');
      go();
      await one.state('success');
    });
    const polls = one.requests.filter(({ url, type }) => url.includes('/result/') && type === 'fetch');
    assert.equal(polls.length, 1, 'one request was enough');
    assert.match(polls[0].url, /wait=25/);
  });
});

test('a proxy that swallows the stream is noticed', async () => {
  const id = await sale();

  await visit(salePath(id), {
    user: 26,
    allow: [/ERR_/],
    prepare: (page) => page.addInitScript(() => {
      window.EventSource = class extends EventTarget {      /* open for ever, and silent */
        static CLOSED = 2;

        readyState = 1;

        close() {}
      };
    }),
  }, async (one) => {
    await one.state('running');
    await frozen(stack.seckilld, async (go) => {
      await one.button.click();
      await one.page.waitForSelector('#status[data-transport="hold"]', { timeout: 15000 });
      go();
      await one.state('success');
    });
  });
});

test('without both the page polls when the server says, under load later', async () => {
  const id = await sale();
  const held = '{"code":0,"message":"","data":{"state":"queueing","poll_after_ms":500}}';
  const loaded = '{"code":0,"message":"","data":{"state":"queueing","poll_after_ms":3200}}';
  const told = [500];

  await visit(salePath(id), {
    user: 27,
    allow: [/ERR_FAILED/],
    prepare: (page) => page.route('**/result/**', async (route) => {
      if (route.request().resourceType() === 'eventsource') {
        return route.abort();
      }
      if (route.request().url().includes('wait=')) {
        return route.fulfill({ body: held });
      }
      const response = await route.fetch();
      const body = told.length === 4 ? loaded : await response.text();

      told.push(JSON.parse(body).data.poll_after_ms);
      return route.fulfill({ response, body });
    }),
  }, async (one) => {
    await one.state('running');
    /* the long poll, which was not held, and then what it led to */
    const asked = () => one.requests.filter(({ url, type }) => type === 'fetch' && /result/.test(url));

    await frozen(stack.seckilld, async (go) => {
      await one.button.click();
      await until(() => asked().length >= 6, 'five polls', { ms: 15000 });
      assert.equal(await transport(one), 'poll');
      go();
      await one.state('success');
    });
    assert.equal(told[1], 500, `told ${told} ms`);
    assert.equal(told[3], 2000, `told ${told} ms`);
    assert.equal(told[4], 3200, `told ${told} ms`);
    const gaps = asked().slice(1, 6).map(({ at }, i) => at - asked()[i].at);
    gaps.forEach((gap, i) => {
      assert.ok(gap > told[i] - 60 && gap < told[i] + 900, `${gaps} ms between the polls, told ${told}`);
    });
  });
});

test('after 30 s the page stops, says so, and looks again when asked', async () => {
  const id = await sale();

  await visit(salePath(id), { user: 28, prepare: (page) => page.clock.install() }, async (one) => {
    await one.state('running');
    await frozen(stack.seckilld, async (go) => {
      await one.button.click();
      await one.state('queueing');
      await listeners(id);
      await one.page.clock.runFor(22000);
      assert.equal(await one.page.getAttribute('body', 'data-state'), 'queueing');
      await one.page.clock.runFor(8500);
      await one.state('late');
      assert.match(await one.words(), /^结果还没有出来 已等待 30 秒/);
      assert.equal(await one.button.innerText(), '再查一次');
      await one.shot('late-zh');

      const before = one.requests.length;
      await one.page.clock.runFor(10000);
      assert.deepEqual(one.requests.slice(before).filter(({ url }) => url.includes('/result/')), [], 'it has stopped');

      await one.button.click();
      await one.state('queueing');
      go();
      await one.state('success');
    });
    assert.equal(one.posts.length, 1);
  });
});
