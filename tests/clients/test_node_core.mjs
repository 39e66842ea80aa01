// The Node client's state machine plays conversations.txt; what only JavaScript has comes after.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { BatonError, Campaign, Lost, Machine, PARTS_MAX, RENEWS_MAX, SENT_MAX }
  from '../../clients/node/lib/core.js';
import * as work from '../../clients/node/lib/work_core.js';

const leads = (election, epoch) => `campaign ${election}
connect
reply hello {"ok":true,"version":1,"lifetime_ms":3000,"renew_ms":500}
says {"event":"session","session":"17"}
reply renew {"ok":true,"left_ms":0}
reply campaign {"ok":true}
says {"event":"leadership-acquired","election":"${election}","epoch":${epoch}}
reply renew {"ok":true,"left_ms":2900}`;

// A machine, and the lines of a conversation, each by the function of its first word.
class Play {
  nowMs = 1000;
  sent = [];
  open = []; // without a reply
  ids = {}; // the last, by kind
  heard = [];
  campaigns = {};
  feeds = [];
  last = null;
  machine = new Machine({ version: 1, secret: '5e' },
                        { earliestMs: () => this.nowMs, latestMs: () => this.nowMs });

  line(line) {
    const [word, rest] = cut(line);
    try {
      this.words[word](rest);
    } catch (error) {
      if (!(error instanceof BatonError)) {
        throw error;
      }
      this.last = error.code;
    }
    for (const text of this.machine.takeOutput().split('\n').slice(0, -1)) {
      const message = JSON.parse(text);
      this.sent.push(message);
      this.open.push(message);
      this.ids[message.do] = message.id;
    }
  }

  done = (reply) => {
    this.last = reply.ok ? 'ok' : reply.code;
    this.keys = (reply.values ?? []).map(({ key }) => key);
  };

  feed(request) {
    this.feeds.push({ request, notify: (event) => this.heard.push(event.event) });
    this.machine.feed(this.feeds.at(-1));
  }

  receive(text) {
    this.machine.received(Buffer.from(this.filled(text) + '\n'));
  }

  filled(text) {
    return text.replace(/\$(\w+)/g, (_, kind) => this.ids[kind]);
  }

  words = {
    lead: (rest) => {
      leads(...rest.split(' ')).split('\n').forEach((line) => this.line(line));
      this.sent = [];
      this.heard = [];
    },
    connect: () => {
      this.open = [];
      this.machine.connected();
    },
    disconnect: (rest) => assert.equal(this.machine.disconnected(), Number(rest)),
    clock: (rest) => {
      this.nowMs += Number(rest);
    },
    tick: () => this.machine.tick(),
    wake: (rest) => assert.equal(this.machine.wakeAt(), this.nowMs + Number(rest)),
    campaign: (rest) => {
      const campaign = new Campaign(rest, (name, value) => {
        this.heard.push(name, ...(value?.check ? [String(value.epoch)] : []));
      }, this.done);
      this.machine.campaign(campaign);
      this.campaigns[rest] = campaign;
    },
    leave: (rest) => this.machine.leave(this.campaigns[rest], this.done),
    resign: (rest) => {
      const [election, request] = cut(rest);
      this.machine.resign(this.campaigns[election], this.done, JSON.parse(request));
    },
    request: (rest) => this.machine.request(JSON.parse(rest), this.done),
    forget: () => this.machine.forget(this.done),
    watch: (prefix) => this.feed({ do: 'watch', prefix }),
    subscribe: (channel) => this.feed({ do: 'subscribe', channel }),
    'end-feed': (rest) => this.machine.endFeed(this.feeds[rest]),
    close: () => this.machine.close(),
    says: (rest) => this.receive(rest),
    fails: (rest) => {
      const [code, text] = cut(rest);
      assert.throws(() => this.receive(text), { code });
    },
    reply: (rest) => {
      const [kind, text] = cut(rest);
      const at = this.open.findIndex((message) => message.do === kind);
      const [{ id }] = this.open.splice(at, 1);
      this.receive(JSON.stringify({ id, ...JSON.parse(text) }));
    },
    sends: (rest) => {
      const expected = JSON.parse(`[${this.filled(rest).replaceAll('} {', '},{')}]`);
      assert.deepEqual(this.sent.map((message) => message.do),
                       expected.map((message) => message.do));
      expected.forEach((members, i) => Object.entries(members).forEach(
        ([name, value]) => assert.equal(this.sent[i][name] ?? null, value)));
      this.sent = [];
    },
    hears: (rest) => {
      assert.deepEqual(this.heard, rest.split(' ').filter(Boolean));
      this.heard = [];
    },
    acts: (rest) => {
      const [election, left] = rest.split(' ');
      const leadership = this.campaigns[election].leadership;
      assert.equal(leadership?.isLeader ? String(leadership.remainingMs) : 'no', left);
    },
    result: (rest) => assert.equal(this.last, rest),
    gets: (rest) => assert.deepEqual(this.keys, rest.split(' ').filter(Boolean)),
  };
}

