/*
 * The tests of the pages that SECKILL_TESTS names, in one process with one
 * browser, one after the other.  BrowserTest.pm has the stack ready.
 */

import { after, before } from 'node:test';
import { start, stop } from './lib/visit.mjs';

before(async () => {
  console.log(`# chromium ${await start()}`);
});
after(stop);

for (const name of process.env.SECKILL_TESTS.split(' ')) {
  await import(`./${name}.mjs`);
}
