/* The way of those who buy: winners, hammerers, repeaters, those who reload. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buy, frozen, listeners, orderNo, posted, redis, sale, stack } from './lib/stack.mjs';
import { salePath, visit } from './lib/visit.mjs';

test('a winner buys in Chinese: one click, queue, order number', async () => {
  const id = await sale();

  await visit(salePath(id), { user: 1 }, async (one) => {
    await one.state('running');
    assert.equal(await one.page.title(), '限时秒杀');
    assert.equal(await one.page.getAttribute('html', 'lang'), 'zh-CN');
    assert.equal(await one.button.innerText(), '立即抢购');
    await one.shot('buy-zh');

    await one.button.click();
    await one.state('success');
    assert.match(await one.words(), /^抢购成功 恭喜！/);
    assert.equal(await one.page.locator('#order-no').innerText(), await orderNo(id, 1));
    assert.equal(await one.button.innerText(), '已抢到');
    await one.shot('success-zh');

    const states = (await one.seen()).map(({ state }) => state);
    assert.deepEqual(states.slice(states.indexOf('running')), ['running', 'sending', 'queueing', 'success']);
    assert.equal(one.posts.length, 1);
    assert.deepEqual(await posted(id), { accepted: 1 });
  });
});

test('a winner buys in English, on a phone, in the dark', async () => {
  const id = await sale();
  const phone = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true };

  await visit(salePath(id), { user: 2, locale: 'en-GB', colorScheme: 'dark', ...phone }, async (one) => {
    await one.state('running');
    assert.equal(await one.page.title(), 'Flash sale');
    assert.equal(await one.button.innerText(), 'Buy now');
    const { y, height } = await one.button.boundingBox();
    assert.ok(y + height < 844, 'the button is seen without scrolling');
    await one.shot('buy-en-phone-dark');

    await one.button.tap();
    await one.state('success');
    assert.match(await one.words(), /^You got it Your order was placed/);
    assert.equal(await one.page.locator('#order-no').innerText(), await orderNo(id, 2));
    await one.shot('success-en-phone-dark', { fullPage: true });
  });
});

test('the language can be changed at any moment, and is remembered', async () => {
  const id = await sale();

  await visit(salePath(id), { user: 3 }, async (one) => {
    await one.state('running');
    await one.button.click();
    await one.state('success');
    await one.page.getByRole('button', { name: 'English' }).click();
    assert.match(await one.words(), /^You got it/);
    assert.equal(await one.page.getAttribute('html', 'lang'), 'en');
    assert.equal(await one.page.locator('h1').innerText(), id % 2 === 1 ? 'Porcelain gaiwan' : 'Yixing clay teapot');
    await one.page.reload();
    await one.state('success');
    assert.match(await one.words(), /^You got it|already taken part/);
    assert.equal(await one.page.title(), 'Flash sale');
  });
});

test('however a clicker hammers, exactly one POST is sent', async () => {
  const id = await sale();

  await visit(salePath(id), { user: 4 }, async (one) => {
    await one.state('running');
    await frozen(stack.seckilld, async () => {
      await one.page.evaluate(() => {
        const button = document.getElementById('buy');
        for (let n = 0; n < 100; n += 1) {
          button.click();
        }
      });
      const { x, y, width, height } = await one.button.boundingBox();
      for (let n = 0; n < 30; n += 1) {
        await one.page.mouse.click(x + width / 2, y + height / 2);
      }
      await one.button.focus();
      for (let n = 0; n < 20; n += 1) {
        await one.page.keyboard.press(n % 2 === 0 ? 'Enter' : 'Space');
      }
      await one.state('queueing');
      assert.equal(await one.button.getAttribute('aria-disabled'), 'true');
      await one.shot('queueing-zh');
    });
    await one.state('success');
    await one.button.click({ force: true });
    assert.equal(one.posts.length, 1);
    assert.deepEqual(await posted(id), { accepted: 1 }, 'nginx counted one POST too');
  });
});

test('a repeat buyer is shown the order that is there', async () => {
  const id = await sale();
  const order = await buy(id, 5);

  await visit(salePath(id), { user: 5 }, async (one) => {
    await one.state('running');
    await one.button.click();
    await one.state('success');
    assert.match(await one.words(), /您已参与过该活动，这是您的订单/);
    assert.equal(await one.page.locator('#order-no').innerText(), order);
    assert.equal(one.posts.length, 1);
    assert.deepEqual(await posted(id), { accepted: 1, repeat: 1 });
  });
});

test('a reload while queueing goes on where it was, without another POST', async () => {
  const id = await sale();

  await visit(salePath(id), { user: 6 }, async (one) => {
    await one.state('running');
    await frozen(stack.seckilld, async (go) => {
      await one.button.click();
      await one.state('queueing');
      await one.page.reload();
      await one.state('queueing');
      go();
      await one.state('success');
    });
    assert.equal(await one.page.locator('#order-no').innerText(), await orderNo(id, 6));
    assert.equal(one.posts.length, 1);
  });
});

test('a failed order is told, with the reason', async () => {
  const id = await sale();

  await visit(salePath(id), { user: 7, locale: 'en-GB' }, async (one) => {
    await one.state('running');
    await frozen(stack.seckilld, async () => {
      await one.button.click();
      await one.state('queueing');
      await listeners(id);
      const failed = '{"success":false,"reason":"over_limit"}';
      await redis('SET', `seckill:result:7:{${id}}`, failed);
      await redis('PUBLISH', `seckill:results:{${id}}`, `7 ${failed}`);
      await one.state('failed');
      assert.match(await one.words(), /The order failed.*\(over_limit\)/);
      assert.equal(await one.button.innerText(), 'No luck');
      await one.shot('failed-en');
    });
  });
});

test('visitors of one tab do not see each other’s orders', async () => {
  const id = await sale();

  await visit(salePath(id), { user: 8 }, async (one) => {
    await one.state('running');
    await one.button.click();
    await one.state('success');
    await one.page.getByLabel('访客').selectOption('9');
    await one.state('running');
    assert.equal(await one.page.locator('#order').isVisible(), false);
    await one.page.getByLabel('访客').selectOption('8');
    await one.state('success');
    assert.equal(one.posts.length, 1);
  });
});
