// The Node client and an agent: blocks, callbacks, and agents that go away.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import * as baton from '../../clients/node/lib/index.js';

const { BatonError, Client, lead, Lost } = baton;

const DEADLINE_MS = 240000;
const LONG_MS = 30000; // of a lease that no pause of a busy machine outlasts
const SHORT_MS = 1000; // of one whose end a test waits for

class Agent {
  constructor(t, lifetimeMs) {
    this.lifetimeMs = lifetimeMs;
    this.folder = mkdtempSync(join(tmpdir(), 'baton-clients-'));
    this.path = join(this.folder, 'agent.sock');
    t.after(async () => {
      await this.kill();
      rmSync(this.folder, { recursive: true });
    });
  }

  async start() {
    const script = fileURLToPath(new URL('agent.py', import.meta.url));
    this.process = spawn('python3', ['-B', script, this.path, join(this.folder, 'state'),
                                     String(this.lifetimeMs)], { stdio: 'inherit' });
    await until(() => Client.connect(this).then((client) => client.close()).then(() => true,
                                                                              () => false));
    return this;
  }

  async kill() {
    this.process.kill('SIGKILL');
    if (this.process.exitCode === null && this.process.signalCode === null) {
      await once(this.process, 'exit');
    }
  }
}

async function until(condition) {
  for (const end = Date.now() + DEADLINE_MS; Date.now() < end;) {
    if (await condition()) {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.fail('not in time');
}

const aborted = (signal) => signal.aborted || once(signal, 'abort');

// A test with an agent, and clients that end with it.
function played(name, play, lifetimeMs = LONG_MS) {
  test(name, { timeout: 2 * DEADLINE_MS }, async (t) => {
    const agent = await new Agent(t, lifetimeMs).start();
    const connect = async (options) => {
      const client = await Client.connect({ path: agent.path, ...options });
      t.after(() => client.close());
      return client;
    };
    await play(agent, connect);
  });
}

played('lead() begins when this process leads, and its end hands on', async (agent, connect) => {
  const other = await (await connect()).campaign('report');
  const first = await other.wait();
  await assert.rejects(lead('report', { path: agent.path, signal: AbortSignal.timeout(200) },
                            () => assert.fail('two lead')), { name: 'TimeoutError' });
  await other.leave();
  assert.equal(first.isLeader, false);
  const later = await lead('report', { path: agent.path }, (leadership) => {
    assert(leadership.isLeader && leadership.epoch > first.epoch);
    leadership.check();
    return leadership;
  });
  assert.throws(() => later.check(), Lost);
  await assert.rejects(lead('report', { path: agent.path }, () => {
    throw new RangeError();
  }), RangeError);
});

played('without options the agent of the environment is asked', async (agent) => {
  process.env.BATON_AGENT = agent.path;
  const names = await lead('report', async (leadership) => {
    const client = await Client.connect();
    const members = await client.members(leadership.election);
    await client.close();
    return members.map((member) => member.name);
  });
  delete process.env.BATON_AGENT;
  assert.deepEqual(names, [String(process.pid)]);
});

played('leadership outlives the agent', async (agent) => {
  await lead('report', { path: agent.path }, async (leadership) => {
    for (let i = 0; i < 3; i++) {
      await agent.kill();
      await agent.start();
      const end = leadership.endMs;
      await until(() => leadership.endMs > end);
    }
    assert(leadership.isLeader);
  });
});

played('leadership ends with its lease', async (agent) => {
  await lead('report', { path: agent.path }, async (leadership) => {
    await agent.kill();
    await aborted(leadership.signal);
    assert.equal(leadership.isLeader, false);
  });
}, SHORT_MS);

played('an agent that hangs costs the leadership, and no more', async (agent, connect) => {
  const part = await (await connect()).campaign('report');
  const leadership = await part.wait();
  agent.process.kill('SIGSTOP');
  await aborted(leadership.signal);
  agent.process.kill('SIGCONT');
  assert((await part.wait()).epoch > leadership.epoch);
}, SHORT_MS);

played('events come in order, and the end of onDrain hands over', async (agent, connect) => {
  const said = [];
  const [one, two] = [await connect({ name: 'one' }), await connect({ name: 'two' })];
  const part = await one.campaign('report', {
    onDrain: async (leadership) => {
      assert(leadership.stopping.aborted);
      await null;
      said.push(`drain ${leadership.isLeader}`);
    },
  });
  part.on('acquired', () => said.push('acquired'));
  part.on('lost', (leadership) => said.push(`lost ${leadership.isLeader}`));
  const { epoch } = await part.wait();
  const heir = await two.campaign('report');
  two.ask((machine, done) => machine.request({ do: 'pass', election: 'report' }, done));
  assert((await heir.wait()).epoch > epoch);
  await until(() => said.length === 3);
  assert.deepEqual(said, ['acquired', 'drain true', 'lost false']);
});

played('resigning hands over and contends again; leaving does not', async (agent, connect) => {
  const part = await (await connect()).campaign('report');
  const { epoch } = await part.wait();
  await part.resign();
  assert((await part.wait()).epoch > epoch);
  await part.leave();
  await assert.rejects(part.wait(), { code: 'ECLOSED' });
  await assert.rejects(part.resign(), { code: 'ENOTLEADER' });
});

played('members, elections, state and channels', async (agent, connect) => {
  const client = await connect({ name: 'web-1', metadata: { port: 80 } });
  await (await client.campaign('report')).wait();
  assert.deepEqual((await client.members('report')).map(({ name }) => name), ['web-1']);
  assert.deepEqual((await client.elections()).map(({ leader }) => leader), ['web-1']);
  await client.setMetadata({ port: 81 });
  let revision = await client.put('a/1', Buffer.of(0, 255), { revision: 0 });
  assert.equal((await client.get('a/1')).revision, revision);
  await assert.rejects(client.put('a/1', 'x', { revision: 0 }), { code: 'ECONFLICT' });
  const said = [];
  const unwatch = await client.watch('a/', (values) => said.push(...values));
  await client.put('a/2', 'text', { lifetimeMs: 60000 });
  await until(() => said.length === 2);
  assert.deepEqual(said.map(({ data }) => data), [Buffer.of(0, 255), Buffer.from('text')]);
  unwatch();
  assert.deepEqual((await client.list('a/')).map(({ key }) => key), ['a/1', 'a/2']);
  revision = await client.put('a/1', 'y', { revision });
  assert.equal(await client.put('a/1', null, { revision }), 0);
  assert.equal(await client.get('a/1'), null);
  const news = [];
  await client.subscribe('news', (data) => news.push(String(data)));
  await client.publish('news', 'caf\u00e9');
  await until(() => news.length > 0);
  assert.deepEqual(news, ['caf\u00e9']);
});

played('a client that was closed says so, and may be closed twice', async (agent, connect) => {
  const client = await connect();
  const part = await client.campaign('report');
  const leadership = await part.wait();
  await Promise.all([client.close(), client.close()]);
  assert.equal(leadership.isLeader, false);
  await assert.rejects(client.get('a'), { code: 'ECLOSED' });
  await assert.rejects(part.wait(), BatonError);
});

test('an agent that is not there at first is an error', async () => {
  await assert.rejects(Client.connect({ path: '/nowhere/agent.sock' }), { code: 'ENOENT' });
});

test("the user's own agent is found", async (t) => {
  const agent = await new Agent(t, LONG_MS).start();
  const { XDG_RUNTIME_DIR, BATON_AGENT } = process.env;
  const { geteuid } = process;
  t.after(() => Object.assign(process, { geteuid }));
  t.after(() => Object.assign(process.env, { XDG_RUNTIME_DIR: XDG_RUNTIME_DIR ?? '',
                                             BATON_AGENT: BATON_AGENT ?? '' }));
  Object.assign(process.env, { XDG_RUNTIME_DIR: agent.folder, BATON_AGENT: '' });
  process.geteuid = () => 1000;
  await assert.rejects(Client.connect(), /ENOENT \/run\/baton\/agent.sock/);
  mkdirSync(join(agent.folder, 'baton'));
  symlinkSync(agent.path, join(agent.folder, 'baton', 'agent.sock'));
  await (await Client.connect()).close();
});

test('a server that is no agent is refused', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'baton-clients-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 's');
  const answers = ['HTTP/1.1 400 no\r\n\r\n',
                   '{"id":1,"ok":false,"code":"EAUTH","error":"uid 7 may not"}\n', ''];
  const server = createServer((socket) => socket.once('data', () => socket.end(answers.shift())))
    .on('connection', (socket) => socket.on('error', () => {}));
  t.after(() => server.close());
  await new Promise((resolve) => server.listen(path, resolve));
  for (const code of ['EPROTO', 'EAUTH', 'EUNAVAILABLE']) {
    await assert.rejects(Client.connect({ path }), { code });
  }
});

test('the declarations name what is there', () => {
  const text = readFileSync(new URL('../../clients/node/lib/index.d.ts', import.meta.url), 'utf8');
  const exported = [...text.matchAll(/^export (?:class|function) (\w+)/gm)].map((found) => found[1]);
  assert.deepEqual(new Set(exported), new Set(Object.keys(baton)));
  for (const [, name, body] of text.matchAll(/^export class (\w+)[^{]*{\n(.*?)^}/gms)) {
    for (const [, member] of body.matchAll(/^ {2}(?:readonly )?(\w+)[(<:]/gm)) {
      assert(member === 'code' || member in baton[name].prototype, `${name}.${member}`);
    }
  }
});

test('the page of the clients has JavaScript that can be read', () => {
  const page = readFileSync(new URL('../../docs/clients.md', import.meta.url), 'utf8');
  const blocks = [...page.matchAll(/```js\n(.*?)```/gs)].map((found) => found[1]);
  assert(blocks.length > 1);
  for (const input of blocks) {
    const read = spawnSync(process.execPath, ['--input-type=module', '--check', '-'], { input });
    assert.equal(read.status, 0, String(read.stderr));
  }
});
