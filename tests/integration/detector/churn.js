// Cameras added, changed and removed at random, for BATON_CHURN_SECONDS (10): when they are gone,
// nothing of them is left in the program baton-detector: no child, no descriptor, no memory.
//   node churn.js BATON-DETECTOR CURL RTSP-SERVER CLIP
'use strict';
const assert = require('assert');
const fs = require('fs');
const { DEADLINE_MS, Backend, list, subscription, session, stage } = require('./tools');
const { Camera, Worker } = require('./life');

const SECONDS = Number(process.env.BATON_CHURN_SECONDS || 10);
const SEED = Number(process.env.BATON_CHURN_SEED || Date.now() % 1000000);
const CAMERAS = 20;
const NAMES = ['hall', 'yard', 'gate', 'roof', 'ramp'];
// What the allocator may keep for itself: ten seconds are about five hundred changes, so a leak of
// 16 KiB a change is found. A child or a descriptor is found as soon as it is one.
const SLACK_KIB = 8 * 1024;

// mulberry32: small, and the same on every machine
let state = SEED >>> 0;
function random(below) {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
}

const pick = (list_of) => list_of[random(list_of.length)];

function random_camera(camera, name) {
    const more = { rtspUrl: camera.url(pick(NAMES)), modelUrl: 'http://127.0.0.1:1/none.mpta',
        modelId: 1 + random(3), modelName: pick(['Cars', 'People']) };
    if (random(3) === 0) {
        Object.assign(more, { cropX1: random(50), cropY1: random(50), cropX2: 100 + random(300),
            cropY2: 100 + random(200) });
    }
    return subscription(name, more);
}

function footprint(pid) {
    const children = fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    const status = fs.readFileSync(`/proc/${pid}/status`, 'utf8');
    return { children: children === '' ? 0 : children.split(' ').length,
        descriptors: fs.readdirSync(`/proc/${pid}/fd`).length,
        kib: Number(/VmRSS:\s+(\d+)/.exec(status)[1]),
        // A sanitizer reserves terabytes and keeps what is freed; leaks are its own to tell, at the end.
        is_sanitized: Number(/VmSize:\s+(\d+)/.exec(status)[1]) > 2 ** 32 };
}

// Takes all away, and waits until no child is left and the descriptors are as many as `expected`,
// if that is known.
async function empty(backend, worker, expected) {
    backend.send(list());
    await backend.report((all) => all.length === 0);
    const until = Date.now() + DEADLINE_MS;
    for (;;) {
        const now = footprint(worker.child.pid);
        if (now.children === 0 && (!expected || now.descriptors <= expected.descriptors)) {
            return now;
        }
        assert.ok(Date.now() < until, `left behind: ${JSON.stringify(now)}, not ` +
            JSON.stringify(expected));
        await backend.report();
    }
}

async function churn(camera, worker, backend, seconds) {
    const wanted = new Map();
    const until = Date.now() + seconds * 1000;
    let changes = 0;
    let online = 0;
    for (let i = 0; i < CAMERAS; i++) {
        wanted.set(`d${i % 4};c${i}`, random_camera(camera, `d${i % 4};c${i}`));
    }
    do {
        for (let i = 1 + random(4); i > 0; i--, changes++) {
            const number = random(CAMERAS);
            const name = `d${number % 4};c${number}`;
            if (wanted.has(name) && random(2) === 0) wanted.delete(name);
            else wanted.set(name, random_camera(camera, name));
        }
        backend.send(list(...wanted.values()));
        if (random(4) === 0) backend.send(session('d' + random(4), pick([null, random(1000)])));
        if (random(4) === 0) backend.send(stage('d' + random(4), pick([null, 'welcome'])));
        if (random(4) === 0) worker.curl(`/camera/${pick(['d0;c0', 'd1;c1'])}/image?width=64`);
        const names = [...wanted.keys()].sort().join();
        await backend.report((all) => all.map((one) => one.subscriptionIdentifier).sort()
            .join() === names);
        if (wanted.size > 0 && random(8) === 0) { // some live long enough to stream
            await backend.report((all) => all.every((one) => one.online));
            online++;
        }
    } while (Date.now() < until);
    return { changes, online };
}

(async () => {
    const camera = await Camera.start(0, NAMES);
    const worker = await Worker.start();
    try {
        const backend = await Backend.connect(worker);
        await churn(camera, worker, backend, 2); // caches, arenas and threads that stay are made
        const before = await empty(backend, worker);
        const { changes, online } = await churn(camera, worker, backend, SECONDS);
        const after = await empty(backend, worker, before);
        console.log(`seed ${SEED}: ${changes} changes, ${online} times all online, before ${JSON.stringify(before)}, after ` +
            JSON.stringify(after));
        assert.ok(changes > 20 && online > 0);
        assert.strictEqual(after.children, before.children);
        assert.strictEqual(after.descriptors, before.descriptors);
        assert.ok(after.is_sanitized || after.kib <= before.kib + SLACK_KIB, 'memory');
        await backend.close();
        await worker.stop();
        console.log('ok nothing is left of cameras that came and went');
    } catch (error) {
        worker.signal('SIGKILL');
        console.log('not ok, seed', SEED, worker.log.slice(-3000));
        throw error;
    } finally {
        await camera.end();
    }
})().catch((error) => {
    console.log(error);
    process.exit(1);
});
