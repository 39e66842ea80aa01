// The client's side of the agent's protocol, without I/O: bytes and a clock come in, bytes and
// calls of the user's side go out. index.js moves the bytes.
//
//     connected()       hello's reply         disconnected()
// away ───────────▶ hello ─────────────▶ ready ─────────────────▶ away
//                      every campaign and feed is sent again
//
// A lost connection ends no leadership: the agent, or the next one, continues the session, and each
// leadership lasts until its lease ends by this machine's clock. A lease only comes from `renew`:
// it ends left_ms after the instant at which that request was *made*, so a reply that arrives late
// is worth less, never too much. Whether two clocks agree does not matter.

const LINE_MAX = 2 << 20; // bytes of a message
export const PARTS_MAX = 512; // messages of one reply; an agent sends at most 385
export const SENT_MAX = 1000; // requests without a reply; the agent allows 1024
export const RENEWS_MAX = 2; // of these, renewals
const WAITING_MAX = 65536; // requests that wait for the agent, or for SENT_MAX
const BACKOFF_MS = [10, 500];

/** A request failed; `code` is the library's name without BATON_: "EINVAL". */
export class BatonError extends Error {
  constructor(code, message) {
    super(message);
    this.name = this.constructor.name;
    this.code = code;
  }
}

/** This process does not lead in that epoch any more, or not yet. */
export class Lost extends BatonError {}

export const DISCONNECTED = {
  ok: false, code: 'EUNAVAILABLE', error: 'the connection to the agent was lost before it replied',
};

export function checked(reply) {
  if (!reply.ok) {
    throw new BatonError(String(reply.code), String(reply.error));
  }
  return reply;
}

/** One term as leader. `stopping` is aborted when the work should stop: leadership is to be handed
 * over, or is lost. `signal` is aborted when it is over, and `reason` says why. */
export class Leadership {
  #clock;
  #lost = new AbortController();
  #stopping = new AbortController();
  endMs = 0; // by the clock, in the core's hands
  reason = null;

  constructor(election, epoch, clock) {
    this.election = election;
    this.epoch = epoch;
    this.signal = this.#lost.signal;
    this.stopping = this.#stopping.signal;
    this.#clock = clock;
  }

  /** Whether this process may act now. */
  get isLeader() {
    return this.remainingMs > 0;
  }

  /** Until the lease ends if it is not renewed; 0 or less: it is over. */
  get remainingMs() {
    return this.reason === null && this.endMs > 0 ? this.endMs - this.#clock.latestMs() : 0;
  }

  /** Throws Lost unless this process may act now. */
  check() {
    if (!this.isLeader) {
      throw this.#over();
    }
  }

  #over() {
    return new Lost('ELOST', `${this.election}: no longer leading in epoch ${this.epoch}: ` +
                             `${this.reason ?? 'the lease is over'}`);
  }

  // A listener of a signal may call anything, so none runs within the state machine.
  drain() {
    queueMicrotask(() => this.#stopping.abort(new BatonError('EBUSY', 'to be handed over')));
  }

  end(reason) {
    this.reason = reason;
    const over = this.#over();
    queueMicrotask(() => {
      this.#stopping.abort(over);
      this.#lost.abort(over);
    });
  }
}

/** What this process wants of an election, and what it knows of it. */
export class Campaign {
  leader = null; // { name, epoch }
  knownEpoch = 0; // the latest that was granted to this process
  leadership = null; // while it is not given up
  grantedAt = 0; // the id of the last request before the grant
  acts = false; // the user was told of the leadership
  drains = false; // it was asked to hand over
  owed = 0; // the epoch that was given up, until the agent confirms that
  resigning = false;
  left = []; // not empty: it leaves

  constructor(election, notify, done, priority = 0) {
    this.election = election;
    this.notify = notify; // (name, value): acquired, drain, lost, leader, stopped
    this.done = done; // of the first request
    this.priority = priority;
  }
}

function whole(message, name) {
  const number = message[name];
  if (!Number.isSafeInteger(number) || number < 0) {
    throw new TypeError(`${name}: no whole number`);
  }
  return number;
}

function amount(message, name) {
  if (!Number.isFinite(message[name])) {
    throw new TypeError(`${name}: no number`);
  }
  return message[name];
}

/** The state machine. After each call, send takeOutput(), and call tick() at wakeAt(). */
export class Machine {
  agent = {}; // its reply to hello
  session = null;
  ready = false;
  campaigns = new Map();
  #greeting;
  #clock;
  #feeds = new Set();
  #input = Buffer.alloc(0);
  #output = [];
  #lastId = 0;
  #sent = new Map();
  #parts = new Map(); // of their replies: the values so far
  #waiting = []; // requests of the user's
  #restoring = []; // requests of this connection
  #renewAt = 0;
  #renews = 0; // under way
  #hasGrants = false; // no renewal was sent since the last grant
  #backoffMs = BACKOFF_MS[0];

