/* Keyboard, screen reader, small screens, contrast, motion. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { frozen, sale, stack } from './lib/stack.mjs';
import { axeSource, salePath, visit } from './lib/visit.mjs';

const active = (one) => one.page.evaluate(() => document.activeElement.id || document.activeElement.className);

async function axe(one) {
  /* the page's policy forbids added scripts, the debugger does not ask it */
  await one.page.evaluate(readFileSync(axeSource, 'utf8'));
  const { violations, passes } = await one.page.evaluate(() => window.axe.run(document, {
    runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'],
  }));

  assert.ok(passes.length > 15, 'axe has looked');
  assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join('; ')}`), []);
}

test('everything has its role and its name', async () => {
  const id = await sale();

  await visit(salePath(id), { user: 35, locale: 'en-GB' }, async ({ page, ...one }) => {
    await page.waitForSelector('body[data-state="running"]');
    const button = page.getByRole('button', { name: 'Buy now' });

    assert.equal(await button.count(), 1);
    assert.equal(await button.getAttribute('aria-disabled'), 'false');
    assert.equal(await button.getAttribute('aria-describedby'), 'status');
    assert.equal(await page.getByRole('heading', { level: 1 }).count(), 1);
    assert.equal(await page.getByRole('main').count(), 1);
    assert.equal(await page.getByRole('timer').count(), 1);
    assert.match(await page.getByRole('timer').innerText(), /\d+ hours \d+ minutes \d+ seconds/);
    assert.equal(await page.getByRole('status').getAttribute('aria-live'), 'polite');
    assert.equal(await page.getByRole('combobox', { name: 'Visitor' }).count(), 1);
    assert.equal(await page.getByRole('list', { name: 'Steps' }).getByRole('listitem').count(), 3);
  });
});

test('the whole purchase by keyboard alone, and the focus stays where it was', async () => {
  const id = await sale();

  await visit(salePath(id), { user: 36 }, async (one) => {
    await one.state('running');
    await one.page.keyboard.press('Tab');
    assert.equal(await active(one), 'skip');
    await one.page.keyboard.press('Enter');
    for (let n = 0; n < 3 && await active(one) !== 'buy'; n += 1) {
      await one.page.keyboard.press('Tab');
    }
    assert.equal(await active(one), 'buy', 'the skip link leads to the button');
    const outline = await one.button.evaluate((element) => getComputedStyle(element).outlineStyle);
    assert.equal(outline, 'solid', 'the focus can be seen');

    await one.page.keyboard.press('Enter');
    await one.state('success');
    assert.equal(await active(one), 'buy');
    assert.equal(one.posts.length, 1);
  });
});

for (const colorScheme of ['light', 'dark']) {
  test(`axe finds nothing in the ${colorScheme}: before, after, and on the operator’s page`, async () => {
    const id = await sale();

    await visit(salePath(id), { user: 37, colorScheme, locale: 'en-GB' }, async (one) => {
      await one.state('running');
      await axe(one);
      await one.button.click();
      await one.state('success');
      await one.page.waitForTimeout(600);
      await axe(one);
    });
    await visit('/live.html', { colorScheme }, async (one) => {
      await one.page.waitForSelector('#totals tr');
      await axe(one);
    });
  });
}

test('nothing is cut off on a narrow phone, in both languages', async () => {
  const id = await sale();

  for (const locale of ['zh-CN', 'en-GB']) {
    for (const path of [salePath(id), '/live.html']) {
      await visit(path, { user: 38, locale, viewport: { width: 320, height: 640 }, isMobile: true }, async (one) => {
        await one.page.waitForSelector('body[data-state="running"], #totals tr');
        const wide = await one.page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= 320, `${path} is ${wide} px wide in ${locale}`);
      });
    }
  }
});

test('who asked for less motion gets none', async () => {
  const id = await sale();
  const later = await sale({ startsIn: 30 });
  const moving = (one) => one.page.evaluate(() => document.getAnimations()
    .filter((animation) => animation.effect.getComputedTiming().duration > 1).length);

  for (const [user, reducedMotion, less] of [[39, 'reduce', true], [40, 'no-preference', false]]) {
    await visit(salePath(id), { user, reducedMotion }, async (one) => {
      await one.state('running');
      await frozen(stack.seckilld, async () => {
        await one.button.click();
        await one.state('queueing');
        assert.equal(await moving(one) === 0, less, `in the queue, ${reducedMotion}`);
      });
    });
    await visit(salePath(later), { user, reducedMotion }, async (one) => {
      await one.state('not_started');
      assert.equal(await one.page.locator('#tenths').textContent() === '', less, `tenths, ${reducedMotion}`);
    });
  }
});
