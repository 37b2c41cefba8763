/*
 * The operator's page: reads the status once a second, keeps two minutes of
 * readings, and shows them as figures, plots and totals.
 */

import { byId, query, setAttribute, setText } from './shared/dom.js';
import { languageButton, t, translate } from './shared/text.js';
import { Plot } from './live/plot.js';
import { formatCount, formatLatency, formatMs, linear, logarithmic } from './live/scale.js';
import { Queue, queueOf } from './live/queue.js';
import { ALL, read, sample } from './live/status.js';
import { groups } from './live/verdicts.js';

const EVERY_MS = 1000;
const SPAN_MS = 120000;
const LOWEST_MS = 1;        /* of the latency plots, as of the histograms */

const place = (name) => document.querySelector(`meta[name="${name}"]`).content;
const url = place('seckill-status');
const orders = new Queue(place('seckilld-metrics'));
const PERCENTILES = ['p50', 'p90', 'p99'];

const readings = [];        /* of the last two minutes, null where one failed */
let samples = [];           /* of the chosen activity */
let cursor = null;          /* index of a sample, or null for now */
let activity = query.get('activity') ?? ALL;
let mood = null;            /* key of the line of state */

const ago = (seconds) => (seconds === 0 ? t('live_now') : t('live_ago', { n: seconds }));

function moved(to) {
  cursor = typeof to === 'function' ? to(cursor) : to;
  draw();
}

const common = { ago, spanMs: SPAN_MS, moved };
const percentiles = (of) => ({
  series: PERCENTILES.map((key) => ({ key, value: (one) => one[of][key] })),
  scale: (max) => logarithmic(max, LOWEST_MS),
  format: formatMs,
  tell: formatLatency,
  ...common,
});

const plots = {
  requests: new Plot(byId('plot-requests'), {
    series: groups.map((key) => ({ key, value: (one) => one.requests?.[key] ?? null })),
    stacked: true,
    scale: linear,
    format: formatCount,
    ...common,
  }),
  stock: new Plot(byId('plot-stock'), {
    series: [{ key: 'stock', value: (one) => one.stock }], scale: linear, format: formatCount, ...common,
  }),
  latency: new Plot(byId('plot-latency'), percentiles('latency')),
  waiting: new Plot(byId('plot-waiting'), {
    series: ['pending', 'waiters', 'queue'].map((key) => ({ key, value: (one) => one[key] })),
    scale: linear,
    format: formatCount,
    ...common,
  }),
  redis: new Plot(byId('plot-redis'), percentiles('redis')),
};

function label() {
  plots.requests.label(t('plot_requests'), groups.map((group) => t(`group_${group}`)));
  plots.stock.label(t('plot_stock'), [t('series_stock')]);
  plots.waiting.label(t('plot_waiting'), [t('series_pending'), t('series_waiters'), t('series_queue')]);
  for (const name of ['latency', 'redis']) {
    plots[name].label(t(`plot_${name}`), PERCENTILES.map((key) => t(`series_${key}`)));
  }
}

/* the samples of the chosen activity, from the readings */
function resample() {
  samples = readings.map((reading, i) => (reading.status === null
    ? gap(reading.at)
    : {
      ...sample(reading, i > 0 && readings[i - 1].status !== null ? readings[i - 1] : null, activity),
      queue: queueOf(reading.queue, activity),
    }));
}

const nothing = { p50: null, p90: null, p99: null };
const gap = (at) => ({
  at, stock: null, pending: null, waiters: null, queue: null, requests: null, latency: nothing, redis: nothing, totals: null,
});

function draw() {
  for (const plot of Object.values(plots)) {
    plot.draw(samples, cursor);
  }
}

