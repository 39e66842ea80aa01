// What the tests share that speak to a worker from outside. The first two words of the command line
// are the program that is spoken to, and curl.
'use strict';
const assert = require('assert');
const http = require('http');
const fs = require('fs');
const net = require('net');
const os = require('os');
const path = require('path');
const { spawn, spawnSync, execFileSync } = require('child_process');
const { once } = require('events');

let WebSocket;
try {
    WebSocket = require('ws');
} catch (error) {
    console.log('skipped: the WebSocket client "ws" of Node.js is not installed (node-ws)');
    process.exit(77);
}

const [program, curl] = process.argv.slice(2);
const DEADLINE_MS = 240000;

// Where workers keep their models, unless they are told.
process.env.XDG_CACHE_HOME = fs.mkdtempSync(path.join(os.tmpdir(), 'detector-cache-'));
process.on('exit', () => fs.rmSync(process.env.XDG_CACHE_HOME, { recursive: true }));

// ---- tools: every wait is for an event, with a deadline ----

function deadline(promise, what) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error('waited too long for ' + what)), DEADLINE_MS);
    });
    return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// Asks again and again, until it holds.
async function until(what, holds) {
    for (const end = Date.now() + DEADLINE_MS; !await holds();) {
        assert.ok(Date.now() < end, 'waited too long for ' + what);
        await new Promise(setImmediate); // what programs have said is read meanwhile
    }
}

// Status, headers and body of a page, by a connection of its own unless the options name an agent.
// What the stand says is read meanwhile: one that says much would wait for us.
const get = (stand, path, options) => deadline(new Promise((resolve, reject) => {
    http.get({ host: '127.0.0.1', port: stand.port, path, agent: false, ...options }, (answer) => {
        const parts = [];
        answer.on('data', (part) => parts.push(part));
        answer.on('end', () => resolve({ status: answer.statusCode, headers: answer.headers,
            body: Buffer.concat(parts) }));
    }).on('error', reject);
}), path);

const status = async (stand) => JSON.parse((await get(stand, '/status')).body);

// Width and height of a JPEG.
function size(jpeg) {
    assert.strictEqual(jpeg.readUInt16BE(0), 0xffd8);
    for (let at = 2; ; at += 2 + jpeg.readUInt16BE(at + 2)) {
        const kind = jpeg.readUInt16BE(at);
        if (kind >= 0xffc0 && kind <= 0xffc2) {
            return [jpeg.readUInt16BE(at + 7), jpeg.readUInt16BE(at + 5)];
        }
    }
}

const stands = []; // all that were started: what they said is told if a test fails

class Stand {
    constructor(child, scheme = 'ws') {
        Object.assign(this, { child, scheme, log: '' });
        stands.push(this);
        child.stderr.on('data', (data) => { this.log += data; });
        this.ended = new Promise((resolve) => child.on('close', (code, signal) =>
            resolve(signal || code)));
    }
    static async start(...options) {
        const stand = new this(spawn(program, options, { stdio: ['ignore', 'pipe', 'pipe'] }),
            options.includes('--cert') ? 'wss' : 'ws');
        const [line] = await deadline(once(stand.child.stdout, 'data'), 'the port');
        stand.port = Number(String(line).slice(5));
        return stand;
    }
    // Waits until the log has it: it comes when it comes.
    says(pattern) {
        return deadline((async () => {
            while (!pattern.test(this.log)) await once(this.child.stderr, 'data');
        })(), String(pattern));
    }
    signal(name) { this.child.kill(name); }
    async stop() {
        this.signal('SIGTERM');
        assert.strictEqual(await deadline(this.ended, 'the end'), 0, this.log);
    }
    url(path) { return `http${this.scheme.slice(2)}://127.0.0.1:${this.port}${path}`; }
    // status, headers (lower case) and body of one request
    curl(path, ...options) {
        const out = execFileSync(curl, ['-s', '-k', '-i', '--path-as-is', '-m', '20', ...options,
            this.url(path)], { maxBuffer: 1 << 26 });
        const cut = out.indexOf('\r\n\r\n');
        const head = String(out.slice(0, cut));
        return { status: Number(head.split(' ')[1]), head: head.toLowerCase(),
            body: out.slice(cut + 4) };
    }
}

