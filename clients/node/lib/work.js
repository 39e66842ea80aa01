// Work that many processes share: submitting it, and running it.
//
//   const pool = new Pool(client, 'render');
//   const worker = await pool.worker('w1', async (run) => render(run.body), { slots: 4 });
//   const { ids } = await pool.submit(['frame 1', 'frame 2']);
//   const results = await pool.wait(ids);
//   await worker.leave();

import { randomBytes } from 'node:crypto';
import { BatonError, Lost } from './core.js';
import { Election } from './index.js';
import * as core from './work_core.js';

const LOOK_MS = 2000; // between two looks for ends that leave no result
const RETRY_MS = 1000;
const ASK_MS = 250; // between two questions to the leader
const STATUS_MS = 5000;
const REPORT_MS = 1000;
const LEAVE_MS = 30000;

const asyncDispose = Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose');

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Resolves to false when it is not settled in time. */
async function within(promise, ms) {
  let timer;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, ms, false);
  });
  return Promise.race([promise.then(() => true), late]).finally(() => clearTimeout(timer));
}

/** An attempt at an item, which runs here. */
class Run {
  checkpoint = null;
  /** @private Was told that it may not act, so that its result is none. */
  isRefused = false;
  #worker;
  #held;
  #leadership;
  #stopping = new AbortController();
  #revision = 0; // of the checkpoint
  #isOver = false;

  constructor(worker, held, leadership) {
    const { item, epoch, attempt } = held.now;
    this.id = item.id;
    this.body = core.bytesOf(item, 'body');
    this.epoch = epoch;
    this.attempt = attempt;
    this.isService = item.kind === 'service';
    this.#worker = worker;
    this.#held = held;
    this.#leadership = leadership;
  }

  get stopping() {
    return this.#stopping.signal;
  }

  get mayAct() {
    return !this.#isOver && this.#leadership.isLeader;
  }

  check() {
    if (!this.mayAct) {
      this.isRefused = true;
      throw new Lost('ELOST', `item ${this.id}: this attempt is over`);
    }
  }

  progress(part) {
    this.#held.progressPermille = Math.max(0, Math.min(1000, Math.round(part * 1000)));
  }

  /** @private */
  halt() {
    this.#stopping.abort(new Lost('ELOST', `item ${this.id}: it is to stop`));
  }

  /** @private */
  end() {
    this.#isOver = true;
  }

  /** @private Before the run begins. What is there at a first attempt is of an earlier item. */
  async readCheckpoint() {
    while (this.attempt > 1 && !this.stopping.aborted) {
      try {
        const value = await this.#worker.client.get(this.#worker.key('k', this.id));
        this.checkpoint = core.checkpointOf(value?.data).data;
        this.#revision = value?.revision ?? 0;
        return;
      } catch {
        await pause(RETRY_MS);
      }
    }
  }

  async save(data) {
    const value = core.checkpoint(this.epoch, data);
    const key = this.#worker.key('k', this.id);
    if (value.length - 8 > core.CHECKPOINT_MAX) {
      throw new BatonError('ETOOBIG', `checkpoint of ${this.id}: ${value.length - 8} bytes, at `
                           + `most ${core.CHECKPOINT_MAX}`);
    }
    for (;;) {
      try {
        this.#revision = await this.#worker.client.put(key, value, { revision: this.#revision });
        return;
      } catch (error) {
        if (error.code !== 'ECONFLICT') {
          throw error;
        }
      }
      const stored = await this.#worker.client.get(key);
      this.#revision = stored?.revision ?? 0;
      if (core.checkpointOf(stored?.data).epoch > this.epoch) {
        this.halt();
        throw new Lost('ELOST', `item ${this.id}: a later attempt has saved a checkpoint`);
      }
    }
  }
}

/** This process as a worker of a pool; made by Pool.worker(). */
class Worker {
  #pool;
  #machine;
  #work;
  #leadership = null;
  #runs = new Map();
  #unsubscribes = [];
  #part;
  #ticking;
  #isDraining = false;
  #waiters = [];
  #leaving = null;