function cut(line) {
  const at = line.indexOf(' ');
  return at < 0 ? [line, ''] : [line.slice(0, at), line.slice(at + 1)];
}

const text = readFileSync(new URL('conversations.txt', import.meta.url), 'utf8');
for (const [name, ...lines] of text.split('\n== ').slice(1).map((part) => part.split('\n'))) {
  test(name, () => {
    const play = new Play();
    for (const line of lines.filter(Boolean)) {
      try {
        play.line(line);
      } catch (error) {
        error.message = `${line}: ${error.message}`;
        throw error;
      }
    }
  });
}

test('thousands of grants cost few renewals, and requests keep to their limit', () => {
  const play = new Play();
  for (let i = 0; i < 3000; i++) {
    play.line(`campaign ${i}`);
  }
  play.line('connect');
  play.line('reply hello {"ok":true,"version":1,"lifetime_ms":3000,"renew_ms":500}');
  while (play.open.length > 0) {
    assert(play.open.length <= SENT_MAX + RENEWS_MAX);
    play.line(`reply ${play.open[0].do} {"ok":true,"left_ms":0}`);
  }
  for (let i = 0; i < 3000; i++) {
    play.line(`says {"event":"leadership-acquired","election":"${i}","epoch":${i + 1}}`);
  }
  assert(play.open.length <= RENEWS_MAX);
  while (play.open.length > 0) {
    play.line('reply renew {"ok":true,"left_ms":2900}');
  }
  assert.equal(play.heard.filter((word) => word === 'acquired').length, 3000);
});

test('signals are aborted outside of the machine, and isLeader is false before', async () => {
  const play = new Play();
  play.line('lead report 1234');
  const { leadership } = play.campaigns.report;
  let said = null;
  leadership.signal.addEventListener('abort', () => {
    said = leadership.signal.reason;
  });
  play.line('resign report {"do":"resign","epoch":1234}');
  assert.equal(leadership.isLeader, false);
  assert.throws(() => leadership.check(), Lost);
  assert.equal(said, null);
  await null;
  assert(said instanceof Lost && leadership.stopping.aborted);
});

test('a clock that is coarse is read on its safe side', () => {
  const play = new Play();
  play.machine = new Machine({}, { earliestMs: () => play.nowMs, latestMs: () => play.nowMs + 10 });
  play.line('lead report 1234');
  play.line('acts report 2890');
  play.line('clock 2890');
  play.line('acts report no');
});

test('bytes arrive in any pieces, but not without an end', () => {
  const play = new Play();
  play.line('campaign report');
  const line = '{"event":"leader-changed","election":"report","leader":"w\u00e9b","epoch":1}\n';
  for (const byte of Buffer.from(line)) {
    play.machine.received(Buffer.of(byte));
  }
  assert.deepEqual(play.campaigns.report.leader, { name: 'w\u00e9b', epoch: 1 });
  for (const flood of ['['.repeat(100000) + '\n', Buffer.of(255, 10), Buffer.alloc(3 << 20)]) {
    play.line('connect');
    assert.throws(() => play.machine.received(Buffer.from(flood)), { code: 'EPROTO' });
    play.machine.disconnected();
  }
});

