/*
 * The sale's page: puts the offer, the visitor and the purchase together and
 * shows what describe() says of them, ten times a second.
 */

import { byId, query, setAttribute, setText } from './shared/dom.js';
import { languageButton, t, translate } from './shared/text.js';
import { Api } from './sale/api.js';
import { ServerClock } from './sale/clock.js';
import { Countdown } from './sale/countdown.js';
import { describe } from './sale/describe.js';
import { Offer } from './sale/offer.js';
import { product } from './sale/products.js';
import { Purchase } from './sale/purchase.js';
import { Visitor } from './sale/visitor.js';

const TICK_MS = 100;
const SETTLED_MS = 3000;    /* facts asked for that long after a verdict are newer than it */
const DEMO_SALES = ['1', '2'];

const activity = /^[1-9]\d{0,19}$/.test(query.get('activity') ?? '') ? query.get('activity') : '1';
const prefix = document.querySelector('meta[name="seckill-prefix"]').content;

const clock = new ServerClock();
const api = new Api(prefix, activity, clock);
const countdown = new Countdown();
const offer = new Offer(api, clock, factsChanged);
const visitor = new Visitor(byId('visitor'), visitorChanged);

let purchase = new Purchase(api, activity, '', show);
let shown = null;           /* what describe() said last */

function visitorChanged() {
  purchase.end();
  api.token = visitor.token;
  purchase = new Purchase(api, activity, visitor.user, show);
  purchase.resume();
  show();
}

/* units that came back, or a window that opened */
function factsChanged() {
  const newer = offer.askedAt > (purchase.state.at ?? Infinity) + SETTLED_MS;

  if (newer && offer.phase === 'running') {
    purchase.reopen();
  }
  show();
}

function leftMs(phase) {
  if (offer.facts === null || phase === 'ended') {
    return null;
  }
  const end = phase === 'not_started' || clock.now() < offer.facts.start_ms
    ? offer.facts.start_ms : offer.facts.end_ms;

  return Math.max(0, end - clock.now());
}

function show() {
  const { phase } = offer;
  const { state } = purchase;
  const view = describe(phase, state, visitor.token !== null);

  setAttribute(document.body, 'data-phase', phase);
  setAttribute(document.body, 'data-state', view.name);
  setText(byId('phase'), t(`phase_${phase}`));
  countdown.show(phase, leftMs(phase));

  showStatus(view, state);
  showButton(view.button);
  showSteps(view);
  showSeal(view.name);
  shown = view;
}

function showStatus(view, state) {
  const box = byId('status');

  setAttribute(box, 'data-state', view.name);
  setAttribute(box, 'data-tone', view.tone);
  setAttribute(box, 'data-transport', view.name === 'queueing' ? state.transport : null);
  setText(byId('status-title'), view.title);
  setText(byId('status-detail'), view.detail);
  byId('order').hidden = view.orderNo === undefined;
  setText(byId('order-no'), view.orderNo ?? '');
}

/* never "disabled": the focus would be lost */
function showButton(button) {
  const element = byId('buy');

  setAttribute(element, 'aria-disabled', button.action === null ? 'true' : 'false');
  setAttribute(element, 'aria-busy', button.busy ? 'true' : null);
  setAttribute(element, 'data-kind', button.kind);
  setText(byId('buy-text'), button.text);
}

function showSteps(view) {
  [...byId('steps').children].forEach((item, i) => {
    item.classList.toggle('done', i < view.done);
    setAttribute(item, 'aria-current', view.going && i === view.done ? 'step' : null);
  });
}

function showSeal(name) {
  const text = { success: 'seal_won', sold_out: 'seal_gone', ended: 'seal_ended' }[name];

  byId('seal').hidden = text === undefined;
  setAttribute(byId('seal'), 'data-tone', name === 'success' ? 'won' : 'off');
  setText(byId('seal'), text === undefined ? '' : t(text));
}

function showProduct() {
  const { facts } = offer;

  if (facts === null) {
    return;
  }
  const { name, note, was, picture } = product(facts.product_id);

  setText(byId('product-name'), name);
  setText(byId('product-note'), note);
  setText(byId('price'), `¥${facts.price}`);
  byId('was').hidden = was === null;
  setText(byId('was'), was === null ? '' : `¥${was}`);
  setAttribute(byId('was'), 'aria-label', was === null ? null : `${t('price_was')} ¥${was}`);
  setText(byId('limit'), facts.max_quantity > 1 ? t('limit_many', { n: facts.max_quantity }) : t('limit_one'));
  setAttribute(byId('picture'), 'src', picture);
}

/* links between the demo's sales and to the operator's page */
function showDemo() {
  const link = (href, text) => {
    const element = document.createElement('a');
    element.href = href;
    element.textContent = text;
    return element;
  };
  const sales = DEMO_SALES.flatMap((id) => [link(`?activity=${id}`, t('demo_sale', { id })), ' · ']);

  byId('demo').replaceChildren(t('demo_sales'), ...sales, link(`live.html?activity=${activity}`, t('demo_live')));
}

const actions = {
  buy: () => purchase.buy(),
  check: () => purchase.check(),
  refresh: () => offer.refresh(),
  login: () => visitor.ask(),
};

/* show() has changed the button before the next click of the same turn is seen */
byId('buy').addEventListener('click', () => {
  if (shown.button.action !== null) {
    actions[shown.button.action]();
    show();
  }
});

function speakAgain() {
  translate('title_sale');
  visitor.translate();
  showProduct();
  showDemo();
  show();
}

languageButton(byId('language'), speakAgain);

/* back from sleep, from another tab, from a tunnel */
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') {
    offer.refresh();
  }
});
addEventListener('online', () => {
  offer.refresh();
  purchase.check();
});

speakAgain();
setInterval(() => {
  show();
  showProduct();
}, TICK_MS);

offer.refresh();
await visitor.load();
visitorChanged();
