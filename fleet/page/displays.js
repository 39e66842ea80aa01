// Displays with their sessions and stages.

import { byId, keep, make, write } from './dom.js';
import { ask } from './dialogs.js';
import { call, get, segment } from './api.js';

const STAGES = ['welcome', 'car_fueling', 'car_waitpayment', 'car_postpayment'];
const data = new Map(); // by display
const visible = new Set(); // rows

function askSession(id) {
  return ask(`Session of ${id}`, null,
    [{ name: 'sessionId', label: 'Number; empty: none', value: data.get(id)?.sessionId ?? '', number: true }],
    'Set', async ({ sessionId }) => {
      const number = Number(sessionId);
      await call('PUT', `/api/displays/${segment(id)}/session`,
        { sessionId: sessionId === '' ? null : Number.isNaN(number) ? sessionId : number });
      await load(id);
    });
}

function askStage(id) {
  return ask(`Stage of ${id}`, null, [{
    name: 'progressionStage', label: 'Stage', value: data.get(id)?.progressionStage ?? '',
    choices: [['', 'none'], ...STAGES.map((stage) => [stage, stage])],
  }], 'Set', async ({ progressionStage }) => {
    await call('PUT', `/api/displays/${segment(id)}/stage`, { progressionStage: progressionStage || null });
    await load(id);
  });
}

function draw(row) {
  const is = data.get(row.dataset.key) || {};
  const car = Object.values(is.currentCar || {}).filter((one) => one !== null).join(' ');
  write(row.session, is.sessionId ?? '–');
  write(row.stage, is.progressionStage ?? '–');
  write(row.car, car || '–');
}

const watcher = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) {
      visible.delete(target);
    } else {
      visible.add(target);
      load(target.dataset.key);
    }
  }
});

// False: the process does not answer.
export async function load(id) {
  try {
    data.set(id, (await get(`/api/displays/${segment(id)}/data`)) || {});
  } catch (error) {
    if (error.status !== 404) return false;
    data.delete(id);
  }
  const row = [...byId('display-rows').children].find((one) => one.dataset.key === id);
  if (row) draw(row);
  return true;
}

function create({ id }) {
  const row = make('tr');
  Object.assign(row, { session: make('td'), stage: make('td'), car: make('td') });
  row.append(make('th', { scope: 'row' }, id), row.session, row.stage, row.car, make('td', {},
    make('div', { class: 'actions' },
      make('button', { type: 'button', 'aria-label': `session of ${id}`, onclick: () => askSession(id) }, 'Session'),
      make('button', { type: 'button', 'aria-label': `stage of ${id}`, onclick: () => askStage(id) }, 'Stage'))));
  watcher.observe(row);
  return row;
}

// No event tells of a car, nor of what changed while nobody answered.
export async function show(list) {
  keep(byId('display-rows'), list, (one) => one.id, create, draw);
  for (const row of [...visible]) {
    if (!await load(row.dataset.key)) return;
  }
}
