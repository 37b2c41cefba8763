/*
 * A plot of the last minutes, as SVG: lines, or bars on top of each other.  It
 * draws what it is given and knows nothing of the meaning.
 *
 * A cursor, by pointer or by arrow keys, belongs to all plots of the page: they
 * tell each other through "moved", and their legends show that moment.
 */

import { setAttribute, setText } from '../shared/dom.js';

const NS = 'http://www.w3.org/2000/svg';
const LEFT = 46;
const BOTTOM = 20;
const TOP = 6;
const RIGHT = 2;
const X_TICKS_S = [120, 90, 60, 30, 0];
const NARROW = 380;         /* there every other of them */

function make(name, attributes = {}) {
  const element = document.createElementNS(NS, name);

  for (const [key, value] of Object.entries(attributes)) {
    element.setAttribute(key, value);
  }
  return element;
}

const round = (n) => Math.round(n * 10) / 10;

export class Plot {
  #box;
  #series;
  #stacked;
  #scale;
  #format;
  #tell;
  #ago;
  #spanMs;
  #title = document.createElement('h2');
  #legend = document.createElement('ul');
  #svg = make('svg', { tabindex: '0', role: 'img' });
  #shapes = make('g');
  #grid = make('g');
  #cursor = make('line', { class: 'cursor' });
  #size = { width: 600, height: 200 };
  #samples = [];

  /* series: [{ key, value(sample) }]; scale(max) as in scale.js; format() is for the
     axis, tell() for the legend; moved(index) */
  constructor(box, { series, stacked = false, scale, format, tell = format, ago, spanMs, moved }) {
    this.#box = box;
    this.#series = series;
    this.#stacked = stacked;
    this.#scale = scale;
    this.#format = format;
    this.#tell = tell;
    this.#ago = ago;
    this.#spanMs = spanMs;

    for (const { key } of series) {
      const item = document.createElement('li');
      item.className = `s-${key}`;
      item.append(document.createElement('span'), ' ', document.createElement('b'));
      this.#legend.append(item);
    }
    this.#legend.className = 'legend';
    this.#svg.append(this.#grid, this.#shapes, this.#cursor);
    this.#title.id = `${box.id}-title`;
    box.setAttribute('aria-labelledby', this.#title.id);
    box.append(this.#title, this.#legend, this.#svg);

    this.#listen(moved);
    new ResizeObserver(() => {
      this.#size = { width: this.#svg.clientWidth || 600, height: this.#svg.clientHeight || 200 };
      this.draw(this.#samples, null);
    }).observe(this.#svg);
  }

  label(title, names) {
    setText(this.#title, title);
    [...this.#legend.children].forEach((item, i) => setText(item.firstChild, names[i]));
  }

  #listen(moved) {
    this.#svg.addEventListener('pointermove', (event) => {
      const x = event.clientX - this.#svg.getBoundingClientRect().left;
      moved(this.#nearest(x));
    });
    this.#svg.addEventListener('pointerleave', () => moved(null));
    this.#svg.addEventListener('keydown', (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];

      if (step !== undefined) {
        event.preventDefault();
        moved((at) => Math.min(this.#samples.length - 1, Math.max(0, (at ?? this.#samples.length - 1) + step)));
      } else if (event.key === 'Escape') {
        moved(null);
      }
    });
  }

  #nearest(x) {
    let best = null;

    this.#samples.forEach(({ at }, i) => {
      const away = Math.abs(this.#x(at) - x);
      if (best === null || away < best.away) {
        best = { i, away };
      }
    });
    return best?.i ?? null;
  }

  #x(at) {
    const end = this.#samples[this.#samples.length - 1].at;

    return LEFT + (this.#size.width - LEFT - RIGHT) * (1 - (end - at) / this.#spanMs);
  }

  #y(part) {
    return TOP + (this.#size.height - TOP - BOTTOM) * (1 - part);
  }

  draw(samples, cursor) {
    this.#samples = samples;
    if (samples.length === 0) {
      return;
    }
    const rows = samples.map((sample) => this.#series.map(({ value }) => value(sample)));
    const tops = rows.map((row) => (this.#stacked
      ? row.reduce((sum, value) => sum + (value ?? 0), 0) : Math.max(0, ...row)));
    const scale = this.#scale(Math.max(0, ...tops));

    this.#drawGrid(scale);
    this.#shapes.replaceChildren(...(this.#stacked ? this.#bars(rows, scale) : this.#lines(rows, scale)));
    this.#drawCursor(cursor);
    this.#fillLegend(rows[cursor ?? rows.length - 1] ?? []);
  }

  #drawGrid(scale) {
    const { width } = this.#size;
    const parts = [];

    for (const tick of scale.ticks) {
      const y = Math.round(this.#y(scale.at(tick)));
      const text = make('text', { class: 'axis', x: LEFT - 8, y: y + 4, 'text-anchor': 'end' });

      text.textContent = this.#format(tick);
      parts.push(make('line', { class: 'grid', x1: LEFT, x2: width - RIGHT, y1: y, y2: y }), text);
    }
    for (const seconds of X_TICKS_S.filter((s, i) => width > NARROW || i % 2 === 0)) {
      const part = 1 - (seconds * 1000) / this.#spanMs;
      const text = make('text', {
        class: 'axis',
        x: LEFT + (width - LEFT - RIGHT) * part,
        y: this.#size.height - 3,
        'text-anchor': part === 0 ? 'start' : part === 1 ? 'end' : 'middle',
      });

      text.textContent = this.#ago(seconds);
      parts.push(text);
    }
    this.#grid.replaceChildren(...parts);
  }

  /* pieces between the gaps, as lists of indexes */
  #pieces(known) {
    const pieces = [];
    let piece = [];

    this.#samples.forEach((sample, i) => {
      if (known(i)) {
        piece.push(i);
      } else if (piece.length > 0) {
        pieces.push(piece);
        piece = [];
      }
    });
    return piece.length > 0 ? [...pieces, piece] : pieces;
  }

