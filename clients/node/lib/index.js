// Leadership for Node.js, by the agent of this host (`baton agent`). The event loop renews: if it
// stands still, the leases end.

import { randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { existsSync, openSync, readFileSync, readSync } from 'node:fs';
import { createConnection } from 'node:net';
import { BatonError, Campaign, checked, Lost, Machine } from './core.js';

export { BatonError, Lost };

const SOCKET = '/run/baton/agent.sock';
const REPLY_MS = 30000;
const END_MS = 5000; // how long the end of lead() waits for the agent

// For runtimes that lack it; `await using` looks it up by this name.
const asyncDispose = Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose');

/** The clock of leases must go on while the machine is suspended, as the other members' do.
 * process.hrtime stands still then, and Date.now() can be set. The first number of /proc/uptime is
 * CLOCK_BOOTTIME, cut off to hundredths of a second: the present instant lies within 10 ms after
 * it. A lease is counted from the earliest of these instants, and is over at the latest. */
class UptimeClock {
  #fd = openSync('/proc/uptime', 'r'); // open as long as the process
  #buffer = Buffer.alloc(64);

  earliestMs() {
    const bytes = readSync(this.#fd, this.#buffer, 0, this.#buffer.length, 0);
    return Number.parseFloat(this.#buffer.toString('latin1', 0, bytes)) * 1000;
  }

  latestMs() {
    return this.earliestMs() + 10;
  }
}

let clock = null;

/** Where `baton` looks for the agent, too. */
function agentPath() {
  const own = `${process.env.XDG_RUNTIME_DIR || '/run'}/baton/agent.sock`;
  return process.env.BATON_AGENT || (process.geteuid() !== 0 && existsSync(own) ? own : SOCKET);
}

/** What this process says of itself; its start shows the agent that the pid was not reused. */
function greeting({ name, metadata }) {
  const stat = readFileSync('/proc/self/stat', 'utf8');
  return {
    version: 1, secret: randomBytes(32).toString('hex'), pid: process.pid,
    start: Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]), name, metadata,
  };
}

const payload = (data) => typeof data === 'string' ? { text: data }
  : { base64: Buffer.from(data).toString('base64') };

function payloadOf({ text, base64 }) {
  return typeof text === 'string' ? Buffer.from(text)
    : typeof base64 === 'string' ? Buffer.from(base64, 'base64') : null;
}

const valuesOf = ({ values }) => values.map((value) => (
  { key: value.key, data: payloadOf(value), revision: value.revision ?? 0 }));

/** Rejects with the signal's reason, or a TimeoutError, if `promise` is not settled before. */
function bounded(promise, { signal, timeoutMs }) {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    const timer = timeoutMs === undefined ? undefined : setTimeout(() => reject(
      new DOMException('no reply of the agent in time', 'TimeoutError')), timeoutMs);
    if (signal?.aborted) {
      abort();
    }
    signal?.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(() => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
    });
  });
}

/** Taking part in an election, until leave(). Emits acquired, lost, leader and stopped. */
export class Election extends EventEmitter {
  #client;
  #onDrain;
  #campaign;
  #stopped = null;
  #waiters = [];

