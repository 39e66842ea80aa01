// A worker of a pool, and what a pool stores, without I/O (docs/work-protocol.md).
//
//               the leader's messages ─┐               ┌─▶ start, halt    for who runs the items
//    session of the worker's election ─┼──▶ Worker ────┼─▶ messages       for the leader
//                     ended, progress ─┘               └

import { randomBytes } from 'node:crypto';
import { BatonError } from './core.js';

export const OUTPUT_MAX = 16 * 1024; // bytes of a result's output
export const CHECKPOINT_MAX = 120 * 1024;
export const POOL_MAX = 32;
export const WORKER_MAX = 55;
const SUBMISSION_MAX = 40;
const BODY_MAX = 65536;
const CHUNK_MAX = 120 * 1024; // bytes of a key with items
const CHUNK_ITEMS_MAX = 1000;
const REPLY_MAX = 450 * 1024; // of items in the reply to a leader that has lost the ledger
const BUCKETS = 64n;
const NAME = /^[A-Za-z0-9_.:-]+$/;
const ID = /^(?!\/)(?!.*\/\/)[A-Za-z0-9_.:/{};@+=,-]{1,127}(?<!\/)$/;
const STATES = ['completed', 'failed', 'cancelled']; // those that are final

// Of an item: the least and the most.
const NUMBERS = {
  __proto__: null,
  priority: [-(2 ** 31), 2 ** 31 - 1], weight: [1, 1000000], retries: [0, 1000], gpus: [0, 1000],
  memory_mib: [0, 2 ** 30], backoff_ms: [0, 31622400000], timeout_ms: [0, 31622400000],
};

// ---- Bytes in JSON

/** As text where it is one, else as base64. */
export function bytesMember(key, data) {
  const raw = Buffer.from(data);
  const text = raw.toString();
  if (text.includes('\0') || !Buffer.from(text).equals(raw)) { // many readers refuse a NUL
    return { [`${key}_base64`]: raw.toString('base64') };
  }
  return text ? { [key]: text } : {};
}

export const bytesOf = (message, key) => `${key}_base64` in message
  ? Buffer.from(message[`${key}_base64`], 'base64') : Buffer.from(message[key] ?? '');

// ---- Submissions

const refuse = (text) => new BatonError('EINVAL', text);

export function checkName(what, name, most) {
  if (typeof name !== 'string' || !NAME.test(name) || name.length > most || name === 'all') {
    throw refuse(`${what} ${JSON.stringify(name)}: must have 1 to ${most} letters, digits and `
                 + 'characters of -_.: and not be "all"');
  }
}

function checkMember(place, key, value) {
  const wrong = (rule) => refuse(`${place}.${key} is ${JSON.stringify(value)}: must be ${rule}`);
  if (key in NUMBERS) {
    const [least, most] = NUMBERS[key];
    if (!Number.isSafeInteger(value) || value < least || value > most) {
      throw wrong(`a whole number, ${least} to ${most}`);
    }
  } else if (key === 'id' || key === 'together') {
    if (typeof value !== 'string' || !ID.test(value)) {
      throw wrong('1 to 127 characters of an id');
    }
  } else if (key === 'needs' || key === 'keys') {
    if (!Array.isArray(value) || !value.every((one) => typeof one === 'string')) {
      throw wrong('a list of texts');
    }
  } else if (key !== 'kind') {
    throw refuse(`${place}.${key}: an item has no such member`);
  } else if (value !== 'job' && value !== 'service') {
    throw wrong('job or service');
  }
}

const isBody = (value) => typeof value === 'string' || value instanceof Uint8Array;

function itemJson(item, at) {
  const place = `items[${at}]`;
  const { body = '', ...members } = isBody(item) ? { body: item } : item;
  if (!isBody(body)) {
    throw refuse(`${place}.body: must be a text or bytes`);
  }
  if (Buffer.byteLength(body) > BODY_MAX) {
    throw refuse(`${place}.body has more than ${BODY_MAX} bytes`);
  }
  Object.entries(members).forEach(([key, value]) => checkMember(place, key, value));
  return { ...members, ...bytesMember('body', body) };
}

/** { name, ids, chunks: the names and values of the keys that hold the items }. */
export function checkList(what, items) {
  if (!Array.isArray(items)) {
    throw refuse(`${what}: must be a list`);
  }
}

export function chunksOf(items, name) {
  checkList('items', items);
  if (name !== undefined) {
    checkName('submission', name, SUBMISSION_MAX);
  }
  const own = name ?? randomBytes(8).toString('hex');
  const chunkName = (number) => number === 0 ? own : `${own}-${number}`;
  const lists = [];
  let used = CHUNK_MAX;
  const ids = items.map((item, at) => {
    const message = itemJson(item, at);
    const text = JSON.stringify(message);
    const bytes = Buffer.byteLength(text);
    if (used + bytes > CHUNK_MAX || lists.at(-1).length === CHUNK_ITEMS_MAX) {
      lists.push([]);
      used = 64;
    }
    used += bytes + 1;
    const place = lists.at(-1).push(text) - 1;
    return message.id ?? `${chunkName(lists.length - 1)}.${place}`;
  });
  if (ids.length === 0) {
    throw refuse('a submission has at least one item');
  }
  const chunks = lists.map((list, number) => [
    chunkName(number), `{"unique":${name === undefined},"items":[${list.join(',')}]}`]);
  return { name: own, ids, chunks };
}

