/* The way of those who do not buy, and the words they get. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buy, entry, news, post, posted, redis, sale } from './lib/stack.mjs';
import { salePath, visit } from './lib/visit.mjs';

/* as a page does that comes back to the front: it asks for the facts again */
const refresh = (one) => one.page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));

test('a loser is told that it is sold out', async () => {
  const id = await sale({ stock: 1 });

  await visit(salePath(id), { user: 11 }, async (one) => {
    await one.state('running');
    await buy(id, 10);
    await one.button.click();
    await one.state('sold_out');
    assert.match(await one.words(), /^商品已抢完 很遗憾/);
    assert.equal(await one.button.innerText(), '已抢完');
    await one.button.click({ force: true });
    assert.equal(one.posts.length, 1);
    assert.deepEqual(await posted(id), { accepted: 1, sold_out: 1 });
    await one.shot('sold-out-zh');
  });
});

test('who comes after the sell-out finds a grey button, and units that come back light it', async () => {
  const id = await sale({ stock: 1 });

  await buy(id, 10);
  await visit(salePath(id), { user: 12 }, async (one) => {
    await one.state('sold_out');
    await one.button.click({ force: true });
    assert.equal(one.posts.length, 0);

    await redis('SET', `seckill:stock:{${id}}`, '1');
    await news(id);
    await one.page.waitForTimeout(1500);
    await refresh(one);
    await one.state('running');
  });
});

test('before the start the button is grey and nothing is sent', async () => {
  const id = await sale({ startsIn: 3590 });

  await visit(salePath(id), { user: 13, locale: 'en-GB', colorScheme: 'dark' }, async (one) => {
    await one.state('not_started');
    assert.equal(await one.button.innerText(), 'Starts soon');
    assert.match(await one.page.getByRole('timer').innerText(), /^00\n:\n59\n:\n[0-5]\d\n0 hours 59 minutes \d+ seconds$/);
    await one.button.click({ force: true });
    await one.button.press('Enter');
    assert.equal(one.posts.length, 0);
    await one.shot('countdown-en-dark');
  });
});

test('a sale that ended says so', async () => {
  const id = await sale({ startsIn: 3, lasts: 1 });

  await visit(salePath(id), { user: 14 }, async (one) => {
    await one.state('ended');
    assert.match(await one.words(), /^活动已结束/);
    await one.button.click({ force: true });
    assert.equal(one.posts.length, 0);
    await one.shot('ended-zh');
  });
});

test('closed by the operator: told after a click, with a countdown, and open again by itself', async () => {
  const id = await sale();

  await visit(salePath(id), { user: 15, allow: [/status of 503/] }, async (one) => {
    await one.state('running');
    await entry(id, 'closed');
    await one.page.waitForTimeout(1500);
    await one.button.click();
    await one.state('closed');
    assert.match(await one.saidIn('closed'), /^活动太火爆/);
    assert.match(await one.saidIn('closed', 'button'), /^\d+ 秒后可再试$/);
    await one.shot('closed-zh');
    await refresh(one);
    await entry(id, 'open');
    await one.page.waitForTimeout(1500);
    await refresh(one);
    await one.state('running');
    await one.button.click();
    await one.state('success');
  });
});

test('too fast: the button counts down and lights up again', async () => {
  const id = await sale({ registered: true });
  let taken = false;

  await visit(salePath(id), {
    user: 16,
    locale: 'en-GB',
    /* another tab takes what the limit allows, a moment before the first click */
    prepare: (page) => page.route('**/api/seckill/*', async (route) => {
      if (route.request().method() === 'POST' && !taken) {
        taken = true;
        await post(id, 16);
      }
      await route.continue();
    }),
  }, async (one) => {
    await one.state('running');
    await one.button.click();
    await one.state('limited');
    assert.match(await one.saidIn('limited'), /^Too many requests/);
    assert.equal(await one.saidIn('limited', 'button'), 'Again in 1 s');
    await one.state('running');
    await one.button.click();
    await one.state('not_eligible');
    assert.match(await one.words(), /^Not registered/);
    assert.equal(one.posts.length, 2);
  });
});

test('nobody is signed in: the button leads to the login and sends nothing', async () => {
  const id = await sale();

  await visit(salePath(id), { user: null }, async (one) => {
    await one.state('running');
    assert.equal(await one.button.innerText(), '登录后抢购');
    await one.button.click();
    assert.equal(await one.page.evaluate(() => document.activeElement.id), 'visitor');
    assert.equal(one.posts.length, 0);
    await one.page.getByLabel('访客').selectOption('17');
    assert.equal(await one.button.innerText(), '立即抢购');
    await one.button.click();
    await one.state('success');
  });
});

test('a login that expired is told apart', async () => {
  const id = await sale();
  const expired = JSON.stringify({ tokens: [{ user: '18', token: 'not.a.token' }] });

  await visit(salePath(id), {
    user: 18,
    allow: [/status of 401/],
    prepare: (page) => page.route('**/demo/users.json', (route) => route.fulfill({ body: expired })),
  }, async (one) => {
    await one.state('running');
    await one.button.click();
    await one.state('login');
    assert.match(await one.words(), /登录已失效/);
  });
});

test('busy: nothing was taken, and the button comes back when Retry-After is over', async () => {
  const id = await sale();
  let refused = 0;

  await visit(salePath(id), {
    user: 19,
    allow: [/status of 503/],
    prepare: (page) => page.route('**/api/seckill/*', async (route) => {
      if (route.request().method() === 'POST' && refused === 0) {
        refused += 1;
        await route.fulfill({ status: 503, headers: { 'Retry-After': '2' }, body: '{"code":50302,"message":"","data":null}' });
      } else {
        await route.continue();
      }
    }),
  }, async (one) => {
    await one.state('running');
    await one.button.click();
    await one.state('busy');
    assert.match(await one.saidIn('busy'), /^系统繁忙/);
    assert.equal(await one.saidIn('busy', 'button'), '2 秒后可再试');
    await one.state('running');
    await one.button.click();
    await one.state('success');
  });
});

test('no such sale, and an answer that nobody knows', async () => {
  await visit(salePath(987654), { user: 20 }, async (one) => {
    await one.state('missing');
    assert.match(await one.words(), /^暂无此活动/);
  });

  const id = await sale();
  await visit(salePath(id), {
    user: 20,
    prepare: (page) => page.route('**/api/seckill/*', (route) => (route.request().method() === 'POST'
      ? route.fulfill({ body: '{"code":49999,"message":"","data":null}' }) : route.continue())),
  }, async (one) => {
    await one.state('running');
    await one.button.click();
    await one.state('error');
    assert.match(await one.words(), /代码 49999/);
    assert.equal(await one.button.innerText(), '再试一次');
  });
});
