// The worker of Node.js, driven by lines of JSON as worker.c is.
import { createInterface } from 'node:readline';
import { RUNNING, Worker } from '../../clients/node/lib/work_core.js';

let worker;
let runs;

function end(id, result) {
  const run = runs.get(id);
  if (run) {
    runs.delete(id);
    worker.ended(run.held, run.epoch, result);
  }
}

const steps = {
  new: () => {
    worker = new Worker('w', { slots: 2 });
    runs = new Map();
  },
  session: ({ session }) => worker.session(session),
  hear: ({ message }) => worker.hear(message),
  tick: () => worker.tick(),
  leave: () => worker.leave(),
  end: ({ id, success }) => end(id, { success, code: 0, began_unix_ms: 1, ended_unix_ms: 2 }),
  lose: ({ id }) => end(id, null),
};

for await (const line of createInterface({ input: process.stdin })) {
  const step = JSON.parse(line);
  const out = [];
  steps[step.do](step);
  for (const held of worker.orders()) {
    const { id, now: { epoch }, state } = held;
    out.push([state === RUNNING ? 'start' : 'halt', id, epoch]);
    if (state === RUNNING) {
      runs.set(id, { held, epoch });
    }
  }
  for (const message of worker.messages()) {
    out.push(JSON.parse(message));
  }
  console.log(JSON.stringify([...out, worker.isIdle]));
}
