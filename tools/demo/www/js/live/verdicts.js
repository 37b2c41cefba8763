/*
 * The verdicts of src/shared/sk_verdicts_x.h in the groups that the plots show.
 * A verdict that is not known here counts as a refusal, so that none is lost.
 */

export const groups = ['accepted', 'repeat', 'sold_out', 'limited', 'refused', 'trouble', 'results', 'facts'];

const groupOf = {
  accepted: 'accepted',
  repeat: 'repeat',
  sold_out: 'sold_out',
  limited: 'limited',
  unknown: 'trouble',
  busy: 'trouble',
  closed: 'trouble',
  queueing: 'results',
  success: 'results',
  failed: 'results',
  no_record: 'results',
  facts: 'facts',
};

/* counts by group, of { word: count } */
export function grouped(verdicts) {
  const counts = Object.fromEntries(groups.map((group) => [group, 0]));

  for (const [word, count] of Object.entries(verdicts)) {
    counts[groupOf[word] ?? 'refused'] += count;
  }
  return counts;
}
