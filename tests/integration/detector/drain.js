// What a backend that does not read has not had is not lost: the next one gets it, and SIGTERM waits
// for it. Plays against detector_stand, which drains on SIGUSR2.   node drain.js STAND CURL
'use strict';
const assert = require('assert');
const fs = require('fs');
const { DEADLINE_MS, deadline, until, get, status, Stand, Backend, subscription, list, session,
    run_all } = require('./tools');

const WAITING = 3; // the stand's bound
const ASKED = 80;  // reports of 150 KB: more than a connection holds

const is_patch = (message) => message.type === 'patchSession';

const counters = async (stand) => (await status(stand)).counters;
const draining = (stand) => until('not ready', async () =>
    (await get(stand, '/readyz')).status === 503);
const alone = (stand) => until('it to be gone', async () => !(await status(stand)).hasBackend);

// An owner that says much and reads nothing: its connection is full, and WAITING detections wait.
async function deaf(stand) {
    const backend = await Backend.connect(stand);
    const many = Array.from({ length: 600 }, (_, i) => subscription('f;' + 'x'.repeat(150) + i));
    stand.signal('SIGHUP'); // nobody looks at its pictures
    backend.socket._socket.pause();
    backend.send(list(...many));
    for (let i = 0; i < ASKED; i++) backend.send({ type: 'requestState' });
    backend.send(list(subscription('a;1')));
    backend.send(session('a', 9));
    await until('its messages', async () => (await counters(stand)).messages >= ASKED + 3);
    for (let i = 1; i <= WAITING; i++) {
        stand.signal('SIGUSR1');
        await until('detection ' + i, async () => (await counters(stand)).detectionsQueued === i);
    }
    const { detectionsSent, patchesSent } = await counters(stand);
    assert.strictEqual(detectionsSent + patchesSent, 0);
    return backend;
}

// Of the worker's side of a connection: the bytes that its system has yet to be told of that the
// backend's system has them, and, in hundredths of a second, when it will ask for room for them.
function on_the_way(stand, backend) {
    const hex = (port) => port.toString(16).toUpperCase().padStart(4, '0');
    const line = new RegExp(`:${hex(stand.port)} [0-9A-F]+:${hex(backend.socket._socket.localPort)} ` +
        '[0-9A-F]+ ([0-9A-F]+):[0-9A-F]+ (?:04:)?([0-9A-F]+)');
    const [, bytes, probe] = line.exec(fs.readFileSync('/proc/net/tcp', 'utf8'));
    return { bytes: parseInt(bytes, 16), probe: parseInt(probe, 16) };
}

// What the system of a backend never took goes to the next one, however the first one goes.
async function untaken_goes_on(next_after) {
    const stand = await Stand.start();
    const first = await Backend.connect(stand);
    first.send(list(subscription('a;1', { modelName: 'x'.repeat(200) })));
    first.send(session('a', 9));
    await first.report((all) => all.length === 1);
    first.socket._socket.pause(); // its system takes no more once its own buffer is full
    let untaken = 0; // answers in a row
    await until('a full buffer', async () => {
        const { messages } = await counters(stand);
        const before = on_the_way(stand, first).bytes;
        for (let i = 0; i < 20; i++) first.send({ type: 'requestState' });
        await until('the answers', async () => (await counters(stand)).messages >= messages + 20);
        untaken = on_the_way(stand, first).bytes > before + 20 * 300 ? untaken + 20 : 0;
        return untaken >= 200;
    });
    for (let i = 1; i <= WAITING; i++) {
        stand.signal('SIGUSR1');
        await until('detection ' + i, async () => {
            const { detectionsQueued, detectionsSent } = await counters(stand);
            return detectionsQueued + detectionsSent === i;
        });
    }
    const { detectionsQueued } = await counters(stand); // or its system found room for one
    assert.ok(detectionsQueued > 0);
    const next = await next_after(stand, first);
    for (let i = 0; i < detectionsQueued; i++) await next.next('a patch', is_patch);
    await until('the count', async () => (await counters(stand)).patchesSent ===
        detectionsQueued);
    await next.close();
    await stand.stop();
}

const tests = {
    async 'what the system of a backend never took goes to the next one'() {
        await untaken_goes_on(async (stand, first) => {
            first.socket.terminate();
            await alone(stand);
            return Backend.connect(stand);
        });
    },

    async 'it goes to one that takes over, too, if it has waited for longer than a moment'() {
        await untaken_goes_on(async (stand, first) => {
            // It waits for twice as long as the first time: it has asked for room before.
            await until('a second probe', () => on_the_way(stand, first).probe > 22);
            const next = await Backend.connect(stand);
            next.send(session('a', 9));
            return next;
        });
    },

    async 'what a backend has is not sent again, however it goes'() {
        const stand = await Stand.start();
        let backend = await Backend.connect(stand);
        backend.send(list(subscription('a;1')));
        backend.send(session('a', 9));
        for (const goes of [(one) => one.socket.terminate(), (one) => one.socket.close(), () => {}]) {
            await backend.report((all) => all.length === 1);
            stand.signal('SIGUSR1');
            await backend.next('a detection', (m) => m.type === 'imageDetection');
            goes(backend);
            backend = await Backend.connect(stand);
            backend.send(session('a', 9)); // who is still there is closed
        }
        await backend.report((all) => all.length === 1);
        const { detectionsSent, patchesSent, detectionsQueued } = await counters(stand);
        assert.deepStrictEqual([detectionsSent, patchesSent, detectionsQueued], [3, 0, 0]);
        await backend.close();
        await stand.stop();
    },

    async 'who drains waits for its backend to read, and says goodbye'() {
        const stand = await Stand.start('--drain', String(DEADLINE_MS));
        const backend = await deaf(stand);
        stand.signal('SIGUSR2');
        await draining(stand);
        assert.strictEqual((await get(stand, '/healthz')).status, 200);
        assert.strictEqual((await status(stand)).ready, false);
        backend.socket._socket.resume();
        for (let i = 0; i < WAITING; i++) await backend.next('a patch', is_patch);
        assert.deepStrictEqual(await deadline(backend.closed, 'the close'),
            { code: 1001, reason: 'this worker ends' });
        assert.strictEqual(await deadline(stand.ended, 'the end'), 0, stand.log);
        assert.ok(!stand.log.includes('detections-lost'), stand.log);
    },

    async 'who comes while it drains gets what waits, and the goodbye'() {
        const stand = await Stand.start('--drain', String(DEADLINE_MS));
        (await deaf(stand)).socket.terminate();
        await alone(stand);
        stand.signal('SIGUSR2');
        await draining(stand);
        const next = await Backend.connect(stand);
        for (let i = 0; i < WAITING; i++) await next.next('a patch', is_patch);
        assert.strictEqual((await deadline(next.closed, 'the close')).code, 1001);
        assert.strictEqual(await deadline(stand.ended, 'the end'), 0, stand.log);
    },

    async 'it does not wait for ever, and says what is lost'() {
        const stand = await Stand.start('--drain', '200');
        const backend = await deaf(stand);
        stand.signal('SIGUSR2');
        assert.strictEqual(await deadline(stand.ended, 'the end'), 0, stand.log);
        assert.match(stand.log, new RegExp(`detections-lost .*count=${WAITING}`));
        backend.socket.terminate();
    },
};

run_all(tests);
