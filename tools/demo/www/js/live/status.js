/*
 * The status endpoint, asked once a second, as samples: rates from counters,
 * gauges as they are.  A counter that went back has begun anew with nginx.
 */

import { percentile } from './histogram.js';
import { groups, grouped } from './verdicts.js';

const CALL_MS = 4000;

export const ALL = 'all';

const grown = (now, before) => (now >= before ? now - before : now);

function latency(now, before) {
  const counts = now.counts.map((n, i) => grown(n, before.counts[i]));

  return {
    p50: percentile(now.bounds_ms, counts, 0.5),
    p90: percentile(now.bounds_ms, counts, 0.9),
    p99: percentile(now.bounds_ms, counts, 0.99),
  };
}

/* verdicts of one activity, or of all together */
function verdictsOf(status, activity) {
  if (activity !== ALL) {
    return status.activities[activity]?.verdicts ?? {};
  }
  const sum = {};

  for (const { verdicts } of Object.values(status.activities)) {
    for (const [word, count] of Object.entries(verdicts)) {
      sum[word] = (sum[word] ?? 0) + count;
    }
  }
  return sum;
}

function stockOf(status, activity) {
  const known = Object.entries(status.activities)
    .filter(([id, { stock }]) => stock !== undefined && (activity === ALL || id === activity));

  return known.length === 0 ? null : known.reduce((sum, [, { stock }]) => sum + stock, 0);
}

export async function read(url) {
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), CALL_MS);

  try {
    const response = await fetch(url, { cache: 'no-store', signal: stop.signal });

    if (!response.ok) {
      throw new Error(`HTTP ${response.status}`);
    }
    return { at: performance.now(), status: await response.json() };
  } finally {
    clearTimeout(timer);
  }
}

/* what happened between two readings; null where it can't be known */
export function sample(reading, before, activity) {
  const { at, status } = reading;
  const counts = grouped(verdictsOf(status, activity));
  const made = {
    at,
    stock: stockOf(status, activity),
    pending: status.pending,
    waiters: status.waiters,
    requests: null,
    latency: { p50: null, p90: null, p99: null },
    redis: { p50: null, p90: null, p99: null },
    totals: counts,
  };

  if (before !== null) {
    const earlier = grouped(verdictsOf(before.status, activity));
    const seconds = (at - before.at) / 1000;

    made.requests = Object.fromEntries(
      groups.map((group) => [group, grown(counts[group], earlier[group]) / seconds]));
    made.latency = latency(status.requests, before.status.requests);
    made.redis = latency(status.redis_calls, before.status.redis_calls);
  }
  return made;
}
