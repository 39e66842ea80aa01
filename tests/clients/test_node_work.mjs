// Node workers of a pool that a program in C leads; harness.py has started both.
import assert from 'node:assert/strict';
import test from 'node:test';
import { BatonError, Client, Lost } from '../../clients/node/lib/index.js';
import { Pool } from '../../clients/node/lib/work.js';

const DEADLINE_MS = 240000;
const ABOUT = { slots: 4, reportIntervalMs: 100 };

// A test with a pool, and a client that ends with it.
function played(name, play) {
  test(name, { timeout: 2 * DEADLINE_MS }, async (t) => {
    const client = await Client.connect();
    t.after(() => client.close());
    await play(new Pool(client, 'pool'), t);
  });
}

const endsOf = (pool, ids) => pool.wait(ids, { signal: AbortSignal.timeout(DEADLINE_MS) });
const leave = (worker) => worker.leave({ timeoutMs: DEADLINE_MS });

// The signal may have come while something else was awaited.
const stopped = (run) => new Promise((resolve) => {
  run.stopping.aborted ? resolve() : run.stopping.addEventListener('abort', resolve);
});

played('items run, and their results come in the order of the ids', async (pool) => {
  const worker = await pool.worker('n', (run) => `${run.body}!`, ABOUT);
  const { ids } = await pool.submit(['one', { body: 'two', priority: 2 }, Buffer.from([0])]);
  const results = await endsOf(pool, ids);
  assert.deepEqual(results.map(({ output }) => String(output)), ['one!', 'two!', '\0!']);
  assert.deepEqual(results.map(({ id, state }) => [id, state]),
                   ids.map((id) => [id, 'completed']));
  assert.deepEqual(await pool.result(ids[0]), results[0]);
  assert.equal(await pool.result('never'), null);
  assert.equal(await leave(worker), true);
});

played('the next attempt has the checkpoint and a higher epoch', async (pool) => {
  const seen = [];
  const worker = await pool.worker('n', async (run) => {
    seen.push([run.attempt, run.checkpoint && String(run.checkpoint), run.epoch]);
    run.check();
    if (run.attempt === 1) {
      run.progress(0.5);
      await run.save('a third');
      await run.save('half');
      throw new Error('no more today');
    }
  }, ABOUT);
  await pool.submit([{ id: 'n-twice', retries: 1, backoff_ms: 1 }]);
  assert.equal((await endsOf(pool, ['n-twice']))[0].state, 'completed');
  assert.deepEqual(seen.map((entry) => entry.slice(0, 2)), [[1, null], [2, 'half']]);
  assert(seen[1][2] > seen[0][2]);
  await leave(worker);
});

played('a first attempt has no checkpoint of an earlier item', async (pool) => {
  const seen = [];
  const worker = await pool.worker('n', async (run) => {
    seen.push(run.checkpoint);
    await run.save('mine');
  }, ABOUT);
  const client = await Client.connect();
  await client.put('work/pool/k/n-again', Buffer.from('\x01\0\0\0\0\0\0\0theirs'));
  client.close();
  await pool.submit([{ id: 'n-again' }]);
  assert.equal((await endsOf(pool, ['n-again']))[0].state, 'completed');
  assert.deepEqual(seen, [null]);
  await leave(worker);
});

played('what is thrown is the output of a failure', async (pool) => {
  const worker = await pool.worker('n', () => {
    throw new RangeError('no more today');
  }, ABOUT);
  const [{ state, output }] = await endsOf(pool, (await pool.submit([''])).ids);
  assert.deepEqual([state, String(output)], ['failed', 'RangeError: no more today']);
  await leave(worker);
});

played('a cancelled item is stopped, and may act until it has ended', async (pool) => {
  let begun;
  const first = new Promise((resolve) => {
    begun = resolve;
  });
  const worker = await pool.worker('n', async (run) => {
    begun(run);
    await stopped(run);
    assert(run.mayAct);
  }, ABOUT);
  await pool.submit([{ id: 'n-cancelled' }]);
  const run = await first;
  assert.equal(run.stopping.aborted, false);
  await pool.cancel('n-cancelled');
  assert.equal((await endsOf(pool, ['n-cancelled']))[0].state, 'cancelled');
  assert.throws(() => run.check(), Lost);
  await leave(worker);
});