function showFigures() {
  const last = readings.findLast((reading) => reading.status !== null);

  if (last === undefined) {
    return;
  }
  const { status } = last;
  const now = samples[readings.indexOf(last)];
  const failed = Object.values(status.redis_failed).reduce((sum, n) => sum + n, 0);
  const rate = now.requests === null ? null : Object.values(now.requests).reduce((sum, n) => sum + n, 0);
  const p99 = samples.findLast((one) => one.latency.p99 !== null)?.latency.p99;

  setText(byId('figure-stock'), now.stock === null ? '–' : String(now.stock));
  setText(byId('figure-accepted'), String(now.totals.accepted));
  setText(byId('figure-rate'), rate === null ? '–' : formatCount(Math.round(rate)));
  setText(byId('figure-p99'), p99 === undefined ? '–' : formatLatency(p99));
  setText(byId('figure-waiting'), formatCount(now.pending + now.waiters));
  setText(byId('figure-queue'), now.queue === null ? '–' : formatCount(now.queue));
  setText(byId('figure-redis'), t('live_redis_of', { up: status.workers_redis_up, all: status.workers }));
  setText(byId('figure-failed'), failed > 0 ? t('live_redis_failed', { n: failed }) : '');
  setText(byId('version'), `nginx-seckill ${status.version}`);
  showTotals(now.totals);
  showActivities(Object.keys(status.activities));
}

/* rows are made once and then only filled */
function showTotals(totals) {
  const body = byId('totals');
  const sum = Object.values(totals).reduce((all, n) => all + n, 0);

  if (body.children.length === 0) {
    body.append(...groups.map(totalRow));
  }
  groups.forEach((group, i) => {
    const [name, count, share] = body.children[i].children;
    const part = sum === 0 ? 0 : totals[group] / sum;

    setText(name, t(`group_${group}`));
    setText(count, totals[group].toLocaleString('en'));
    share.querySelector('i').hidden = part === 0;
    share.firstChild.style.setProperty('--share', part);
    setText(share.querySelector('span'), `${(100 * part).toFixed(part > 0 && part < 0.1 ? 1 : 0)}%`);
  });
}

function totalRow(group) {
  const row = document.createElement('tr');
  const name = document.createElement('th');
  const share = document.createElement('td');
  const bar = document.createElement('div');

  row.className = `s-${group}`;
  name.scope = 'row';
  bar.className = 'share-bar';
  bar.append(document.createElement('i'), document.createElement('span'));
  share.append(bar);
  row.append(name, document.createElement('td'), share);
  return row;
}

function showActivities(ids) {
  const select = byId('activity');
  const wanted = [ALL, ...new Set([...(activity === ALL ? [] : [activity]), ...ids])];

  if (wanted.join() !== [...select.options].map((option) => option.value).join()) {
    select.replaceChildren(...wanted.map((id) => new Option(id, id)));
    select.value = activity;
  }
  for (const option of select.options) {
    setText(option, option.value === ALL ? t('live_all') : option.value === 'other' ? t('live_other') : option.value);
  }
}

function showMood(key, tone) {
  mood = { key, tone };
  setText(byId('state'), t(key));
  setAttribute(byId('state'), 'data-tone', tone);
}

async function step() {
  let reading;

  try {
    const [status, queue] = await Promise.all([read(url), orders.read()]);

    reading = { ...status, queue };
    showMood('live_fresh', 'good');
  } catch {
    reading = { at: performance.now(), status: null, queue: null };
    showMood('live_lost', 'bad');
  }
  readings.push(reading);
  while (readings[0].at < reading.at - SPAN_MS) {
    readings.shift();
    cursor = cursor > 0 ? cursor - 1 : cursor;
  }
  resample();
  showFigures();
  draw();
}

/* a page that nobody sees asks nothing; what it missed is a gap */
async function run() {
  for (;;) {
    const began = performance.now();

    if (document.visibilityState === 'visible') {
      await step();
    } else if (readings.length > 0) {
      showMood('live_paused', 'wait');
      if (readings[readings.length - 1].status !== null) {
        readings.push({ at: began, status: null, queue: null });
      }
    }
    await new Promise((resolve) => { setTimeout(resolve, Math.max(100, EVERY_MS - (performance.now() - began))); });
  }
}

function speakAgain() {
  translate('title_live');
  label();
  if (mood !== null) {
    showMood(mood.key, mood.tone);
  }
  showFigures();
  draw();
}

byId('activity').addEventListener('change', (event) => {
  activity = event.target.value;
  resample();
  showFigures();
  draw();
});

languageButton(byId('language'), speakAgain);
speakAgain();
run();
