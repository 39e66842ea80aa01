// Workers: how they are, what they have, and what one can do with them.

import { ago, bar, byId, keep, make, write } from './dom.js';
import { ask, order } from './dialogs.js';
import { call, segment } from './api.js';

function create(worker) {
  const path = `/api/workers/${segment(worker.id)}`;
  const element = make('article', { class: 'card' });
  Object.assign(element, {
    name: make('span'), tags: make('div', { class: 'tags' }), words: make('p'),
    bars: ['cpu', 'memory', 'gpu', 'gpuMemory'].map((key) => [key, bar(key === 'gpuMemory' ? 'gpu mem' : key)]),
    cordon: make('button', { type: 'button', onclick: () => order('POST', `${path}/${element.is.cordoned ? 'uncordon' : 'cordon'}`, {}) }),
    drain: make('button', { type: 'button', onclick: () => order('POST', `${path}/${element.is.draining ? 'undrain' : 'drain'}`, {}) }),
  });
  element.append(make('h3', {}, element.name), element.tags, ...element.bars.map(([, one]) => one),
    element.words, make('div', { class: 'actions' }, element.cordon, element.drain));
  return element;
}

function update(element, worker) {
  element.is = worker;
  write(element.name, worker.id);
  element.classList.toggle('off', !worker.online);
  const tags = [[worker.online ? 'online' : 'offline', worker.online ? 'good' : 'bad']];
  if (worker.online && !worker.inSync) tags.push(['not in sync', 'warn']);
  if (worker.cordoned) tags.push(['cordoned', 'warn']);
  if (worker.draining) tags.push(['draining', 'warn']);
  for (const label of (worker.labels || '').split(' ').filter(Boolean)) tags.push([label, '']);
  element.tags.replaceChildren(...tags.map(([text, kind]) => make('span', { class: `tag ${kind}` }, text)));
  for (const [key, one] of element.bars) {
    const value = worker.usage?.[key];
    one.hidden = value === undefined || value === null || (key.startsWith('gpu') && value === 0);
    if (!one.hidden) one.set(value / 100, `${Math.round(value)} %`);
  }
  const limit = worker.maxSubscriptions ? ` of ${worker.maxSubscriptions}` : '';
  write(element.words, `${worker.subscriptions}${limit} subscriptions · `
    + `${worker.owner ? `connected to ${worker.owner}` : 'no owner'} · `
    + `${worker.detections ?? 0} detections · ${worker.reconnects ?? 0} reconnects`
    + `${worker.sinceMs !== undefined ? ` · ${worker.online ? 'up' : 'gone'} ${ago(worker.sinceMs)}` : ''}`);
  write(element.cordon, worker.cordoned ? 'Uncordon' : 'Cordon');
  write(element.drain, worker.draining ? 'Undrain' : 'Drain');
}

export function show(list) {
  keep(byId('worker-cards'), list, (one) => one.id, create, update);
  byId('worker-cards').classList.toggle('empty', list.length === 0);
}

export function askMove(subscription, workers) {
  return ask('Move a camera', `${subscription.id}, and all of its camera, to another worker.`, [{
    name: 'worker', label: 'Worker',
    choices: workers.filter((one) => one.online && one.id !== subscription.worker).map((one) => [one.id, one.id]),
  }], 'Move', ({ worker }) => call('POST', `/api/workers/${segment(worker)}/move`,
    { subscription: subscription.id }));
}