// A camera's stream, part by part.
class Viewer {
    // resolves once the head of the answer is there
    static async open(stand, path, options) {
        const viewer = new Viewer();
        viewer.bytes = Buffer.alloc(0);
        viewer.wake = () => {};
        viewer.answer = await deadline(new Promise((resolve, reject) => {
            viewer.request = http.get({ host: '127.0.0.1', port: stand.port, path, agent: false,
                ...options }, resolve);
            viewer.request.on('error', reject);
        }), 'the head of ' + path);
        viewer.ended = new Promise((resolve) => {
            viewer.answer.on('close', resolve);
            viewer.answer.on('error', resolve);
        });
        return viewer;
    }
    read() {
        this.answer.on('data', (data) => {
            this.bytes = Buffer.concat([this.bytes, data]);
            this.wake();
        });
        return this;
    }
    // The next JPEG.
    async part() {
        return deadline((async () => {
            for (;;) {
                const head = this.bytes.indexOf('\r\n\r\n');
                const text = String(this.bytes.slice(0, Math.max(head, 0)));
                const length = /^--frame\r\nContent-Type: image\/jpeg\r\nContent-Length: (\d+)$/
                    .exec(text);
                if (head >= 0) assert.ok(length, text);
                if (length && this.bytes.length >= head + 4 + Number(length[1]) + 2) {
                    const end = head + 4 + Number(length[1]);
                    const jpeg = this.bytes.slice(head + 4, end);
                    assert.strictEqual(String(this.bytes.slice(end, end + 2)), '\r\n');
                    this.bytes = this.bytes.slice(end + 2);
                    assert.strictEqual(jpeg.readUInt16BE(0), 0xffd8);
                    assert.strictEqual(jpeg.readUInt16BE(jpeg.length - 2), 0xffd9);
                    return jpeg;
                }
                await new Promise((resolve) => { this.wake = resolve; });
            }
        })(), 'a part');
    }
    close() { this.request.destroy(); }
}

class Backend {
    static async connect(stand, options) {
        const backend = new Backend();
        backend.messages = [];
        backend.wake = () => {};
        backend.socket = new WebSocket(`${stand.scheme}://127.0.0.1:${stand.port}/`, options);
        backend.closed = new Promise((resolve) => backend.socket.on('close', (code, reason) => {
            resolve({ code, reason: String(reason) });
        }));
        backend.socket.on('message', (data) => {
            backend.messages.push(JSON.parse(data));
            backend.wake();
        });
        await deadline(new Promise((resolve, reject) => {
            backend.socket.on('open', resolve);
            backend.socket.on('error', reject);
        }), 'the connection');
        return backend;
    }
    // One whose list this is, once all of it is online.
    static async watching(stand, ...subscriptions) {
        const backend = await Backend.connect(stand);
        backend.send(list(...subscriptions));
        await backend.report(online(subscriptions.length));
        return backend;
    }
    send(message) { this.socket.send(typeof message === 'string' ? message :
        JSON.stringify(message)); }
    // The next message that fits, and none before it again.
    async next(what, fits) {
        return deadline((async () => {
            for (;;) {
                while (this.messages.length > 0) {
                    const message = this.messages.shift();
                    if (fits(message)) return message;
                }
                await new Promise((resolve) => { this.wake = resolve; });
            }
        })(), what);
    }
    report(fits = () => true) {
        return this.next('a report', (m) => m.type === 'stateReport' && fits(m.cameraConnections));
    }
    // Looks at every report, until it holds.
    async until(what, holds) {
        await until(what, async () => holds() || !await this.report());
    }
    async close() {
        this.socket.close();
        return deadline(this.closed, 'the close');
    }
}

