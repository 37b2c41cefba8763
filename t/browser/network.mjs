/* When the network, or Redis, is lost: the truth comes out, and nothing twice. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { frozen, orderNo, posted, sale, stack, until } from './lib/stack.mjs';
import { salePath, visit } from './lib/visit.mjs';

const LOST = [/ERR_/, /Failed to load resource/];

test('no network at the click: told so, found out when it is back, one purchase', async () => {
  const id = await sale();

  await visit(salePath(id), { user: 29, allow: LOST }, async (one) => {
    await one.state('running');
    await one.context.setOffline(true);
    await one.button.click();
    await one.state('unsure');
    await one.state('offline');
    assert.match(await one.words(), /^网络已断开/);
    await one.shot('offline-zh');

    await one.context.setOffline(false);
    await one.state('not_taken');
    assert.equal(await one.button.innerText(), '再试一次');
    await one.button.click();
    await one.state('success');
    assert.deepEqual(await posted(id), { accepted: 1 });
  });
});

test('the answer is lost on its way: the purchase is found without another POST', async () => {
  const id = await sale();

  await visit(salePath(id), {
    user: 30,
    allow: LOST,
    prepare: (page) => page.route('**/api/seckill/*', async (route) => {
      if (route.request().method() === 'POST') {
        await route.fetch();
        await route.abort('connectionreset');
      } else {
        await route.continue();
      }
    }),
  }, async (one) => {
    await one.state('running');
    await one.button.click();
    await one.state('unsure');
    await one.state('success');
    assert.equal(await one.page.locator('#order-no').innerText(), await orderNo(id, 30));
    assert.equal(one.posts.length, 1);
    assert.deepEqual(await posted(id), { accepted: 1 });
  });
});

test('"unknown": the page asks for the result by itself', async () => {
  const id = await sale();

  await visit(salePath(id), {
    user: 31,
    allow: LOST,
    prepare: (page) => page.route('**/api/seckill/*', async (route) => {
      if (route.request().method() === 'POST') {
        await route.fetch();
        await route.fulfill({ status: 503, body: '{"code":50301,"message":"","data":null}' });
      } else {
        await route.continue();
      }
    }),
  }, async (one) => {
    await one.state('running');
    await one.button.click();
    await one.state('success');
    assert.match(await one.saidIn('unsure'), /^没有收到回答，正在查询/);
    assert.equal(one.posts.length, 1);
  });
});

test('Redis stands still: nobody is told a reason that is not known, and it is one purchase', async () => {
  const id = await sale();

  await visit(salePath(id), { user: 40, allow: LOST }, async (one) => {
    await one.state('running');
    await frozen(stack.redis.pid, async () => {
      await one.button.click();
      await one.page.waitForSelector('body[data-state="busy"], body[data-state="unsure"]');
    });
    await until(async () => {
      const state = await one.page.getAttribute('body', 'data-state');
      if (state === 'running' || state === 'not_taken') {
        await one.button.click();
      }
      return state === 'success';
    }, 'the order', { ms: 20000, every: 250 });

    assert.equal(await one.page.locator('#order-no').innerText(), await orderNo(id, 40));
    assert.deepEqual((await one.seen()).filter(({ state }) => ['sold_out', 'ended', 'failed'].includes(state)), []);
    const { accepted = 0, unknown = 0 } = await posted(id);
    assert.ok(accepted <= 1 && accepted + unknown >= 1);
  });
});

test('the network goes while queueing: said so, and the result comes when it is back', async () => {
  const id = await sale();
  let cut = false;

  await visit(salePath(id), {
    user: 32,
    allow: LOST,
    prepare: async (page) => {
      await page.route('**/result/**', (route) => (cut || route.request().resourceType() === 'eventsource'
        ? route.abort('internetdisconnected') : route.fulfill({
          body: '{"code":0,"message":"","data":{"state":"queueing","poll_after_ms":500}}',
        })));
    },
  }, async (one) => {
    await one.state('running');
    await one.button.click();
    await one.page.waitForSelector('#status[data-transport="poll"]');
    cut = true;
    await one.page.waitForFunction(() => document.getElementById('status').dataset.tone === 'warn');
    assert.match(await one.words(), /^排队中 网络已断开，正在重新连接/);
    cut = false;
    await one.page.unroute('**/result/**');
    await one.state('success');
    assert.equal(one.posts.length, 1);
  });
});

test('facts that cannot be had: told, and tried again', async () => {
  const id = await sale();
  let cut = true;

  await visit(salePath(id), {
    user: 33,
    allow: LOST,
    prepare: (page) => page.route('**/api/seckill/*', (route) => (cut ? route.abort('connectionrefused') : route.continue())),
  }, async (one) => {
    await one.state('lost');
    assert.match(await one.words(), /^连接不上服务器/);
    cut = false;
    await one.state('running');
  });
});

test('a proxy in between answers with a page of its own: no refusal is made of it', async () => {
  const id = await sale();

  await visit(salePath(id), {
    user: 34,
    allow: LOST,
    prepare: (page) => page.route('**/api/seckill/*', (route) => (route.request().method() === 'POST'
      ? route.fulfill({ status: 502, body: '<html>Bad Gateway</html>' }) : route.continue())),
  }, async (one) => {
    await one.state('running');
    await one.button.click();
    await one.state('unsure');
    await one.state('not_taken');
    assert.match(await one.words(), /没有找到您的抢购/);
  });
});