  /* a lone point is a dot, by the round cap of its line */
  #path(indexes, y) {
    const dot = indexes.length === 1 ? 'h.01' : '';

    return indexes.map((i, n) => `${n === 0 ? 'M' : 'L'}${round(this.#x(this.#samples[i].at))} ${round(y(i))}`).join('') + dot;
  }

  /* the first series is drawn last, on top where they meet */
  #lines(rows, scale) {
    return this.#series.flatMap(({ key }, column) => {
      const y = (i) => this.#y(scale.at(rows[i][column]));

      return this.#pieces((i) => rows[i][column] !== null).flatMap((piece) => {
        const line = make('path', { class: `line s-${key}`, d: this.#path(piece, y) });

        return this.#series.length > 1 ? [line] : [line, this.#under(key, piece, y)];
      });
    }).reverse();
  }

  #under(key, piece, y) {
    const [first, last] = [piece[0], piece[piece.length - 1]].map((i) => round(this.#x(this.#samples[i].at)));
    const floor = this.#y(0);

    return make('path', { class: `under s-${key}`, d: `${this.#path(piece, y)}L${last} ${floor}L${first} ${floor}Z` });
  }

  /* A rate belongs to the time since the sample before: a bar is that wide. */
  #bars(rows, scale) {
    const sums = rows.map(() => 0);

    return this.#series.map(({ key }, column) => {
      const bars = rows.map((row, i) => {
        const floor = sums[i];

        sums[i] += row[column] ?? 0;
        return i > 0 && sums[i] > floor ? this.#bar(i, scale.at(floor), scale.at(sums[i])) : '';
      });

      return make('path', { class: `area s-${key}`, d: bars.join('') });
    });
  }

  #bar(i, from, to) {
    const [left, right] = [i - 1, i].map((n) => round(Math.max(LEFT, this.#x(this.#samples[n].at))));

    return `M${left} ${round(this.#y(from))}V${round(this.#y(to))}H${right}V${round(this.#y(from))}Z`;
  }

  #drawCursor(cursor) {
    const sample = cursor === null ? undefined : this.#samples[cursor];

    this.#cursor.toggleAttribute('hidden', sample === undefined);
    this.#cursor.style.display = sample === undefined ? 'none' : '';
    if (sample !== undefined) {
      const x = round(this.#x(sample.at));

      for (const [name, value] of Object.entries({ x1: x, x2: x, y1: TOP, y2: this.#size.height - BOTTOM })) {
        setAttribute(this.#cursor, name, value);
      }
    }
  }

  #fillLegend(row) {
    const said = [];

    [...this.#legend.children].forEach((item, i) => {
      const text = row[i] === null || row[i] === undefined ? '–' : this.#tell(round(row[i]));

      setText(item.lastChild, text);
      said.push(`${item.firstChild.textContent} ${text}`);
    });
    setAttribute(this.#svg, 'aria-label', `${this.#title.textContent}: ${said.join(', ')}`);
  }
}
