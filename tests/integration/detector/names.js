// Malformed names and requests, byte by byte from a socket: each is 400 with a JSON
// error, unknown ones are 404, and the worker goes on.
//   node names.js STAND CURL
'use strict';
const assert = require('assert');
const fs = require('fs');
const net = require('net');
const os = require('os');
const path = require('path');
const tls = require('tls');
const { deadline, Stand, Backend, subscription, list, online, certificate } = require('./tools');

const long = (bytes) => `/camera/a;${'x'.repeat(bytes)}/image`;

// `a;1` is subscribed.
const cases = {
    // names that are none
    '/camera/nobody/image': 400, '/camera/;/image': 400, '/camera/a;/image': 400,
    '/camera/;1/image': 400, '/camera/a;b;c/image': 400, '/camera/a/stream': 400,
    '/camera//image': 400, '/camera/image': 400, '/camera/./image': 400,
    // percent-encoding that is none
    '/camera/%zz/image': 400, '/camera/a;1%zz/image': 400, '/camera/a;1/image%zz': 400,
    '/camera/a;%0/image': 400, '/camera/a;1/image%': 400, '/camera/a;1/image%3': 400,
    '/camera/a;%g0/image': 400, '/camera/a;%%/image': 400, '/camera/a;1/stream%zz': 400,
    '/camera/a;1/image?width=%zz': 400, '/camera/a;1/image?x=%': 400, '/%zz': 400,
    '/status%zz': 400,
    // bytes that no name has
    '/camera/%00/image': 400, '/camera/%ff;1/image': 400,
    '/camera/a;%01/image': 400, '/camera/a;\x01/image': 400,
    '/camera/a;%7f/image': 400, '/camera/a;%0a/image': 400, '/camera/a;%0d/image': 400,
    '/camera/a;1/image%0a': 400, '/camera/a;1/image%0d%0aX-A:%20b': 400,
    '/camera/a;1/image?crop=1%0a': 400, '/healthz%0a': 400, '/camera/a;1 /image': 400,
    '/camera/a;%c0%ae%c0%ae%c0%af/image': 400, '/camera/a;%e0%80%af/image': 400,
    '/camera/a;%ed%a0%80/image': 400,
    '/camera/a;1%00/image': 400, '/camera/a;1/image?x=%00': 400,
    // names that walk
    '/camera/../x/image': 400, '/camera/%2e%2e/x/image': 400, '/camera/..%2fx/image': 400,
    '/camera/a;%2e%2e%2f/image': 400, '/camera/%2e%2e;1/image': 400, '/camera/..;1/image': 400,
    '/camera/a;..%5cx/image': 400, '/camera/a;x/%2e/y/image': 400,
    '/camera/../../etc/passwd': 400, '/camera/%2e%2e%2f%2e%2e%2fetc/passwd': 400,
    // names that would walk to one that is there
    '/camera/a;1x%2f..%2f/image': 400, '/camera/a;1x%2F%2e%2e/image': 400, '/camera/x/../a;1/image': 400,
    '/camera/a;1/./image': 400, '/camera/a;1/image/x/..': 400, '/camera/a;1/image/.': 400,
    '/camera/./a;1/image': 400, '/camera//a;1/image': 400, '/camera/%2fa;1/image': 400,
    '/camera/a;1//image': 400, '/camera/a;1/%2e%2E/image': 400, '/camera/a;1x/../image': 400,
    '/x/../healthz': 400, '/./healthz': 400, '/../healthz': 400, '/healthz/..': 400,
    // signs that stand for themselves
    '/camera/a&1/image': 400, '/camera/a;1/image&': 404, '/camera/a;+1/image': 404,
    '/camera/a;1/image?x=a+b': 200, '/camera/a;1/image?x=../..//&y=a%26crop=2': 200,
    // what is too long
    [long(300)]: 400, [long(4096)]: 400, [long(17000)]: 400, [long(60000)]: 400,
    [long(100000)]: 431, [`/camera/a;${'%78'.repeat(4096)}/image`]: 400,
    ['/camera/' + ';'.repeat(20) + '/image']: 400, ['/camera/' + ';'.repeat(500) + '/image']: 400,
    [`/camera/a;1/image?crop=1&x=${'y'.repeat(600)}`]: 400,
    ['/camera/a;1/image?' + 'x=1&'.repeat(500)]: 400,
    // targets that are no paths
    'camera/a;1/image': 400, 'http://x/camera/a;1/image': 400, '*': 400,
    // values that make no sense
    '/camera/a;1/image?crop=2': 400, '/camera/a;1/image?crop': 400,
    '/camera/a;1/image?width=0': 400, '/camera/a;1/image?width=-1': 400,
    '/camera/a;1/image?width=8193': 400, '/camera/a;1/image?width=many': 400,
    '/camera/a;1/image?crop=1&&width=0': 400, '/camera/a;1/image?&;width=0': 200,
    '/camera/a;1/image?width=': 400, '/camera/a;1/image?width=%31e3': 400,
    // what is not there
    '/camera/nobody;1/image': 404, '/camera/a;1/video': 404, '/camera/a;1': 404, '/nothing': 404,
    '/camera/a;1/../image': 400, '/camera/': 404, '/': 404,
    // what is there
    '/camera/a;1/image': 200, '/camera/%61%3b1/image': 200, '/camera/%61%3B%31/%69mage': 200,
    '//camera/a;1/image?crop=1': 200, '///camera/a;1/image': 200,
};

