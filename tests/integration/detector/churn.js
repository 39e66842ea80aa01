// Cameras added, changed and removed at random, and their processes killed, for BATON_CHURN_SECONDS
// (10): when they are gone, nothing of them is left in the program baton-detector: no child, no
// descriptor, no memory.
//   node churn.js BATON-DETECTOR CURL RTSP-SERVER CLIP [STILL.jpg ARCHIVE.mpta ARCHIVE.mpta]
// With a still and archives, some cameras have snapshots beside their stream or alone, and models,
// whose archives are replaced meanwhile.
'use strict';
const assert = require('assert');
const fs = require('fs');
const path = require('path');
const { DEADLINE_MS, Backend, list, subscription, session, stage, processes } = require('./tools');
const { Camera, Worker } = require('./life');
const { Shop } = require('../detector_infer/shop');

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

// What the shop has: stills, and archives by their names.
const [still, ...archives] = process.argv.slice(6);
const goods = Object.fromEntries([still, ...archives].filter(Boolean)
    .map((file) => ['/' + path.basename(file), fs.readFileSync(file)]));
const archive_names = archives.map((file) => '/' + path.basename(file));
const model_names = [...archive_names, '/none.mpta'];
const contents = [...archive_names.map((name) => goods[name]), Buffer.from('no archive')];

function random_camera(camera, shop, name) {
    const modelId = 1 + random(model_names.length);
    const more = { rtspUrl: camera.url(pick(NAMES)), modelId, modelName: pick(['Cars', 'People']),
        modelUrl: shop.url(model_names[modelId - 1], 'canary' + random(3)) };
    if (still && random(3) === 0) {
        Object.assign(more, { snapshotInterval: 50 + random(200),
            snapshotUrl: shop.url(pick(['/' + path.basename(still), '/missing.jpg'])) });
        more.rtspUrl = pick([more.rtspUrl, more.rtspUrl, 'rtsp://127.0.0.1:1/dead']);
        if (more.snapshotUrl.includes('missing')) more.rtspUrl = camera.url(pick(NAMES));
        else if (random(2) === 0) more.rtspUrl = '';
    }
    if (random(3) === 0) {
        Object.assign(more, { cropX1: random(50), cropY1: random(50), cropX2: 100 + random(300),
            cropY2: 100 + random(200) });
    }
    return subscription(name, more);
}

function kill_one_of(pids) {
    if (pids.length === 0) return;
    try {
        process.kill(pick(pids), 'SIGKILL');
    } catch (error) {
        assert.strictEqual(error.code, 'ESRCH'); // it has ended meanwhile
    }
}

function footprint(pid) {
    const children = fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    const status = fs.readFileSync(`/proc/${pid}/status`, 'utf8');
    return { children: children === '' ? 0 : children.split(' ').length,
        descriptors: fs.readdirSync(`/proc/${pid}/fd`).length,
        rings: fs.readFileSync(`/proc/${pid}/maps`, 'utf8').split('baton-frames').length - 1,
        kib: Number(/VmRSS:\s+(\d+)/.exec(status)[1]),
        // A sanitizer reserves terabytes and keeps what is freed; leaks are its own to tell, at the end.
        is_sanitized: Number(/VmSize:\s+(\d+)/.exec(status)[1]) > 2 ** 32 };
}

// Takes all away, and waits until no child is left, and descriptors and memory are as `expected`, or,
// if that is not known, the descriptors as many as they were in the last few reports, which take longer
// than the program needs to give memory back.
async function empty(backend, worker, expected) {
    backend.send(list());
    await backend.report((all) => all.length === 0);
    const until = Date.now() + DEADLINE_MS;
    const last = [];
    for (;;) {
        const now = footprint(worker.child.pid);
        last.unshift(now.descriptors);
        const is_settled = expected ? now.descriptors <= expected.descriptors &&
            (now.is_sanitized || now.kib <= expected.kib + SLACK_KIB) :
            last.length > 15 && last.slice(0, 15).every((one) => one === now.descriptors);
        if (now.children === 0 && now.rings === 0 && is_settled) return now;
        assert.ok(Date.now() < until, `left behind: ${JSON.stringify(now)}, not ` +
            JSON.stringify(expected));
        await backend.report();
    }
}

async function churn(camera, shop, worker, backend, seconds) {
    const wanted = new Map();
    const until = Date.now() + seconds * 1000;
    let changes = 0;
    let online = 0;
    let detections = 0;
    backend.socket.on('message', (data) => { detections += data.includes('imageDetection'); });
    for (let i = 0; i < CAMERAS; i++) {
        wanted.set(`d${i % 4};c${i}`, random_camera(camera, shop, `d${i % 4};c${i}`));
    }
    do {
        for (let i = 1 + random(4); i > 0; i--, changes++) {
            const number = random(CAMERAS);
            const name = `d${number % 4};c${number}`;
            if (wanted.has(name) && random(2) === 0) wanted.delete(name);
            else wanted.set(name, random_camera(camera, shop, name));
        }
        if (archive_names.length > 0 && random(4) === 0) {
            shop.put(pick(archive_names), pick(contents), `"${changes}"`);
        }
        backend.send(list(...wanted.values()));
        if (random(4) === 0) backend.send(session('d' + random(4), pick([null, random(1000)])));
        if (random(4) === 0) backend.send(stage('d' + random(4), pick([null, 'welcome'])));
        if (random(4) === 0) worker.curl(`/camera/${pick(['d0;c0', 'd1;c1'])}/image?` +
            pick(['width=64', 'source=snapshot']));
        if (random(4) === 0) kill_one_of(processes(worker.child.pid));
        const names = [...wanted.keys()].sort().join();
        await backend.report((all) => all.map((one) => one.subscriptionIdentifier).sort()
            .join() === names);
        if (wanted.size > 0 && random(8) === 0) { // some live long enough to stream
            await backend.report((all) => all.every((one) => one.online));
            online++;
        }
    } while (Date.now() < until || changes <= 20 || online === 0);
    return { changes, online, detections };
}

(async () => {
    const camera = await Camera.start(0, NAMES);
    const shop = await Shop.start(goods);
    shop.server.maxRequestsPerSocket = 1; // no connection is kept for later, to be counted or not
    const worker = await Worker.start('--model-recheck', '50ms');
    try {
        const backend = await Backend.connect(worker);
        await churn(camera, shop, worker, backend, 2); // caches, arenas and threads that stay are made
        const before = await empty(backend, worker);
        let { changes, online, detections } = await churn(camera, shop, worker, backend, SECONDS);
        for (let more = 10; archives.length > 0 && detections === 0 && more > 0; more--) { // it is busy
            ({ changes, online, detections } = await churn(camera, shop, worker, backend, SECONDS));
        }
        const after = await empty(backend, worker, before);
        if (archives.length > 0) {
            assert.ok(shop.asked.some(([name]) => name === '/' + path.basename(still)));
            assert.ok(detections > 0, 'models were at work');
        }
        console.log(`seed ${SEED}: ${changes} changes, ${online} times all online, before ${JSON.stringify(before)}, after ` +
            JSON.stringify(after));
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
        shop.server.close();
        shop.server.closeAllConnections();
    }
})().catch((error) => {
    console.log(error);
    process.exit(1);
});
