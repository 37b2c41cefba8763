/* The catalogue of the demo: what a shop knows of its products, by product id. */

import { t, language } from '../shared/text.js';

const products = {
  1: {
    zh: { name: '白瓷青花盖碗', note: '手绘兰草，150 毫升，配茶托' },
    en: { name: 'Porcelain gaiwan', note: 'Hand-painted orchid, 150 ml, with saucer' },
    was: '99.00',
    picture: 'img/gaiwan.svg',
  },
  2: {
    zh: { name: '宜兴紫砂壶', note: '全手工，240 毫升' },
    en: { name: 'Yixing clay teapot', note: 'Made by hand, 240 ml' },
    was: '199.00',
    picture: 'img/teapot.svg',
  },
};

export function product(id) {
  const found = products[id];

  if (found === undefined) {
    return { name: t('product_unknown', { id }), note: '', was: null, picture: 'img/parcel.svg' };
  }
  return { ...found[language()], was: found.was, picture: found.picture };
}
