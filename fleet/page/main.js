// The page of a fleet: asks the process that served it, follows its events, and shows what changed.

import { byId, keep, make, write } from './dom.js';
import { credentials, get, list, peek } from './api.js';
import { ask } from './dialogs.js';
import { follow } from './events.js';
import * as cameras from './cameras.js';
import * as cluster from './cluster.js';
import * as displays from './displays.js';
import * as workers from './workers.js';

const STEP = 120; // cameras that are shown at once, and each time more
const LINES = 300;

let shown = STEP;
let workerList = [];
let stream = null; // ends the connection of the events

credentials.ask = async () => {
  for (;;) {
    const values = await ask('Token', 'This fleet asks for a token. It is kept until the tab is closed.',
      [{ name: 'token', label: 'Token', type: 'password', required: true }], 'Use', async () => {});
    if (values?.token) return values.token;
  }
};

// ---- What is asked ---------------------------------------------------------------------------

function figures(status) {
  const { workers: w, objects: o } = status;
  const all = [
    ['leader', status.leader.leader || 'nobody', status.leader.leader ? '' : 'bad'],
    ['workers online', `${w.online}/${w.total}`, w.online < w.total ? 'warn' : ''],
    ['subscriptions', o.subscriptions, ''],
    ['without a place', status.unplaced, status.unplaced ? 'bad' : ''],
    ['cameras', o.cameras, ''], ['displays', o.displays, ''],
  ];
  keep(byId('summary'), all, (one) => one[0],
    (one) => make('div', { class: 'figure' }, make('b'), make('span', {}, one[0])),
    (element, one) => {
      write(element.firstChild, one[1]);
      element.className = `figure ${one[2]}`;
    });
}

async function loadStatus() {
  const status = await get('/status');
  write(byId('fleet'), status.fleet);
  document.title = `${status.fleet} · ${status.leader.leader || 'nobody leads'}`;
  figures(status);
  cluster.leads(status.leader.leader, status.leader.epoch);
  cluster.leaseIs(status.leaseLeftMs);
}

async function loadWorkers() {
  workerList = (await list('/api/workers')).items;
  workers.show(workerList);
}

async function loadCameras() {
  const { items, hasMore } = await list('/api/subscriptions?live=1', shown);
  cameras.show(items, workerList);
  byId('more').hidden = !hasMore;
}

const loads = {
  status: [loadStatus, 1000],
  workers: [loadWorkers, 2000],
  processes: [async () => cluster.processes((await peek('/api/processes')).items), 3000],
  cameras: [loadCameras, 3000],
  unplaced: [async () => cameras.unplaced((await get('/api/unplaced')).items), 3000],
  displays: [async () => displays.show((await list('/api/displays')).items), 10000],
};
const again = new Map(); // by name: asks soon, but at most ten times a second

async function keepLoading(name, [load, everyMs]) {
  for (;;) {
    const soon = new Promise((resolve) => { again.set(name, resolve); });
    try {
      if (!document.hidden) await load();
    } catch (error) { // the line at the top says that nobody answers
      if (error.name === 'TimeoutError') stream?.abort(); // of a process that hangs, too
    }
    await Promise.race([soon, new Promise((resolve) => { setTimeout(resolve, everyMs); })]);
    await new Promise((resolve) => { setTimeout(resolve, 100); });
  }
}

const refresh = (...names) => names.forEach((name) => again.get(name)?.());

// ---- Events ----------------------------------------------------------------------------------

const CONCERNS = {
  'leader-changed': ['status', 'processes'], 'member-joined': ['processes'],
  'member-left': ['processes'], 'worker-online': ['workers', 'status', 'cameras'],
  'worker-offline': ['workers', 'status', 'cameras'], 'not-placed': ['unplaced', 'status'],
  'object-changed': ['cameras', 'displays', 'status'], 'camera-online': ['cameras'],
  'camera-offline': ['cameras'], 'worker-owned': ['workers', 'processes'],
};

function text(fields) {
  return Object.entries(fields).filter(([, value]) => value !== null && value !== '')
    .map(([key, value]) => `${key}=${typeof value === 'object' ? JSON.stringify(value) : value}`)
    .join(' ');
}

function log(name, fields) {
  const lines = byId('log-lines');
  lines.prepend(make('li', {}, make('time', {}, new Date().toLocaleTimeString()),
    make('b', {}, name), make('span', {}, text(fields))));
  while (lines.childElementCount > LINES) lines.lastChild.remove();
}

function onEvent(name, fields) {
  refresh(...(CONCERNS[name] || []));
  if (name === 'detection') {
    cameras.detected(fields);
    if (!byId('log-detections').checked) return;
  }
  if (name === 'camera-offline') cameras.stalled(fields.subscription);
  if (name === 'leader-changed' && fields.leader !== undefined) {
    cluster.leads(fields.leader, fields.epoch);
  }
  if (name === 'session-changed' || name === 'stage-changed') displays.load(fields.display);
  log(name, fields);
}

function onState(state, connection) {
  const line = byId('link');
  stream = connection;
  line.className = state;
  write(line, state === 'live' ? `live from ${location.host}` : `${location.host} does not answer`);
  if (state === 'live') refresh(...Object.keys(loads));
}

byId('more').addEventListener('click', () => {
  shown += STEP;
  refresh('cameras');
});

cluster.open();
cameras.open();
for (const [name, load] of Object.entries(loads)) keepLoading(name, load);
follow(() => '/events', { event: onEvent, state: onState });
