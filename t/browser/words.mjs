/* What needs no browser: the dictionaries and the arithmetic of the pages. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

const js = new URL('../../tools/demo/www/js/', import.meta.url);
const load = (path) => import(new URL(path, js));

test('both languages say the same things, with the same names to fill in', async () => {
  const { default: zh } = await load('shared/text-zh.js');
  const { default: en } = await load('shared/text-en.js');
  const names = (text) => [...text.matchAll(/\{\w+\}/g)].map(String).sort();

  assert.deepEqual(Object.keys(zh), Object.keys(en));
  for (const key of Object.keys(zh)) {
    assert.deepEqual(names(zh[key]), names(en[key]), key);
  }
});

test('percentiles are read from a histogram', async () => {
  const { percentile } = await load('live/histogram.js');
  const bounds = [1, 2, 5];

  assert.equal(percentile(bounds, [0, 0, 0, 0], 0.5), null);
  assert.equal(percentile(bounds, [10, 0, 0, 0], 0.5), 1, 'at most the first bound');
  assert.equal(percentile(bounds, [0, 100, 0, 0], 0.99), 1.99);
  assert.equal(percentile(bounds, [50, 0, 50, 0], 0.99), 2 + 3 * (49 / 50));
  assert.equal(percentile(bounds, [0, 0, 0, 7], 0.5), 5, 'above the last bound only the bound is known');
});

test('a counter that began anew is no negative rate', async () => {
  const { sample, ALL } = await load('live/status.js');
  const histogram = { bounds_ms: [1], counts: [0, 0] };
  const reading = (at, accepted) => ({
    at,
    status: {
      activities: { 7: { stock: 3, verdicts: { accepted, teapot: 2 } } }, pending: 0, waiters: 0,
      requests: histogram, redis_calls: histogram,
    },
  });
  const first = reading(0, 100);

  assert.equal(sample(reading(2000, 300), first, '7').requests.accepted, 100);
  assert.equal(sample(reading(1000, 40), first, '7').requests.accepted, 40);
  assert.equal(sample(first, null, ALL).requests, null);
  assert.equal(sample(first, null, ALL).totals.refused, 2, 'a verdict of tomorrow is not lost');
  assert.equal(sample(first, null, '8').stock, null);
});

test('purchases on their way are read from what Prometheus reads', async () => {
  const { parseQueue, queueOf } = await load('live/queue.js');
  const queue = parseQueue(['# TYPE seckilld_unread gauge', 'seckilld_unread{activity="7"} 40', 'seckilld_unread{activity="8"} 0',
    'seckilld_pending{activity="7"} 2', 'seckilld_oldest_age_seconds{activity="7"} 0.5', ''].join('\n'));

  assert.deepEqual(queue, { 7: 42, 8: 0 });
  assert.equal(queueOf(queue, '7'), 42);
  assert.equal(queueOf(queue, 'all'), 42);
  assert.equal(queueOf(queue, '9'), null, 'what is not known is not zero');
  assert.equal(queueOf(null, 'all'), null);
  assert.deepEqual(parseQueue('seckilld_activities 0\n'), {}, 'no sale, nothing waits');
  assert.equal(parseQueue('seckilld_mysql_up 1\n'), null, 'F-I2: seckilld does not know: not zero');
});

test('axes have round numbers and reach the largest value', async () => {
  const { linear, logarithmic, formatCount, formatMs } = await load('live/scale.js');

  for (const max of [0, 1, 7, 99, 100, 101, 5120, 1e6]) {
    const { ticks, at } = linear(max);
    assert.ok(at(max) <= 1 && ticks.length >= 3 && ticks.length <= 7, `${max}: ${ticks}`);
    assert.ok(ticks.every(Number.isInteger), `${max}: ${ticks}`);
  }
  assert.deepEqual(logarithmic(30, 0.1).ticks.map((tick) => +tick.toFixed(6)), [0.1, 1, 10, 100]);
  assert.deepEqual([0, 9.5, 1234, 10000, 25300, 2.5e6].map(formatCount), ['0', '9.5', '1234', '10k', '25.3k', '2.5M']);
  assert.deepEqual([0.1, 12.3, 2500].map(formatMs), ['0.1 ms', '12 ms', '2.5 s']);
});