  constructor(client, pool, name, work, options) {
    this.client = client;
    this.#pool = pool;
    this.name = name;
    this.#machine = new core.Worker(name, options);
    this.#work = work;
    this.#part = new Election(client, this.key(name), { onDrain: () => this.#drain() });
    this.#part.on('acquired', (leadership) => this.#acquired(leadership));
    this.#part.on('lost', (leadership) => leadership === this.#leadership && this.#session(0));
  }

  /** @private */
  key(...parts) {
    return ['work', this.#pool, ...parts].join('/');
  }

  /** @private */
  async begin(reportIntervalMs) {
    for (const channel of [this.name, 'all']) {
      this.#unsubscribes.push(await this.client.subscribe(this.key(channel), (data) => {
        this.#machine.hear(data);
        this.#drive();
      }));
    }
    await this.#part.enter();
    this.#ticking = setInterval(() => {
      this.#machine.tick();
      this.#drive();
    }, reportIntervalMs);
    return this;
  }

  leave({ timeoutMs = LEAVE_MS } = {}) {
    this.#leaving ??= this.#leave(timeoutMs);
    return this.#leaving;
  }

  [asyncDispose]() {
    return this.leave();
  }

  async #leave(timeoutMs) {
    this.#machine.leave();
    this.#drive();
    const isDone = await within(this.#until(() => this.#machine.isIdle), timeoutMs);
    this.#session(0);
    await this.#until(() => this.#runs.size === 0);
    clearInterval(this.#ticking);
    await this.#part[asyncDispose]();
    this.#unsubscribes.forEach((unsubscribe) => unsubscribe());
    return isDone;
  }

  async #until(holds) {
    while (!holds()) {
      await new Promise((resolve) => this.#waiters.push(resolve));
    }
  }

  #acquired(leadership) {
    this.#leadership = leadership;
    this.#session(leadership.epoch);
  }

  async #drain() {
    this.#session(0);
    await this.#until(() => this.#runs.size === 0);
  }

  #session(session) {
    this.#machine.session(session);
    this.#drive();
  }

  #drive() {
    for (const held of this.#machine.orders()) {
      if (held.state === core.RUNNING) {
        const run = new Run(this, held, this.#leadership);
        this.#runs.set(held, run);
        this.#run(held, run);
      } else {
        this.#runs.get(held)?.halt();
      }
    }
    for (const message of this.#machine.messages()) {
      this.client.publish(this.key(), message).catch(() => {}); // reports heal what is lost
    }
    this.#waiters.splice(0).forEach((waiter) => waiter());
  }

  async #run(held, run) {
    const began = Date.now();
    let result = { success: false, code: 1 };
    try {
      await run.readCheckpoint();
      run.isRefused = !run.mayAct;
      if (!run.stopping.aborted && !run.isRefused) {
        result = { success: true, code: 0, ...outputOf(await this.#work(run)) };
      }
    } catch (error) {
      result = { success: false, code: 1,
                 ...outputOf(String(error).slice(0, core.OUTPUT_MAX / 4)) };
    }
    run.end();
    this.#runs.delete(held);
    this.#machine.ended(held, run.epoch, run.isRefused ? null : { ...result, began_unix_ms: began,
                                                                  ended_unix_ms: Date.now() });
    this.#drive();
  }
}

function outputOf(output) {
  const raw = Buffer.from(output ?? '');
  if (raw.length > core.OUTPUT_MAX) {
    throw new BatonError('ETOOBIG', `an output of ${raw.length} bytes, at most ${core.OUTPUT_MAX}`);
  }
  return core.bytesMember('output', raw);
}

function commonPrefix(ids) {
  let same = 0;
  while (ids.length > 0 && same < ids[0].length && ids.every((id) => id[same] === ids[0][same])) {
    same++;
  }
  return ids.length > 0 ? ids[0].slice(0, same) : '';
}

/** A pool by its name. A program in C, or `baton worker`, leads it. */
export class Pool {
  #client;
  #name;

  constructor(client, name) {
    core.checkName('pool', name, core.POOL_MAX);
    this.#client = client;
    this.#name = name;
  }