// ---- What the leader stores

export function resultOf(data) {
  const { id, success, code, epoch, began_unix_ms: beganUnixMs, ended_unix_ms: endedUnixMs,
          ...rest } = JSON.parse(data);
  return { id, state: success ? 'completed' : 'failed', output: bytesOf(rest, 'output'), code,
           epoch, beganUnixMs, endedUnixMs };
}

export const endWithout = (id, state) => ({ id, state, output: Buffer.alloc(0), code: 0, epoch: 0,
                                            beganUnixMs: 0, endedUnixMs: 0 });

export function bucketOf(id) {
  let number = 14695981039346656037n;
  for (const byte of Buffer.from(id)) {
    number = BigInt.asUintN(64, (number ^ BigInt(byte)) * 1099511628211n);
  }
  number ^= number >> 32n;
  return Number((number ^ number >> 16n) % BUCKETS);
}

export const hasEnded = ({ state }) => STATES.includes(state);
/** The items of a bucket of the ledger. */
export const entriesOf = (bucket) => JSON.parse(bucket).items.map(
  ([id, state, worker, , epoch, attempt, failures, , , sinceUnixMs]) => (
    { id, state, worker: worker || null, epoch, attempt, failures, sinceUnixMs }));

export function checkpoint(epoch, data) {
  const head = Buffer.alloc(8);
  head.writeBigUInt64LE(BigInt(epoch));
  return Buffer.concat([head, Buffer.from(data)]);
}

/** { epoch, data }; a value that is too short is none. */
export const checkpointOf = (value) => !value || value.length < 8 ? { epoch: 0, data: null }
  : { epoch: Number(value.readBigUInt64LE()), data: value.subarray(8) };

// ---- The worker

export const RUNNING = 0;
export const HALTING = 1;
export const ENDED = 2;
export const GONE = 3;

/** An item that is here: it runs, is to end, or its end (with a result, or without one: GONE) waits
 * for the leader's ack. */
class Held {
  constructor(placing, session) {
    this.id = placing.item.id;
    this.begin(placing, session);
  }

  begin(placing, session) {
    this.now = placing; // { item, epoch, attempt }
    this.then = null; // starts when this one has ended
    this.session = session;
    this.state = RUNNING;
    this.isStarted = false;
    this.progressPermille = 0;
    this.result = null;
  }
}

/** The state machine: after each call, carry out orders() and send messages(). */
export class Worker {
  #about;
  #name;
  #held = new Map();
  #orders = new Set(); // a queue
  #unsent = new Set();
  #session = 0;
  #ledger = '0'; // as text: it has 63 bits
  #seen = { leader: 0, number: 0 };
  #isLeaving = false;
  #isReportDue = false;
  #isAsked = false;

  constructor(name, { slots = 1, gpus = 0, memoryMib = 0, labels = [] } = {}) {
    checkName('worker', name, WORKER_MAX);
    this.#name = name;
    this.#about = { slots, gpus, memory_mib: memoryMib, labels };
  }

