// Works where this process leads: node report.mjs ELECTION, beside `baton agent` on each host.
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { lead, Lost } from 'baton-client';

const ends = new AbortController();
process.on('SIGTERM', () => ends.abort());

async function work(leadership) {
  const stopping = [leadership.stopping, ends.signal]; // to be handed over, or lost; our own end
  try {
    while (!stopping.some((signal) => signal.aborted)) {
      leadership.check(); // before each step; throws Lost
      console.log(process.pid, 'works', leadership.epoch); // the epoch with each write
      await sleep(50);
    }
  } catch (error) {
    if (!(error instanceof Lost)) {
      throw error;
    }
  }
  return leadership;
}

while (!ends.signal.aborted) {
  const { epoch, reason } = await lead(process.argv[2], { signal: ends.signal }, work);
  console.log(process.pid, 'ends', epoch, reason);
}