  constructor(client, election, { priority = 0, onDrain }) {
    super();
    this.#client = client;
    this.#onDrain = onDrain;
    this.#campaign = new Campaign(election, (name, value) => this.#notify(name, value), null,
                                  priority);
  }

  get name() {
    return this.#campaign.election;
  }

  /** The present term, if this process leads. */
  get leadership() {
    return this.#campaign.leadership?.isLeader ? this.#campaign.leadership : null;
  }

  /** The leader's { name, epoch }, as this process knows it. */
  get leader() {
    return this.#campaign.leader;
  }

  #notify(name, value) {
    if (name === 'stopped') {
      this.#stopped = new BatonError('ECLOSED', `${this.name}: ${value}`);
    }
    if (this.#stopped || name === 'acquired') {
      this.#waiters.splice(0).forEach((waiter) => waiter());
    }
    queueMicrotask(() => name === 'drain' ? this.#drain(value) : this.emit(name, value));
  }

  async #drain(leadership) {
    if (this.#onDrain !== null) {
      await this.#onDrain?.(leadership);
      if (this.leadership === leadership) {
        await this.drained().catch(() => {});
      }
    }
  }

  /** @private */
  enter() {
    return this.#client.ask((machine, done) => {
      this.#campaign.done = done;
      machine.campaign(this.#campaign);
    }).then(checked).then(() => this);
  }

  /** Waits until this process leads. */
  async wait({ signal } = {}) {
    while (!this.leadership) {
      if (this.#stopped) {
        throw this.#stopped;
      }
      await bounded(new Promise((resolve) => this.#waiters.push(resolve)), { signal });
    }
    return this.leadership;
  }

  /** Stops leading at once, hands over to `to` or the next in line, and goes on contending. */
  async resign({ to, timeoutMs = REPLY_MS } = {}) {
    const request = { do: 'resign', epoch: this.#campaign.knownEpoch, to, timeout_ms: timeoutMs };
    checked(await this.#client.ask((machine, done) => machine.resign(this.#campaign, done, request),
                                   timeoutMs));
  }

  /** Says that the work has stopped: leadership is handed over, as was asked for. */
  async drained() {
    checked(await this.#client.ask((machine, done) => machine.resign(this.#campaign, done,
                                                                     { do: 'drained' })));
  }

  /** Stops leading at once, and takes part no more. */
  async leave({ timeoutMs = REPLY_MS } = {}) {
    checked(await this.#client.ask((machine, done) => machine.leave(this.#campaign, done),
                                   timeoutMs));
  }

  /** Leaves at the end of a block. An agent that is away is not waited for. */
  async [asyncDispose]() {
    await this.leave({ timeoutMs: this.#client.ready ? END_MS : 0 }).catch(() => {});
  }
}

/** A connection to the host's agent, for any number of elections; made by Client.connect(). A
 * connection that is lost comes back by itself, which is emitted as "disconnected" (error). */
export class Client extends EventEmitter {
  #path;
  #machine;
  #socket = null;
  #timer;
  #closing = false; // says bye, or is closed
  #closed;

  constructor(options) {
    super();
    clock ??= new UptimeClock();
    this.#path = options.path || agentPath();
    this.#machine = new Machine(greeting(options), clock);
  }

  /** Rejects if the agent is not there, or refuses. */
  static async connect(options = {}) {
    const client = new Client(options);
    await new Promise((resolve, reject) => client.#connect(resolve, reject));
    return client;
  }

  get ready() {
    return this.#machine.ready;
  }

  /** Takes part. When what onDrain returned is settled, the work has stopped, and leadership is
   * handed over; without onDrain, at once. */
  campaign(election, options = {}) {
    return new Election(this, election, options).enter();
  }

  /** Leads while work(leadership) runs, which begins when this process leads. */
  async lead(election, ...rest) {
    const [{ priority, signal }, work] = rest.length > 1 ? rest : [{}, ...rest];
    const part = await new Election(this, election, { priority, onDrain: null }).enter();
    try {
      return await work(await part.wait({ signal }));
    } finally {
      await part[asyncDispose]();
    }
  }

  async members(election) {
    return (await this.#request({ do: 'members', election })).members;
  }

  async elections() {
    return (await this.#request({ do: 'elections' })).elections;
  }

  async setMetadata(metadata) {
    checked(await this.ask((machine, done) => machine.setMetadata(metadata, done)));
  }

  /** { key, data, revision }, or null. */
  async get(key) {
    const reply = await this.ask((machine, done) => machine.request({ do: 'get', key }, done));
    return reply.code === 'ENOENT' ? null : valuesOf(checked(reply))[0] ?? null;
  }

  async list(prefix = '') {
    return valuesOf(await this.#request({ do: 'list', prefix }));
  }

  /** Writes, or deletes (null), if the key is at `revision` (0: absent; undefined: any). The value
   * goes after lifetimeMs. Resolves to the key's new revision, 0 after a deletion. ECONFLICT: the
   * key is at another revision. */
  async put(key, data, { revision, lifetimeMs } = {}) {
    const reply = await this.#request({ do: 'put', key, revision, lifetime_ms: lifetimeMs,
                                        ...(data === null ? { nothing: true } : payload(data)) });
    return reply.revision;
  }

  /** Calls onChange(values) now and at each change; returns a function that ends it. */
  watch(prefix, onChange) {
    return this.#feed({ do: 'watch', prefix }, (event) => onChange(valuesOf(event)));
  }

  async publish(channel, data) {
    await this.#request({ do: 'publish', channel, ...payload(data) });
  }

  /** Calls onMessage(data); returns a function that ends it. */
  subscribe(channel, onMessage) {
    return this.#feed({ do: 'subscribe', channel }, (event) => onMessage(payloadOf(event)));
  }

  async #feed(request, notify) {
    const feed = { request, notify: (event) => queueMicrotask(() => notify(event)) };
    checked(await this.ask((machine, done) => machine.feed(Object.assign(feed, { done }))));
    return () => {
      this.#machine.endFeed(feed);
      this.#step();
    };
  }

  async #request(message) {
    return checked(await this.ask((machine, done) => machine.request(message, done)));
  }

  /** @private */
  async ask(begin, timeoutMs = REPLY_MS) {
    if (this.#closed) {
      throw new BatonError('ECLOSED', 'the client is closed');
    }
    let done;
    const reply = new Promise((resolve) => {
      done = resolve;
    });
    begin(this.#machine, done);
    this.#step();
    return bounded(reply, { timeoutMs }).finally(() => this.#machine.forget(done));
  }

  /** Stops leading at once, and ends the session: all is handed on. May be called twice. */
  async close() {
    if (!this.#closing) {
      this.#closing = true;
      this.#machine.giveUpAll();
      if (this.ready) {
        await this.ask((machine, done) => machine.request({ do: 'bye' }, done), END_MS)
          .catch(() => {});
      }
      this.#end();
    }
  }

  [asyncDispose]() {
    return this.close();
  }

  #end() {
    this.#closed = this.#closing = true;
    clearTimeout(this.#timer);
    this.#socket?.destroy();
    this.#machine.close();
  }

  // ---- The connection

  #connect(greeted = () => {}, refused = null) {
    const socket = this.#socket = createConnection({ path: this.#path });
    let cause = new BatonError('EUNAVAILABLE', 'the agent closed the connection');
    socket.on('connect', () => this.#machine.connected());
    socket.on('connect', () => this.#step());
    socket.on('data', (data) => {
      try {
        this.#machine.received(data);
      } catch (error) {
        socket.destroy(error);
        return;
      }
      this.#step();
      if (this.ready) {
        refused = null;
        greeted();
      }
    });
    socket.on('error', (error) => {
      cause = error;
    });
    socket.on('close', () => {
      if (this.#closed) {
        return;
      }
      const delayMs = this.#machine.disconnected();
      if (refused || this.#closing) {
        this.#end();
        refused?.(cause);
        return;
      }
      this.#step();
      setTimeout(() => this.#closed || this.#connect(), delayMs);
      this.emit('disconnected', cause);
    });
  }

  /** Sends what is due, and sets the timer for what comes next. */
  #step() {
    this.#machine.tick();
    const output = this.#machine.takeOutput();
    if (output) {
      this.#socket.write(output);
    }
    clearTimeout(this.#timer);
    const waitMs = this.#machine.wakeAt() - clock.latestMs();
    if (waitMs < Infinity) {
      this.#timer = setTimeout(() => this.#step(), Math.max(1, waitMs));
    }
  }
}

/** Leads an election while work(leadership) runs, which begins when this process leads; its end
 * hands leadership on:
 *
 *   await lead('report', async (leadership) => {
 *     while (!leadership.stopping.aborted) {
 *       leadership.check();
 *       await work(leadership.epoch);
 *     }
 *   });
 */
export async function lead(election, ...rest) {
  const [options, work] = rest.length > 1 ? rest : [{}, ...rest];
  const client = await Client.connect(options);
  try {
    return await client.lead(election, options, work);
  } finally {
    await client.close();
  }
}