// The numbers of a program's processes that decode, or run models; one may end meanwhile.
function processes(pid, name = 'baton-camera') {
    const all = spawnSync('sh', ['-c', `cat /proc/${pid}/task/*/children`], { encoding: 'utf8' });
    return all.stdout.split(' ').filter((child) => {
        try {
            return fs.readFileSync(`/proc/${child}/comm`, 'utf8') === name + '\n';
        } catch {
            return false;
        }
    }).map(Number);
}

// So many WebSocket connections that say nothing and never answer; a hundred at a time, or a busy
// machine lets those wait that have not asked yet, until the server thinks they never will.
async function upgrade(stand, count) {
    const sockets = [];
    while (sockets.length < count) {
        const socket = net.connect(stand.port, '127.0.0.1', () => socket.write(
            'GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
            'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'));
        socket.heard = [];
        socket.on('data', (data) => socket.heard.push(data));
        socket.upgraded = new Promise((resolve) => {
            socket.once('data', () => resolve(true));
            socket.on('error', () => resolve(false));
            socket.on('close', () => resolve(false));
        });
        sockets.push(socket);
        if (sockets.length % 100 === 0 || sockets.length === count) {
            const upgraded = await deadline(Promise.all(sockets.slice(-100).map((s) => s.upgraded)),
                'the upgrades');
            assert.ok(upgraded.every(Boolean), 'each was let in');
        }
    }
    return sockets;
}

// Does the work in a folder of its own.
async function in_folder(work) {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'detector-'));
    try {
        await work(folder);
    } finally {
        fs.rmSync(folder, { recursive: true });
    }
}

// Runs the program with each of the command lines; it ends with one of the codes and says what is
// expected. A case: words, pattern.
function refuses(cases, codes = [64, 1]) {
    for (const [words, pattern] of cases) {
        const done = spawnSync(program, words, { encoding: 'utf8', timeout: 60000 });
        assert.ok(codes.includes(done.status), done.stderr);
        assert.match(done.stderr, pattern);
    }
}

// The end of a test's file: runs {name: test}, one after the other.
function run_all(tests) {
    (async () => {
        for (const [name, test] of Object.entries(tests)) {
            await test().catch((error) => { console.log('not ok', name); throw error; });
            console.log('ok', name);
        }
    })().catch((error) => {
        stands.slice(-2).forEach(({ log }) => console.log(log.slice(-4000)));
        console.log(error);
        process.exit(1);
    });
}

// A certificate of the loopback address, and its key: the names of two new files.
function certificate(folder) {
    const [cert, key] = ['cert.pem', 'key.pem'].map((name) => path.join(folder, name));
    execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2',
        '-subj', '/CN=worker', '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key,
        '-out', cert], { stdio: 'ignore' });
    return { cert, key };
}

const subscription = (identifier, more) => ({ subscriptionIdentifier: identifier,
    rtspUrl: 'rtsp://user:canary@192.0.2.1/1', modelUrl: 'http://192.0.2.1/m.mpta?token=canary',
    modelName: 'Cars', modelId: 7, ...more });
const list = (...subscriptions) => ({ type: 'setSubscriptionList', subscriptions });
const session = (displayIdentifier, sessionId) => ({ type: 'setSessionId',
    payload: { displayIdentifier, sessionId } });
const stage = (displayIdentifier, progressionStage) => ({ type: 'setProgressionStage',
    payload: { displayIdentifier, progressionStage } });
const online = (count) => (c) => c.length === count && c.every((one) => one.online);

module.exports = { DEADLINE_MS, WebSocket, program, curl, deadline, until, get, status, size,
    Stand, Viewer, Backend, subscription, list, session, stage, online, upgrade,
    processes, certificate, in_folder, refuses, run_all };