  /** clock: earliestMs() and latestMs(), between which the present instant lies. */
  constructor(greeting, clock) {
    this.#greeting = greeting;
    this.#clock = clock;
  }

  // ---- The connection

  connected() {
    this.#input = Buffer.alloc(0);
    const resumed = this.session ? { session: this.session } : {};
    this.#send(this.#numbered({ do: 'hello', ...this.#greeting, ...resumed }),
               (reply) => this.#greeted(reply));
  }

  /** The connection was lost or refused; returns the milliseconds until the next attempt. */
  disconnected() {
    this.ready = false;
    this.#output = [];
    const givenUp = [...this.#sent.values(), ...this.#restoring.map(([, done]) => done)];
    this.#sent.clear();
    this.#parts.clear();
    this.#restoring = [];
    givenUp.forEach((done) => done(DISCONNECTED));
    const delayMs = this.#backoffMs;
    this.#backoffMs = Math.min(2 * delayMs, BACKOFF_MS[1]);
    return delayMs;
  }

  /** Throws BatonError if the bytes are none of an agent, or if it refuses this client: close the
   * connection then. */
  received(data) {
    this.#expire();
    this.#input = Buffer.concat([this.#input, data]);
    try {
      for (let end; (end = this.#input.indexOf(10)) >= 0;) {
        const line = this.#input.subarray(0, end);
        this.#input = this.#input.subarray(end + 1);
        this.#take(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(line)));
      }
    } catch (error) {
      throw error instanceof BatonError ? error
        : new BatonError('EPROTO', `no message of an agent arrived: ${error.message}`);
    }
    if (this.#input.length > LINE_MAX) {
      throw new BatonError('EPROTO', `a message of more than ${LINE_MAX} bytes`);
    }
    if (this.#hasGrants && this.#renews < RENEWS_MAX) {
      this.#renew(); // one for all: with its reply they may be acted upon
    }
    this.#pump();
  }

  takeOutput() {
    const output = this.#output.join('');
    this.#output = [];
    return output;
  }

  tick() {
    this.#expire();
    if (this.ready && this.#clock.latestMs() >= this.#renewAt && this.#renews === 0) {
      this.campaigns.forEach((campaign) => this.#resign(campaign));
      this.#renew();
      this.#pump();
    }
  }

  /** When tick() is due, by the clock; Infinity: not at all. */
  wakeAt() {
    let at = this.ready && this.#renews === 0 ? this.#renewAt : Infinity;
    for (const { leadership, acts } of this.campaigns.values()) {
      at = leadership && acts ? Math.min(at, leadership.endMs) : at;
    }
    return at;
  }

  // ---- The user's side

  /** Sends a request as soon as there is an agent; done() gets its one reply. */
  request(message, done) {
    if (this.#waiting.length >= WAITING_MAX) {
      throw new BatonError('EBUSY', `${WAITING_MAX} requests wait for the agent`);
    }
    this.#waiting.push([this.#numbered(message), done]);
    this.#pump();
  }

  /** Nobody waits for this reply any more; a request that was not sent is not sent. */
  forget(done) {
    this.#waiting = this.#waiting.filter((entry) => entry[1] !== done);
  }

  campaign(campaign) {
    if (this.campaigns.has(campaign.election)) {
      throw new BatonError('EEXIST', `${campaign.election}: this client takes part already`);
    }
    this.campaigns.set(campaign.election, campaign);
    if (this.ready) {
      this.#enter(campaign);
    }
  }

  /** Stops acting, and only then says so: `request` is a resign, or the reply to a drain. */
  resign(campaign, done, request) {
    if (!campaign.leadership) {
      throw new BatonError('ENOTLEADER', `${campaign.election}: not led by this process`);
    }
    this.#giveUp(campaign, 'resigned');
    if (this.ready) {
      this.#resign(campaign, done, request);
    } else {
      done(DISCONNECTED);
    }
  }

  leave(campaign, done) {
    if (this.campaigns.get(campaign.election) !== campaign) {
      done({ ok: true });
      return;
    }
    if (campaign.leadership) {
      this.#giveUp(campaign, 'left');
    }
    campaign.left.push(done);
    if (this.ready && campaign.left.length === 1) {
      this.#leave(campaign);
    }
  }

  giveUpAll() {
    [...this.campaigns.values()].filter((campaign) => campaign.leadership)
      .forEach((campaign) => this.#giveUp(campaign, 'closed'));
  }

  /** No connection will follow. */
  close() {
    this.disconnected();
    [...this.campaigns.values()].forEach((campaign) => this.#remove(campaign, 'closed'));
    this.#waiting.splice(0).forEach(([, done]) => done(DISCONNECTED));
  }

  setMetadata(metadata, done) {
    this.#greeting.metadata = metadata;
    this.request({ do: 'metadata', metadata }, done);
  }

  /** A watch or a subscription: { request, notify(event), done }. */
  feed(feed) {
    this.#feeds.add(feed);
    if (this.ready) {
      this.#feed(feed);
    }
  }

  endFeed(feed) {
    if (this.#feeds.delete(feed) && this.ready) {
      this.#queue('prefix' in feed.request ? { do: 'unwatch', watch: feed.id }
        : { do: 'unsubscribe', channel: feed.request.channel }, () => {});
    }
  }

  // ---- What is sent

  #numbered(message) {
    return { id: ++this.#lastId, ...message };
  }

  #send(message, done) {
    this.#sent.set(message.id, done);
    this.#output.push(JSON.stringify(message) + '\n');
  }

  /** Sends what the next connection will repeat by itself, if it is still wanted then. */
  #queue(message, done) {
    const numbered = this.#numbered(message);
    this.#restoring.push([numbered, done]);
    this.#pump();
    return numbered.id;
  }

  #pump() {
    for (const queue of [this.#restoring, this.#waiting]) {
      const room = this.ready ? Math.max(0, SENT_MAX - this.#sent.size) : 0;
      queue.splice(0, room).forEach(([message, done]) => this.#send(message, done));
    }
  }

  #renew() {
    const madeMs = this.#clock.earliestMs();
    this.#renewAt = madeMs + this.agent.renew_ms;
    this.#renews++;
    this.#hasGrants = false;
    const message = this.#numbered({ do: 'renew' });
    this.#send(message, (reply) => this.#renewed(message.id, madeMs, reply));
  }

  #enter(campaign) {
    const { election, priority, knownEpoch, leadership } = campaign;
    this.#queue({ do: 'campaign', election, priority, eligible: true, known_epoch: knownEpoch,
                  acts: leadership !== null },
                (reply) => this.#entered(campaign, reply));
    if (campaign.left.length > 0) {
      this.#leave(campaign);
    }
  }

  #leave(campaign) {
    this.#queue({ do: 'leave', election: campaign.election }, (reply) => {
      if (reply !== DISCONNECTED && !reply.ok) {
        this.#remove(campaign, 'left'); // else the event "stopped" comes, the last of it
      }
    });
  }

  /** Sends that an epoch was given up, again and again until the agent confirms it. */
  #resign(campaign, done = () => {}, request = { do: 'resign', epoch: campaign.owed }) {
    if (!campaign.owed || campaign.resigning) {
      return;
    }
    const epoch = campaign.owed;
    campaign.resigning = true;
    this.#queue({ ...request, election: campaign.election }, (reply) => {
      campaign.resigning = false;
      if (campaign.owed === epoch && (reply.ok || reply.code === 'ENOTLEADER')) {
        campaign.owed = 0;
      }
      done(reply);
    });
  }

  #feed(feed) {
    feed.id = this.#queue(feed.request, (reply) => {
      if (reply === DISCONNECTED) {
        return;
      }
      feed.done?.(reply);
      feed.done = null;
      if (!reply.ok) {
        this.#feeds.delete(feed);
      }
    });
  }

  // ---- What is received

  #take(message) {
    if ('event' in message) {
      this.#events[message.event]?.(message); // events of later versions are ignored
    } else if ('id' in message) {
      this.#takeReply(whole(message, 'id'), message);
    } else {
      throw new BatonError(String(message.code ?? 'EPROTO'), String(message.error));
    }
  }

  #takeReply(id, reply) {
    const done = this.#sent.get(id);
    const parts = this.#parts.get(id) ?? [];
    if (!done) {
      return;
    }
    if ('values' in reply) {
      parts.push(reply.values);
    }
    if (parts.length > PARTS_MAX) {
      throw new TypeError(`a reply in more than ${PARTS_MAX} parts`);
    }
    if (reply.more === true) {
      this.#parts.set(id, parts);
      return;
    }
    this.#sent.delete(id);
    this.#parts.delete(id);
    done({ ok: false, ...reply, ...(parts.length > 0 ? { values: parts.flat() } : {}) });
  }

  #greeted(reply) {
    if (reply === DISCONNECTED) {
      return;
    }
    if (!reply.ok && this.session && ['ENOENT', 'EAUTH'].includes(reply.code)) {
      this.#setSession(null); // the next attempt opens another one
    }
    checked(reply);
    if (!(amount(reply, 'renew_ms') > 0 && reply.renew_ms <= amount(reply, 'lifetime_ms'))) {
      throw new TypeError('renew_ms or lifetime_ms');
    }
    this.agent = reply;
    this.ready = true;
    this.#backoffMs = BACKOFF_MS[0];
    this.#renew();
    this.campaigns.forEach((campaign) => this.#enter(campaign));
    this.#feeds.forEach((feed) => this.#feed(feed));
  }

  #renewed(id, madeMs, reply) {
    this.#renews--;
    if (!reply.ok) {
      return;
    }
    const endMs = madeMs + Math.min(Math.max(0, amount(reply, 'left_ms')), this.agent.lifetime_ms);
    for (const campaign of this.campaigns.values()) {
      const { leadership, grantedAt, acts } = campaign;
      if (leadership && id > grantedAt && endMs > leadership.endMs) {
        leadership.endMs = endMs; // a promise is never taken back
        if (!acts && leadership.isLeader) {
          campaign.acts = true;
          campaign.notify('acquired', leadership);
        }
      }
    }
  }

  #entered(campaign, reply) {
    if (reply === DISCONNECTED) {
      return;
    }
    campaign.done?.(reply);
    campaign.done = null;
    if (!reply.ok) {
      this.#remove(campaign, String(reply.error));
    }
  }

  #events = {
    __proto__: null,
    session: ({ session }) => {
      if (session !== null && typeof session !== 'string') {
        throw new TypeError('session: no text');
      }
      this.#setSession(session === '0' ? null : session);
    },
    'leadership-acquired': (event) => this.#granted(this.campaigns.get(event.election),
                                                    whole(event, 'epoch')),
    'leadership-lost': (event) => {
      const campaign = this.campaigns.get(event.election);
      const epoch = whole(event, 'epoch');
      if (campaign && campaign.owed <= epoch) {
        campaign.owed = 0;
      }
      if (campaign?.leadership && campaign.leadership.epoch <= epoch) {
        this.#lose(campaign, String(event.reason));
      }
    },
    'leader-changed': (event) => {
      const campaign = this.campaigns.get(event.election);
      if (campaign) {
        campaign.leader = event.leader === null ? null
          : { name: event.leader, epoch: whole(event, 'epoch') };
        campaign.notify('leader', campaign.leader);
      }
    },
    drain: (event) => {
      const campaign = this.campaigns.get(event.election);
      if (campaign?.leadership && !campaign.acts) {
        this.#giveUp(campaign, 'drained');
        this.#resign(campaign);
      } else if (campaign?.leadership && !campaign.drains) {
        campaign.drains = true;
        campaign.leadership.drain();
        campaign.notify('drain', campaign.leadership);
      }
    },
    stopped: (event) => {
      const campaign = this.campaigns.get(event.election);
      if (campaign) {
        this.#remove(campaign, 'the agent ended it');
      }
    },
    change: (event) => this.#feeds.forEach((feed) => feed.id === event.watch && feed.notify(event)),
    message: (event) => this.#feeds.forEach((feed) => {
      if (feed.request.channel === event.channel) {
        feed.notify(event);
      }
    }),
  };

  #granted(campaign, epoch) {
    if (!campaign || campaign.left.length > 0 || epoch === campaign.leadership?.epoch) {
      return; // the last: it goes on, by another agent
    }
    if (epoch <= campaign.knownEpoch) {
      campaign.owed = campaign.knownEpoch = epoch; // was given up: never acted in again
      this.#resign(campaign);
      return;
    }
    this.#lose(campaign, 'another epoch');
    Object.assign(campaign, {
      knownEpoch: epoch, owed: 0, acts: false, drains: false, grantedAt: this.#lastId,
      leadership: new Leadership(campaign.election, epoch, this.#clock),
    });
    this.#hasGrants = true;
  }

  // ---- The ends of a leadership

  #setSession(session) {
    if (this.session !== null && session !== this.session) {
      for (const campaign of this.campaigns.values()) {
        campaign.owed = 0; // the session's end gave everything up
        this.#lose(campaign, 'the session ended');
      }
    }
    this.session = session;
  }

  #expire() {
    for (const campaign of this.campaigns.values()) {
      if (campaign.leadership && campaign.acts && !campaign.leadership.isLeader) {
        this.#giveUp(campaign, 'the lease is over');
      }
    }
  }

  #giveUp(campaign, reason) {
    campaign.owed = campaign.knownEpoch;
    this.#lose(campaign, reason);
  }

  #lose(campaign, reason) {
    const leadership = campaign.leadership;
    campaign.leadership = null;
    leadership?.end(reason);
    if (leadership && campaign.acts) {
      campaign.notify('lost', leadership);
    }
  }

  #remove(campaign, reason) {
    if (this.campaigns.get(campaign.election) === campaign) {
      this.campaigns.delete(campaign.election);
      this.#lose(campaign, reason);
      campaign.notify('stopped', reason);
      campaign.left.forEach((done) => done({ ok: true }));
    }
  }
}
