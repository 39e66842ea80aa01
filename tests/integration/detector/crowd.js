// A thousand idle WebSocket connections, hostile ones, and fifteen hundred requests that never end,
// beside cameras that stream numbered pictures: no camera misses one.
//   node crowd.js BATON-DETECTOR CURL RTSP-SERVER CLIP
'use strict';
const assert = require('assert');
const fs = require('fs');
const net = require('net');
const { DEADLINE_MS, deadline, status, WebSocket, Backend, list, subscription, online,
    upgrade } = require('./tools');
const { Camera, Worker } = require('./life');

const IDLE = 1000;
const SLOW = 1500;
const BACKENDS_MAX = 8; // WORKER_BACKENDS_MAX
const PICTURES = 45; // three seconds

// A camera that says which pictures it sends, and what of them arrived.
class Numbered {
    static async start(worker, name) {
        const numbered = new Numbered();
        // unseen: how many were sent and never decoded when all began; more would be lost
        Object.assign(numbered, { worker, name, sent: [], unseen: 0, rest: '', wake: () => {} });
        numbered.camera = await Camera.start(0, ['cam'], 'tell=pictures');
        numbered.camera.child.stdout.on('data', (data) => numbered.hear(String(data)));
        return numbered;
    }
    hear(text) {
        const lines = (this.rest + text).split('\n');
        this.rest = lines.pop();
        for (const line of lines) {
            const words = line.split(' ');
            if (words[0] !== 'picture') continue;
            const picture = { number: Number(words[2]), at: BigInt(words[3]) };
            const last = this.sent[this.sent.length - 1];
            if (last) assert.strictEqual(picture.number, (last.number + 1) % 45, 'in sequence');
            this.sent.push(picture);
        }
        this.wake();
    }
    // How many pictures were sent until then: known once a later one was.
    sent_until(at) {
        return deadline((async () => {
            while (this.sent.length === 0 || this.sent[this.sent.length - 1].at <= at) {
                await new Promise((resolve) => { this.wake = resolve; });
            }
            return this.sent.filter((one) => one.at <= at).length;
        })(), 'a picture');
    }
    // Sent and not decoded: those before this worker looked, those that are lost, those on the way.
    async lag() {
        const { cameras } = await status(this.worker);
        const at = process.hrtime.bigint();
        const { stream } = cameras.find((one) => one.subscriptionIdentifier === this.name);
        return { lag: await this.sent_until(at) - stream.decoded, stream };
    }
    // Without those on the way, which are none at some moment.
    async least_lag() {
        let least = (await this.lag()).lag;
        for (let i = 0; i < 20; i++) least = Math.min(least, (await this.lag()).lag);
        return least;
    }
    async caught_up(expected) {
        const until = Date.now() + DEADLINE_MS;
        for (;;) {
            const now = await this.lag();
            if (now.lag <= expected) return now;
            assert.ok(Date.now() < until, `${this.name}: ${now.lag - expected} pictures are lost`);
        }
    }
}

// Does the work and lets at least PICTURES pass: none may be lost, and the stream goes on as it was.
async function undisturbed(cameras, work) {
    const before = await Promise.all(cameras.map((one) => one.lag()));
    const sent = cameras.map((one) => one.sent.length);
    await work();
    for (let i = 0; i < cameras.length; i++) {
        while (cameras[i].sent.length < sent[i] + PICTURES) {
            await cameras[i].sent_until(process.hrtime.bigint());
        }
        const then = before[i].stream;
        const { stream } = await cameras[i].caught_up(cameras[i].unseen);
        assert.strictEqual(stream.restarts, then.restarts);
        assert.strictEqual(stream.dropped, then.dropped);
        assert.strictEqual(stream.last_error, then.last_error);
    }
}

// What a WebSocket close frame of so short a reason holds, if the socket got one; it is the last.
function close_frame(socket) {
    const bytes = Buffer.concat(socket.heard);
    for (let at = bytes.length - 4; at >= 0; at--) {
        if (bytes[at] === 0x88 && at + 2 + bytes[at + 1] === bytes.length) {
            return { code: bytes.readUInt16BE(at + 2), reason: String(bytes.slice(at + 4)) };
        }
    }
    return {};
}