  #key(...parts) {
    return ['work', this.#name, ...parts].join('/');
  }

  async submit(items, { name } = {}) {
    const { chunks, ...submission } = core.chunksOf(items, name);
    for (const [chunk, value] of chunks) {
      try {
        await this.#client.put(this.#key('s', chunk), value, { revision: 0 });
      } catch (error) {
        if (error.code !== 'ECONFLICT') {
          throw error;
        }
        const stored = await this.#client.get(this.#key('s', chunk));
        if (!stored?.data.equals(Buffer.from(value))) {
          throw new BatonError('EEXIST', `submission ${submission.name}: there is one with other `
                               + 'items');
        }
      }
    }
    return submission;
  }

  async cancel(id) {
    await this.#client.put(this.#key('c', id), '{}');
  }

  async result(id) {
    const value = await this.#client.get(this.#key('r', id));
    return value?.data ? core.resultOf(value.data) : null;
  }

  async items() {
    const values = await this.#client.list(this.#key('b/'));
    return values.flatMap(({ data }) => (data ? core.entriesOf(data) : []))
      .sort((one, other) => (one.id < other.id ? -1 : 1));
  }

  async drain(worker) {
    await this.#client.put(this.#drainKey(worker), '{}');
  }

  async undrain(worker) {
    await this.#client.put(this.#drainKey(worker), null);
  }

  #drainKey(worker) {
    core.checkName('worker', worker, core.WORKER_MAX);
    return this.#key('d', worker);
  }

  async status({ signal = AbortSignal.timeout(STATUS_MS) } = {}) {
    const token = randomBytes(8).toString('hex');
    let wake = () => {};
    let status = null;
    const unsubscribe = await this.#client.subscribe(this.#key('reply', token), (data) => {
      status ??= JSON.parse(data);
      wake();
    });
    const abort = () => wake();
    signal.addEventListener('abort', abort);
    try {
      while (!status) {
        signal.throwIfAborted();
        const woken = new Promise((resolve) => {
          wake = resolve;
        });
        await this.#client.publish(this.#key('ask/status'), token);
        await within(woken, ASK_MS);
      }
      return status;
    } finally {
      signal.removeEventListener('abort', abort);
      unsubscribe();
    }
  }

  async wait(ids, { signal } = {}) {
    core.checkList(ids, ids);
    const ends = new Map();
    const isOver = () => ids.every((id) => ends.has(id));
    let wake = () => {};
    const unwatch = await this.#client.watch(this.#key('r', commonPrefix(ids)), (values) => {
      for (const { data } of values) {
        const result = data ? core.resultOf(data) : null;
        if (result) {
          ends.set(result.id, result);
        }
      }
      wake();
    });
    const abort = () => wake();
    signal?.addEventListener('abort', abort);
    try {
      while (!isOver()) {
        signal?.throwIfAborted();
        await this.#look(ids, ends);
        const looksAt = Date.now() + LOOK_MS;
        while (!isOver() && !signal?.aborted && Date.now() < looksAt) {
          await within(new Promise((resolve) => {
            wake = resolve;
          }), looksAt - Date.now());
        }
      }
    } finally {
      signal?.removeEventListener('abort', abort);
      unwatch();
    }
    return ids.map((id) => ends.get(id));
  }

  /** What ends without a result is found in the ledger. */
  async #look(ids, ends) {
    const waited = new Set(ids.filter((id) => !ends.has(id)));
    for (const bucket of new Set([...waited].map(core.bucketOf))) {
      const value = await this.#client.get(this.#key('b', String(bucket).padStart(2, '0')));
      for (const { id, state } of (value?.data ? core.entriesOf(value.data) : [])
        .filter(core.hasEnded)) {
        if (waited.has(id)) {
          const result = await this.result(id);
          if (!ends.has(id)) {
            ends.set(id, result ?? core.endWithout(id, state));
          }
        }
      }
    }
  }

  worker(name, work, { reportIntervalMs = REPORT_MS, ...about } = {}) {
    return new Worker(this.#client, this.#name, name, work, about).begin(reportIntervalMs);
  }
}
