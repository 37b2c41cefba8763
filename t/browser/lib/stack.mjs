/*
 * The private stack that BrowserTest.pm started, as the tests use it: sales to make,
 * servers to stop for a moment, and the truth in MySQL and in the counters.
 */

import { execFile, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

export const stack = JSON.parse(readFileSync(process.env.SECKILL_STACK, 'utf8'));

const tokens = new Map(JSON.parse(readFileSync(stack.users, 'utf8')).tokens.map(({ user, token }) => [user, token]));

export const token = (user) => tokens.get(String(user));
export const api = (path) => `${stack.base}/api/seckill/${path}`;

export async function sql(text) {
  const { stdout } = await run('mariadb',
    ['--no-defaults', '-uroot', '-S', stack.mysql, '--batch', '--skip-column-names', 'seckill', '-e', text]);
  return stdout.trim().split('\n').map((line) => line.split('\t'));
}

/* runs the code while no order of the activity can be written */
export async function withoutOrders(id, code) {
  const client = spawn('mariadb', ['--no-defaults', '-uroot', '-S', stack.mysql, '--batch', '--skip-column-names',
    '--unbuffered', 'seckill'], { stdio: ['pipe', 'pipe', 'inherit'] });
  const gone = new Promise((resolve) => { client.on('exit', resolve); });
  let locked = false;

  client.stdout.on('data', () => { locked = true; });
  client.stdin.write(`BEGIN; SELECT id FROM seckill_activities WHERE id = ${id} FOR UPDATE;\n`);
  try {
    await until(() => locked, 'the lock');
    await code();
  } finally {
    client.stdin.end('ROLLBACK;\n');
    await gone;
  }
}

export async function redis(...args) {
  const { stdout } = await run('redis-cli', ['-s', stack.redis.sock, ...args]);
  return stdout.trim();
}

export async function ctl(...args) {
  const [program, ...rest] = stack.ctl;
  return (await run(program, [...rest, ...args])).stdout;
}

let last = 0;

/* A new activity; it begins in startsIn whole seconds, 0: has begun already. */
export async function sale({ stock = 10, startsIn = 0, lasts = 3600, registered = false } = {}) {
  const id = last += 1;
  const product = id % 2 === 1 ? 1 : 2;

  await sql(`INSERT IGNORE INTO products (id, name, stock, price)
      VALUES (1, 'gaiwan', 100000, 99.00), (2, 'teapot', 100000, 199.00);
    INSERT INTO seckill_activities (id, product_id, seckill_price, stock_limit, by_registration, start_time, end_time)
      VALUES (${id}, ${product}, 9.90, ${stock}, ${registered ? 1 : 0},
        UTC_TIMESTAMP() + INTERVAL ${startsIn > 0 ? startsIn : -1} SECOND,
        UTC_TIMESTAMP() + INTERVAL ${startsIn + lasts} SECOND)`);
  await ctl('preheat', String(id), ...(startsIn > 0 ? [] : ['--late']));
  return id;
}

export async function post(id, user) {
  const response = await fetch(api(id), { method: 'POST', headers: { Authorization: `Bearer ${token(user)}` } });
  return response.json();
}

export async function result(id, user) {
  const response = await fetch(api(`result/${id}`), { headers: { Authorization: `Bearer ${token(user)}` } });
  return response.json();
}

/* buys and waits for the order; its number */
export async function buy(id, user) {
  const answer = await post(id, user);

  if (answer.code !== 0) {
    throw new Error(`user ${user} could not buy: ${JSON.stringify(answer)}`);
  }
  /* slower than the limit of result requests */
  return until(async () => (await result(id, user)).data?.order_no, 'an order', { every: 300 });
}

export async function orderNo(id, user) {
  const [row] = await sql(`SELECT order_no FROM seckill_orders WHERE activity_id = ${id} AND user_id = ${user}`);
  return row[0] || null;
}

/* what nginx counted for POSTs of an activity, by verdict */
export async function posted(id) {
  const status = await (await fetch(`${stack.base}/status`)).json();
  const { facts, queueing, success, failed, no_record, ...verdicts } = status.activities[id]?.verdicts ?? {};

  return verdicts;
}

export async function until(code, what, { ms = 20000, every = 20 } = {}) {
  const end = Date.now() + ms;

  for (;;) {
    const value = await code();
    if (value) {
      return value;
    }
    if (Date.now() > end) {
      throw new Error(`timed out waiting for ${what}`);
    }
    await sleep(every);
  }
}

/* what seckillctl changes when it closes or opens an activity */
export async function entry(id, state) {
  await redis('HSET', `seckill:activity:{${id}}`, 'state', state);
  await news(id);
}

/* nginx looks again at what it knows of the activity, within a second */
export async function news(id) {
  await redis('HINCRBY', `seckill:activity:{${id}}`, 'rev', '1');
  await redis('HINCRBY', 'seckill:control', 'rev', '1');
}

/* waits until so many listen for results of the activity */
export async function listeners(id, wanted = 1) {
  let count = null;

  try {
    await until(async () => {
      count = Number((await redis('PUBSUB', 'NUMSUB', `seckill:results:{${id}}`)).split('\n').at(-1));
      return count === wanted;
    }, '');
  } catch {
    throw new Error(`${count} instead of ${wanted} listen for results of activity ${id}`);
  }
}

/* runs the code while a server stands still, and lets it go whatever happens */
export async function frozen(pid, code) {
  process.kill(pid, 'SIGSTOP');
  try {
    return await code(() => process.kill(pid, 'SIGCONT'));
  } finally {
    process.kill(pid, 'SIGCONT');
  }
}

export { sleep };
