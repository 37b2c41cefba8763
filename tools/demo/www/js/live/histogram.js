/*
 * Percentiles of a histogram: counts per bucket, the last one without a bound.
 * Within a bucket the values are taken to be spread evenly; of the first one no
 * more is said than its bound, "at most".
 */

export function percentile(bounds, counts, part) {
  const total = counts.reduce((sum, n) => sum + n, 0);

  if (total === 0) {
    return null;
  }
  const rank = part * total;
  let below = 0;

  for (let i = 0; i < counts.length; i += 1) {
    if (counts[i] > 0 && below + counts[i] >= rank) {
      if (i === 0) {
        return bounds[0];
      }
      const low = bounds[i - 1];
      /* of the last bucket only its lower end is known */
      const high = i < bounds.length ? bounds[i] : low;

      return low + (high - low) * ((rank - below) / counts[i]);
    }
    below += counts[i];
  }
  return bounds[bounds.length - 1];
}
