/*
 * What the visitor sees in every situation: a pure function from the phase of
 * the offer and the state of the purchase to words, a tone, the one button, and
 * how many of the three steps are done; the next one is under way when "going".
 */

import { t } from '../shared/text.js';

/* button: key of its text, what it does (null: nothing), kind */
const button = (text, action = null, kind = 'first') => ({ text: t(text), action, busy: false, kind });
const busy = (text) => ({ text: t(text), action: null, busy: true, kind: 'first' });

function wait(state) {
  const seconds = Math.max(1, Math.ceil((state.until - performance.now()) / 1000));

  return { text: t('button_wait', { n: seconds }), action: null, busy: false, kind: 'first' };
}

const words = (name, tone, done, of, detail = `${name}_detail`, values = {}) => ({
  tone, done, going: of.busy, button: of, title: t(`${name}_title`), detail: t(detail, values),
});

const phases = {
  loading: () => words('loading', 'idle', 0, button('button_loading')),
  lost: () => words('lost', 'warn', 0, button('button_again', 'refresh', 'second')),
  missing: () => words('missing', 'idle', 0, button('button_missing')),
  not_started: () => words('not_started', 'idle', 0, button('button_not_started')),
  running: (signedIn) => (signedIn
    ? words('running', 'idle', 0, button('button_buy', 'buy'))
    : words('login', 'warn', 0, button('button_login', 'login', 'second'))),
  closed: () => words('closed', 'warn', 0, button('button_closed')),
  sold_out: () => words('sold_out', 'idle', 0, button('button_sold_out')),
  ended: () => words('ended', 'idle', 0, button('button_ended')),
};

const states = {
  sending: () => words('sending', 'wait', 0, busy('button_sending')),
  queueing: (state) => words('queueing', state.lost ? 'warn' : 'wait', 1, busy('button_queueing'),
    state.lost ? 'queueing_lost' : state.repeat ? 'queueing_repeat' : 'queueing_detail'),
  late: () => words('late', 'warn', 1, button('button_check', 'check', 'second')),
  success: (state) => ({
    ...words('success', 'good', 3, button('button_success', null, 'good'), state.repeat ? 'success_repeat' : 'success_detail'),
    orderNo: state.orderNo,
  }),
  failed: (state) => words('failed', 'bad', 3, button('button_failed'),
    state.reason ? 'failed_reason' : 'failed_detail', state),
  sold_out: () => words('sold_out', 'bad', 3, button('button_sold_out')),
  ended: () => words('ended', 'idle', 0, button('button_ended')),
  early: (state) => words('not_started', 'idle', 0, wait(state)),
  limited: (state) => words('limited', 'warn', 0, wait(state)),
  busy: (state) => words('busy', 'warn', 0, wait(state)),
  closed: (state) => words('closed', 'warn', 0, wait(state)),
  unsure: () => words('unsure', 'warn', 0, busy('button_checking')),
  offline: () => words('offline', 'warn', 0, button('button_check', 'check', 'second')),
  not_taken: () => words('not_taken', 'warn', 0, button('button_again', 'buy')),
  no_record: () => words('no_record', 'warn', 0, button('button_again', 'buy')),
  not_eligible: () => words('not_eligible', 'bad', 0, button('button_not_eligible')),
  login: (state) => words('login', 'warn', 0, button('button_login', 'login', 'second'),
    state.expired ? 'login_expired' : 'login_detail'),
  error: (state) => words('error', 'bad', 0, button('button_again', 'buy', 'second'), 'error_detail', state),
};

/* a state of the purchase that lets the visitor buy: the phase has its say too */
const OPEN = new Set(['not_taken', 'no_record', 'error']);

export function describe(phase, state, signedIn) {
  if (state.name === 'idle' || (OPEN.has(state.name) && phase !== 'running')) {
    return { name: phase, ...phases[phase](signedIn) };
  }
  return { name: state.name, ...states[state.name](state) };
}
