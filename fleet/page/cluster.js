// Who leads, since when, and the processes.

import { ago, bar, byId, keep, make, write } from './dom.js';
import { ask } from './dialogs.js';
import { call } from './api.js';

const SPAN_MS = 600000;
const COLOURS = ['--one', '--two', '--three', '--four', '--five'];
const HISTORY = 'baton-fleet-leaders';

// [{at, leader, epoch}], the oldest first; as long as the tab lives.
const history = JSON.parse(sessionStorage.getItem(HISTORY) || '[]');
const colours = new Map();
const lease = bar('lease');
const name = make('b', {}, '–');
const epoch = make('span');
let view = { leader: '', processes: [], leaseMs: null, leaseAt: 0, leaseMost: 1 };

function colour(leader) {
  if (!colours.has(leader)) colours.set(leader, COLOURS[colours.size % COLOURS.length]);
  return `var(${colours.get(leader)})`;
}

function note(leader, number) {
  const last = history.at(-1);
  if (last && last.leader === leader && last.epoch === number) return;
  history.push({ at: Date.now(), leader, epoch: number });
  while (history.length > 200) history.shift();
  sessionStorage.setItem(HISTORY, JSON.stringify(history));
}

export function open() {
  byId('leader').append(name, epoch, lease, make('button', {
    type: 'button',
    onclick: () => ask('Pass leadership on', 'What acts under it stops first; then another process leads.', [{
      name: 'to', label: 'To', choices: [['', 'the best placed'],
        ...view.processes.filter((one) => one.name !== view.leader && one.alive)
          .map((one) => [one.name, one.name])],
    }], 'Pass', ({ to }) => call('POST', '/api/leader/pass', to ? { to } : {})),
  }, 'Pass leadership …'));
  lease.hidden = true;
  setInterval(draw, 1000);
  setInterval(drawLease, 100);
}

export function leads(leader, number) {
  view.leader = leader;
  note(leader, number);
  write(name, leader || 'nobody leads');
  write(epoch, leader ? `epoch ${number}` : '');
  draw();
}

export function leaseIs(ms) {
  view.leaseMs = ms ?? null;
  view.leaseAt = performance.now();
  view.leaseMost = Math.max(view.leaseMost, ms ?? 0);
  lease.hidden = view.leaseMs === null;
}

function drawLease() {
  if (view.leaseMs === null) return;
  const left = Math.max(0, view.leaseMs - (performance.now() - view.leaseAt));
  lease.set(left / view.leaseMost, `${(left / 1000).toFixed(1)} s`);
  lease.classList.remove('high', 'full');
}

function draw() {
  const svg = byId('timeline');
  const width = svg.clientWidth || 600;
  const now = Date.now();
  const x = (at) => Math.max(0, width * (1 - (now - at) / SPAN_MS));
  const spans = history.map((one, i) => ({ ...one, end: history[i + 1]?.at ?? now }))
    .filter((one) => one.end > now - SPAN_MS);
  svg.replaceChildren(...spans.flatMap((one) => {
    const left = x(one.at);
    const wide = Math.max(2, x(one.end) - left - 1);
    const box = make('rect', { x: left, y: 2, width: wide, height: 24, rx: 4 },
      make('title', {}, one.leader ? `${one.leader}, epoch ${one.epoch}` : 'nobody'));
    box.style.fill = one.leader ? colour(one.leader) : 'var(--bad)';
    const label = wide > 40 ? make('text', { x: left + 6, y: 18 }, one.leader) : null;
    return label ? [box, label] : [box];
  }), make('text', { class: 'axis', x: 0, y: 42 }, '10 min ago'),
  make('text', { class: 'axis', x: width, y: 42, 'text-anchor': 'end' }, 'now'));
  const since = history.at(-1);
  write(byId('timeline-text'), since && since.leader
    ? `${since.leader} leads, seen here first ${ago(now - since.at)}` : '');
}

export function processes(list) {
  view.processes = list;
  const most = Math.max(1, ...list.map((one) => one.workers));
  keep(byId('processes'), list, (one) => one.id, () => {
    const element = make('article', { class: 'card' });
    element.title_ = make('span');
    element.tags = make('div', { class: 'tags' });
    element.load = bar('workers');
    element.append(make('h3', {}, element.title_), element.tags, element.load);
    return element;
  }, (element, one) => {
    write(element.title_, one.name);
    element.classList.toggle('off', !one.alive);
    const tags = [];
    if (one.role === 'leader') tags.push(make('span', { class: 'tag good' }, 'master'));
    if (!one.alive) tags.push(make('span', { class: 'tag bad' }, 'gone'));
    if (one.cordoned) tags.push(make('span', { class: 'tag warn' }, 'cordoned'));
    if (one.self) tags.push(make('span', { class: 'tag' }, 'shows this page'));
    element.tags.replaceChildren(...tags);
    element.load.set(one.workers / most, one.workers);
    element.load.classList.remove('high', 'full');
  });
}