// They say nothing and never answer. Seven may wait beside the owner; the others are told to go, and
// cut off when they do not.
async function idle(worker) {
    const sockets = await upgrade(worker, IDLE);
    const { connections } = JSON.parse(worker.curl('/status').body);
    assert.ok(connections > IDLE, String(connections));
    await deadline(new Promise((resolve) => {
        let open = sockets.length;
        const one_less = () => { if (--open === BACKENDS_MAX - 1) resolve(); };
        sockets.forEach((socket) => (socket.destroyed ? one_less() : socket.on('close', one_less)));
    }), 'those that are too many to be cut off');
    for (const socket of sockets.filter((one) => one.destroyed)) {
        const { code, reason } = close_frame(socket);
        assert.strictEqual(code, 1013);
        assert.strictEqual(reason, 'too many backends wait for this worker');
    }
    sockets.forEach((socket) => socket.destroy());
}

async function hostile(worker) {
    const one = await Backend.connect(worker);
    for (const bad of ['[' .repeat(100000), '{"type":'.repeat(1000), '{"type":"requestState"',
        '\u0000', `{"type":"setSessionId","payload":{"displayIdentifier":"${'x'.repeat(1 << 20)}"}}`,
        JSON.stringify(list(...Array(5000).fill(0).map((_, i) => subscription('a;' + i))))]) {
        one.send(bad);
    }
    const huge = await Backend.connect(worker);
    huge.send('x'.repeat(5 << 20));
    assert.strictEqual((await deadline(huge.closed, 'its end')).code, 1009);
    await one.close();
}

// Their requests come byte by byte and have no end. Others are answered, until all of them are cut off.
async function slow(worker, owner) {
    const sockets = Array.from({ length: SLOW }, () => {
        const socket = net.connect(worker.port, '127.0.0.1');
        socket.write('GET /camera/a;1/image HTTP/1.1\r\nX-A: ');
        socket.gone = new Promise((resolve) => socket.on('close', resolve));
        socket.on('error', () => {});
        socket.resume();
        return socket;
    });
    const timer = setInterval(() => sockets.forEach((one) => one.destroyed || one.write('y')), 500);
    const until = Date.now() + DEADLINE_MS;
    const descriptors = () => fs.readdirSync(`/proc/${worker.child.pid}/fd`).length;
    while (descriptors() < SLOW) {
        await owner.report(online(2));
        assert.ok(Date.now() < until, `${descriptors()} descriptors`);
    }
    assert.strictEqual(worker.curl('/healthz').status, 200);
    assert.strictEqual(worker.curl('/camera/a;1/image').status, 200);
    assert.ok(descriptors() >= SLOW, 'they were there meanwhile');
    await deadline(Promise.all(sockets.map((one) => one.gone)), 'the slow to be cut off');
    clearInterval(timer);
}

(async () => {
    const worker = await Worker.start();
    const cameras = [await Numbered.start(worker, 'a;1'), await Numbered.start(worker, 'b;1')];
    const owner = await Backend.watching(worker, ...cameras.map((one) =>
        subscription(one.name, { rtspUrl: one.camera.url() })));
    await Promise.all(cameras.map(async (one) => { one.unseen = await one.least_lag(); }));
    await undisturbed(cameras, () => idle(worker));
    console.log('ok a thousand idle connections come and go, and no camera misses a picture');
    await undisturbed(cameras, () => hostile(worker));
    console.log('ok hostile messages cost no camera a picture');
    await undisturbed(cameras, () => slow(worker, owner));
    console.log('ok fifteen hundred requests that never end cost no camera a picture');
    assert.strictEqual(owner.socket.readyState, WebSocket.OPEN, 'nobody took its place');
    for (const one of cameras) assert.strictEqual(one.camera.count('play cam'), 1);
    await owner.close();
    await worker.stop();
    for (const one of cameras) await one.camera.end();
})().catch((error) => {
    console.log(error);
    process.exit(1);
});