test('a reply has so many parts and no more', () => {
  const play = new Play();
  play.line('connect');
  play.line('reply hello {"ok":true,"version":1,"lifetime_ms":3000,"renew_ms":500}');
  play.line('request {"do":"list","prefix":""}');
  for (let i = 0; i < PARTS_MAX; i++) {
    play.line('says {"id":$list,"ok":true,"values":[],"more":true}');
  }
  play.line('fails EPROTO {"id":$list,"ok":true,"values":[],"more":true}');
});

// A worker, and the lines of a conversation. What it says is compared as text where it has numbers
// of more than 53 bits.
class WorkPlay {
  worker = new work.Worker('w', { slots: 2, labels: ['gpu'] });
  held = new Map();
  comes = [];

  play(lines) {
    for (const line of lines) {
      const [word, rest] = cut(line);
      if (['starts', 'halts', 'says'].includes(word)) {
        const [came, what] = this.comes.shift() ?? [];
        assert.equal(came, word, line);
        this.#expect(what, rest, word);
      } else if (word === 'idle') {
        assert.equal(this.worker.isIdle, rest === 'yes');
      } else {
        assert.deepEqual(this.comes, [], `before: ${line}`);
        this.#do(word, rest);
      }
    }
    assert.deepEqual(this.comes, []);
  }

  #expect(what, rest, word) {
    if (word === 'says') {
      const [wanted, said] = [JSON.parse(rest), JSON.parse(what)];
      assert.deepEqual(had(said, wanted), wanted);
      assert(!('ledger' in wanted) || what.includes(rest.match(/"ledger":\d+/)[0]), what);
    } else {
      assert.equal(what, rest);
    }
  }

  #do(word, rest) {
    if (['end', 'fail', 'lose'].includes(word)) {
      this.worker.ended(...this.held.get(rest),
        word === 'lose' ? null : { success: word === 'end' });
    } else {
      this.worker[word](word === 'session' ? Number(rest) : rest);
    }
    for (const held of this.worker.orders()) {
      this.held.set(held.id, [held, held.now.epoch]);
      this.comes.push([held.state === work.RUNNING ? 'starts' : 'halts',
                       `${held.id} ${held.now.epoch}`]);
    }
    this.comes.push(...[...this.worker.messages()].map((message) => ['says', message]));
  }
}

/** `value` with the members alone that are wanted. */
function had(value, wanted) {
  if (Array.isArray(wanted) && Array.isArray(value) && value.length === wanted.length) {
    return value.map((one, at) => had(one, wanted[at]));
  }
  return wanted === null || typeof wanted !== 'object' || Array.isArray(wanted) ? value
    : Object.fromEntries(Object.keys(wanted).filter((key) => key in value)
      .map((key) => [key, had(value[key], wanted[key])]));
}

const workText = readFileSync(new URL('work_conversations.txt', import.meta.url), 'utf8');
for (const conversation of workText.split('\n== ').slice(1)) {
  const [title, ...lines] = conversation.split('\n');
  test(title, () => new WorkPlay().play(lines.filter((line) => line)));
}

test('buckets and chunks are those of the leader', () => {
  assert.deepEqual(['', 'a', 'batch.0', 'n-1.17'].map(work.bucketOf), [17, 34, 50, 3]);
  const { ids, chunks } = work.chunksOf(
    ['x'.repeat(61500), { id: 'own' }, 'x'.repeat(61501), ''], 'n');
  assert.deepEqual(ids, ['n.0', 'own', 'n-1.0', 'n-1.1']);
  assert.deepEqual(chunks.map(([name]) => name), ['n', 'n-1']);
  assert(chunks[1][1].startsWith('{"unique":false,"items":[{"body":"x'));
  assert.deepEqual([...work.checkpoint(258, 'x')], [2, 1, 0, 0, 0, 0, 0, 0, 120]);
  assert.deepEqual(work.checkpointOf(Buffer.from('short')), { epoch: 0, data: null });
});