// Status, head (lower case) and body of one request.
async function ask(stand, target, secure) {
    const socket = secure ? tls.connect({ port: stand.port, rejectUnauthorized: false })
        : net.connect(stand.port, '127.0.0.1');
    const parts = [];
    socket.on('data', (data) => parts.push(data));
    socket.on('error', () => {}); // a reset, perhaps, once all was said
    socket.write(Buffer.from(`GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
        'latin1'));
    await deadline(new Promise((resolve) => socket.on('close', resolve)), target.slice(0, 60));
    const answer = String(Buffer.concat(parts));
    const [head, body] = answer.split('\r\n\r\n');
    return { status: Number(answer.split(' ')[1] || 0), head: head.toLowerCase().replace(/\r/g, ''), body };
}

async function check(stand, secure) {
    const backend = await Backend.connect(stand, { rejectUnauthorized: false });
    backend.send(list(subscription('a;1')));
    await backend.report(online(1));
    for (const [target, expected] of Object.entries(cases)) {
        const { status, head, body } = await ask(stand, target, secure);
        const told = `${target.slice(0, 60)} (${target.length}): ${status}`;
        assert.strictEqual(status, expected, told);
        if (expected === 200) continue;
        assert.match(head, /\ncontent-type: application\/json$/m, told);
        assert.match(head, /\ncache-control: no-store$/m, told);
        assert.strictEqual(Number(/\ncontent-length: (\d+)/.exec(head)[1]), body.length, told);
        const { error } = JSON.parse(body);
        assert.ok(error.length > 10, told);
        assert.ok(!error.includes('xxx'), told);
    }
    backend.messages.length = 0;
    await backend.report(online(1));
    await backend.close();
}

// Each name that a subscription may have brings its own camera's picture, told by its width.
async function check_each(stand) {
    const names = ['a;front door', 'a;100%', 'a;%41', 'a;A', 'a;x/y', 'a;q?x', 'a;h#x', 'a;p+q', 'a;p q',
        'a;b&c', 'a;b=c', 'a;é☃', 'a;b/image', 'a;b/stream', 'a;x\\y', 'a;"q"', 'a;x/.hidden', 'a;..x',
        'a;[1]', 'a;{x}|^`', 'a;,', 'a/b;c/d', 'a;/b', 'a;~:@'];
    const refused = ['a;x//y', 'a;./x', 'a;x/', '/a;b', 'a;..', 'a;x/../y'];
    const backend = await Backend.connect(stand);
    backend.send(list(...refused.map((name) => subscription(name)), ...names.map((name, i) =>
        subscription(name, { cropX1: 0, cropX2: 16 + 2 * i }))));
    await backend.report(online(names.length));
    for (let i = 0; i < names.length; i++) {
        const path = `/camera/${encodeURIComponent(names[i])}/image?crop=1`;
        const { status, body } = stand.curl(path);
        assert.strictEqual(status, 200, path);
        const at = body.indexOf(Buffer.from([0xff, 0xc0]));
        assert.strictEqual(body.readUInt16BE(at + 7), 16 + 2 * i, path);
    }
    const status = JSON.parse(stand.curl('/status').body);
    assert.strictEqual(status.counters.subscriptionsRefused, refused.length);
    await backend.close();
}

(async () => {
    let stand = await Stand.start();
    await check(stand, false);
    assert.strictEqual(stand.curl('/status', '-X', 'POST', '-d', 'x').status, 405);
    await check_each(stand);
    await stand.stop();
    console.log('ok malformed names are 400, unknown ones 404, both with a JSON error');

    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'baton-names-'));
    try {
        const { cert, key } = certificate(folder);
        stand = await Stand.start('--cert', cert, '--key', key);
        await check(stand, true);
        await stand.stop();
        console.log('ok under TLS, too');
    } finally {
        fs.rmSync(folder, { recursive: true });
    }
})().catch((error) => {
    console.log(error);
    process.exit(1);
});