  /** Nothing runs here, and the leader has all results. */
  get isIdle() {
    return [...this.#held.values()].every(({ state }) => state === GONE);
  }

  /** It has this session now, 0: none. Everything of an earlier one is to be stopped. */
  session(session) {
    if (session !== this.#session) {
      this.#session = session;
      for (const held of [...this.#held.values()]) {
        held.then = null;
        this.#halt(held);
        if (held.state === GONE && session !== 0 && held.session !== session) {
          this.#forget(held);
        }
      }
      this.#isAsked = false;
      this.#isReportDue = session !== 0;
    }
  }

  /** A message of the leader; what is none is ignored. */
  hear(data) {
    try {
      const text = String(data);
      const message = JSON.parse(text);
      const { leader, number, session = 0, type } = message;
      const isNew = leader > this.#seen.leader
        || (leader === this.#seen.leader && number > this.#seen.number);
      const isForUs = session === this.#session || (type === 'ask' && session === 0);
      if (this.#session !== 0 && isForUs && isNew) {
        this.#seen = { leader, number };
        this.#take(message, text.match(/"ledger"\s*:\s*(\d+)/)?.[1] ?? '0');
      }
    } catch {
      // what it had to say is said again
    }
  }

  /** The run has ended, and nothing of it acts any more. A null result: before its work was done. */
  ended(held, epoch, result) {
    if (held.now.epoch !== epoch || held.state >= ENDED || this.#held.get(held.id) !== held) {
      return;
    }
    if (held.state === HALTING || result === null) {
      this.#gone(held);
    } else {
      held.state = ENDED;
      held.result = { id: held.id, epoch, ...result };
      this.#unsent.add(held);
    }
  }

  /** It takes nothing new, and what it has is to move. */
  leave() {
    this.#isLeaving = true;
    this.#isReportDue = this.#session !== 0;
  }

  /** Once in each report interval. */
  tick() {
    if (this.#session !== 0) {
      this.#isReportDue = true;
      this.#sendResults();
    }
  }

  /** Those to start (RUNNING), each with a run of its own, or to halt (HALTING). */
  * orders() {
    for (const held of this.#orders) {
      this.#orders.delete(held);
      held.isStarted = true;
      yield held;
    }
  }

  * messages() {
    for (const held of this.#session === 0 ? [] : this.#unsent) {
      this.#unsent.delete(held);
      yield JSON.stringify({ type: 'done', worker: this.#name, session: held.session,
                             result: held.result });
    }
    if (this.#session !== 0 && this.#isReportDue) {
      this.#isReportDue = false;
      const report = JSON.stringify(this.#report());
      this.#isAsked = false;
      yield `${report.slice(0, -1)},"ledger":${this.#ledger}}`;
    }
  }

  // ---- What the leader says

  #take(message, ledger) {
    this.#ledger = ledger === '0' ? this.#ledger : ledger;
    if (message.type === 'ask') {
      this.#sendResults();
      this.#isAsked = ledger === '0';
      this.#isReportDue = true;
      return;
    }
    for (const entry of message.items) {
      this.#takes[message.type](entry);
    }
  }

  #takes = {
    __proto__: null,
    assign: ({ item, epoch, attempt }) => {
      const placing = { item, epoch, attempt };
      const held = this.#held.get(item.id);
      if (!held) {
        const fresh = new Held(placing, this.#session);
        this.#held.set(item.id, fresh);
        this.#orders.add(fresh);
      } else if (epoch <= held.now.epoch && held.session === this.#session) {
        if (held.state === ENDED && epoch === held.now.epoch) {
          this.#unsent.add(held);
        } else if (held.state === GONE) {
          this.#isReportDue = true; // it never starts again
        }
      } else if (held.state >= ENDED) {
        this.#begin(held, placing);
      } else {
        held.then = placing;
        this.#halt(held);
      }
    },
    stop: ({ id, epoch }) => {
      const held = this.#held.get(id);
      if (!held || held.state === GONE) {
        this.#isReportDue = true; // it is not here: that is the reply
        return;
      }
      if (held.then && held.then.epoch <= epoch) {
        held.then = null;
      }
      if (held.now.epoch <= epoch) {
        this.#halt(held);
      }
    },
    ack: ({ id, epoch }) => {
      const held = this.#held.get(id);
      if (held?.state >= ENDED && held.now.epoch <= epoch) {
        this.#forget(held);
      }
    },
  };

  // ---- What runs

  #begin(held, placing) {
    held.begin(placing, this.#session);
    this.#unsent.delete(held);
    this.#orders.add(held);
  }

  #halt(held) {
    if (held.state === RUNNING && !held.isStarted) {
      this.#gone(held);
    } else if (held.state === RUNNING) {
      held.state = HALTING;
      this.#orders.add(held);
    }
  }

  #gone(held) {
    if (held.then) {
      this.#begin(held, held.then);
    } else if (held.isStarted && [0, held.session].includes(this.#session)) {
      held.state = GONE;
    } else {
      this.#forget(held);
    }
    this.#isReportDue = this.#session !== 0;
  }

  #forget(held) {
    this.#held.delete(held.id);
    this.#orders.delete(held);
    this.#unsent.delete(held);
  }

  // ---- What is sent

  #sendResults() {
    [...this.#held.values()].filter((held) => held.state === ENDED)
      .forEach((held) => this.#unsent.add(held));
  }

  #claim(held, placing, withItem) {
    return { id: held.id, epoch: placing.epoch, ended: held.state === ENDED,
             gone: held.state === GONE,
             progress_permille: held.then ? 0 : held.progressPermille,
             ...(withItem ? { item: placing.item } : {}) };
  }

  #report() {
    let used = 0;
    const claims = [...this.#held.values()]
      .filter((held) => held.then || held.session === this.#session)
      .map((held) => {
        const placing = held.then ?? held.now;
        used += this.#isAsked ? JSON.stringify(placing.item).length : 0;
        return this.#claim(held, placing, this.#isAsked && used < REPLY_MAX);
      });
    return { type: 'report', worker: this.#name, ...this.#about, session: this.#session,
             leaving: this.#isLeaving, reply: this.#isAsked, seen: this.#seen, claims };
  }
}