played('a run that was told that it may not act has no result', async (pool) => {
  const worker = await pool.worker('n', (run) => {
    if (run.attempt > 1) {
      return 'whole';
    }
    Object.defineProperty(run, 'mayAct', { value: false, configurable: true });
    assert.throws(() => run.check(), Lost);
    delete run.mayAct; // the lease was renewed
    run.check();
    return 'part';
  }, ABOUT);
  const [{ state, output }] = await endsOf(pool, (await pool.submit([{ id: 'n-lapsed' }])).ids);
  assert.deepEqual([state, String(output)], ['completed', 'whole']);
  await leave(worker);
});

played('a service that runs at the end of leaving goes on elsewhere', async (pool) => {
  const begun = [];
  const serve = async (run) => {
    begun.push(run.checkpoint && String(run.checkpoint));
    await run.save('state');
    await stopped(run);
  };
  const one = await pool.worker('n1', serve, ABOUT);
  await pool.submit([{ id: 'n-service', kind: 'service' }]);
  while (begun.length < 1) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.equal(await one.leave({ timeoutMs: 0 }), false);
  const two = await pool.worker('n2', serve, ABOUT);
  while (begun.length < 2) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.deepEqual(begun, [null, 'state']);
  await pool.cancel('n-service');
  await endsOf(pool, ['n-service']);
  assert.equal(await leave(two), true);
});

played('many items are several keys, and all run once', async (pool) => {
  const ran = [];
  const worker = await pool.worker('n', (run) => ran.push(run.id) && undefined,
                                   { ...ABOUT, slots: 200 });
  const { ids } = await pool.submit(Array(200).fill('x'.repeat(1000)));
  await endsOf(pool, ids);
  assert(ids.some((id) => id.includes('-1.')));
  assert.deepEqual(ran.sort(), [...ids].sort());
  await leave(worker);
});

played('one name is one submission, and wrong items are refused', async (pool) => {
  await pool.submit(['a'], { name: 'n-batch' });
  assert.deepEqual((await pool.submit(['a'], { name: 'n-batch' })).ids, ['n-batch.0']);
  const rows = [[['b'], 'EEXIST'], [[{ retries: -1 }], 'EINVAL'], [[], 'EINVAL'],
                [[{ retry: 1 }], 'EINVAL'], [[{ id: 'a//b' }], 'EINVAL'], [[{ body: 7 }], 'EINVAL'],
                [[{ kind: 'task' }], 'EINVAL'], [['x'.repeat(65537)], 'EINVAL'],
                [[{ needs: 'gpu' }], 'EINVAL'], ['ab', 'EINVAL'], [{ body: 'a' }, 'EINVAL']];
  for (const [items, code] of rows) {
    await assert.rejects(pool.submit(items, { name: 'n-batch' }),
                         (error) => error instanceof BatonError && error.code === code);
  }
  await assert.rejects(pool.wait('n-batch.0'), { message: 'n-batch.0: must be a list' });
  await pool.cancel('n-batch.0');
});

played('a drained worker gets nothing, and all is told', async (pool) => {
  let end;
  const mayEnd = new Promise((resolve) => {
    end = resolve;
  });
  const until = async (holds) => {
    while (!await holds()) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  const entryOf = async (item) => (await pool.items()).find(({ id }) => id === item);
  const seen = async () => (await pool.status()).workers.find(({ worker }) => worker === 'n-d');
  const worker = await pool.worker('n-d', () => mayEnd, ABOUT);
  await pool.submit([{ id: 'n-first' }]);
  await until(async () => (await entryOf('n-first'))?.state === 'processing');
  assert.equal((await entryOf('n-first')).worker, 'n-d');
  assert.equal((await entryOf('n-first')).attempt, 1);
  await pool.drain('n-d');
  await until(async () => (await seen()).draining);
  await pool.submit([{ id: 'n-second' }]);
  await until(async () => (await entryOf('n-second'))?.state === 'idle');
  end();
  await endsOf(pool, ['n-first']);
  assert.equal((await entryOf('n-second')).state, 'idle');
  await pool.undrain('n-d');
  await endsOf(pool, ['n-second']);
  await leave(worker);
  await assert.rejects(pool.drain('a/b'), { code: 'EINVAL' });
  await assert.rejects(pool.status({ signal: AbortSignal.abort() }), { name: 'AbortError' });
});

played('a wait ends with its signal', async (pool) => {
  await assert.rejects(pool.wait(['n-nobody'], { signal: AbortSignal.timeout(50) }),
                       { name: 'TimeoutError' });
});
