// The wall: a picture of each camera that is on the screen, one request after another.

import { ago, byId, keep, make, write } from './dom.js';
import { ask, notice } from './dialogs.js';
import { askMove } from './workers.js';
import { call, request, segment } from './api.js';

const PICTURE_MS = 1000; // of one camera
const GAP_MS = 120; // between two requests

const visible = new Set();
const HOUR_MS = 3600000;
const STALLS = 1000; // that are kept of a camera

const seen = new Map(); // by identifier: {at, text} of its latest detection
const stalls = new Map(); // by identifier: when its camera went offline, as long as the tab lives
let workers = [];

const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (entry.isIntersecting) visible.add(entry.target);
    else visible.delete(entry.target);
  }
}, { rootMargin: '100px' });

// What is shown is changed, or nothing: the ETag is from before the person began.
async function askEdit({ id }) {
  const path = `/api/subscriptions/${segment(id)}`;
  const { answer: before, etag } = await call('GET', path);
  const numbers = ['cropX1', 'cropY1', 'cropX2', 'cropY2', 'priority', 'model'];
  return ask(`Subscription ${before.id}`, null, [
    { name: 'model', label: 'Model (number)', value: before.model, number: true },
    ...['cropX1', 'cropY1', 'cropX2', 'cropY2'].map((name) => ({ name, label: `${name} (pixels; empty: none)`, value: before[name], number: true })),
    { name: 'priority', label: 'Priority', value: before.priority, number: true },
    { name: 'needs', label: 'Labels that the worker must have', value: before.needs },
    { name: 'paused', label: 'paused', type: 'checkbox', value: before.paused },
  ], 'Save', async (values) => {
    const patch = { paused: values.paused, needs: values.needs || null };
    for (const name of numbers) {
      // What is no number goes as it is: the server says what is wrong with it.
      patch[name] = values[name] === '' ? null
        : Number.isNaN(Number(values[name])) ? values[name] : Number(values[name]);
    }
    await call('PATCH', path, patch, etag);
  });
}

function create() {
  const element = make('article', { class: 'camera' });
  Object.assign(element, {
    image: make('img', { alt: '' }), none: make('div', { class: 'none' }, 'no picture yet'),
    crop: make('rect'), name: make('h3'), where: make('p'), found: make('p'), due: 0,
  });
  element.frame = make('svg', { preserveAspectRatio: 'xMidYMid meet', 'aria-hidden': 'true' }, element.crop);
  element.append(make('div', { class: 'view' }, element.none, element.image, element.frame),
    make('div', { class: 'words' }, element.name, element.where, element.found,
      make('div', { class: 'actions' },
        make('button', { type: 'button', onclick: () => askEdit(element.is).catch((error) => notice(error.message)) }, 'Edit'),
        make('button', { type: 'button', onclick: () => askMove(element.is, workers) }, 'Move'))));
  element.image.hidden = true;
  element.crop.style.display = 'none';
  element.image.addEventListener('load', () => drawCrop(element));
  watcher.observe(element);
  return element;
}

function drawCrop(element) {
  const { image, crop, frame, is } = element;
  const has = ['cropX1', 'cropY1', 'cropX2', 'cropY2'].some((key) => is[key] !== undefined && is[key] !== null);
  crop.style.display = has && image.naturalWidth ? '' : 'none';
  if (!has || !image.naturalWidth) return;
  frame.setAttribute('viewBox', `0 0 ${image.naturalWidth} ${image.naturalHeight}`);
  const x1 = is.cropX1 ?? 0;
  const y1 = is.cropY1 ?? 0;
  crop.setAttribute('x', x1);
  crop.setAttribute('y', y1);
  crop.setAttribute('width', Math.max(1, (is.cropX2 ?? image.naturalWidth) - x1));
  crop.setAttribute('height', Math.max(1, (is.cropY2 ?? image.naturalHeight) - y1));
}

function stallsOf(id) {
  const count = (stalls.get(id) || []).filter((at) => at > Date.now() - HOUR_MS).length;
  return count ? ` · offline ${count}× in the last hour` : '';
}

function describe(element) {
  const { is } = element;
  const latest = seen.get(is.id);
  write(element.name, is.id);
  write(element.where, is.paused ? 'paused'
    : is.worker ? `at ${is.worker}${is.online === false ? ' · camera offline' : ''}${stallsOf(is.id)}` : 'without a worker');
  write(element.found, latest ? `${latest.text} · ${ago(Date.now() - latest.at)}` : 'nothing seen yet');
}

function update(element, subscription) {
  element.is = subscription;
  element.image.alt = `newest picture of ${subscription.id}`;
  element.classList.toggle('off', !subscription.worker);
  describe(element);
  drawCrop(element);
}

async function fetchPicture(element) {
  const response = await request(`/api/cameras/${segment(element.is.id)}/image`);
  const is = response.ok && (response.headers.get('Content-Type') || '').startsWith('image/');
  if (is) {
    const url = URL.createObjectURL(await response.blob());
    element.image.addEventListener('load', () => URL.revokeObjectURL(url), { once: true });
    element.image.src = url;
  }
  element.image.hidden = !is;
  element.none.textContent = is ? '' : 'no picture';
}

// One request at a time for all cameras; the one that waits longest is next.
async function pictures() {
  for (;;) {
    const now = performance.now();
    const next = [...visible].filter((one) => one.isConnected && one.is?.worker && one.due <= now)
      .sort((a, b) => a.due - b.due)[0];
    if (next && !document.hidden) {
      next.due = now + PICTURE_MS;
      try {
        await fetchPicture(next);
      } catch { /* the process does not answer; the next turn tries again */ }
    }
    await new Promise((resolve) => { setTimeout(resolve, GAP_MS); });
  }
}

export function open() {
  pictures();
  setInterval(() => visible.forEach((element) => element.is && describe(element)), 1000);
}

export function detected(detection) {
  const fields = Object.entries(detection.data?.detection || {}).slice(0, 4);
  seen.set(detection.subscriptionIdentifier,
    { at: Date.now(), text: fields.map(([key, value]) => `${key} ${value}`).join(', ') });
}

export function stalled(id) {
  stalls.set(id, [...(stalls.get(id) || []), Date.now()].slice(-STALLS));
}

export function show(list, workerList) {
  workers = workerList;
  keep(byId('wall'), list, (one) => one.id, create, update);
}

export function unplaced(list) {
  const box = byId('unplaced');
  box.replaceChildren(...(list.length === 0 ? [] : [make('ul', {},
    ...list.slice(0, 20).map((one) => make('li', {}, make('b', {}, one.subscription), `: ${one.reason}`)),
    list.length > 20 ? make('li', {}, `and ${list.length - 20} more`) : null)]));
}
