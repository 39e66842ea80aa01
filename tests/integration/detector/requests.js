// Requests that the worker judges by its own rules, each as bytes: names of cameras, parameters,
// hosts, tokens of upgrades. Whatever is sent, there is an answer, with a JSON error where it is a
// refusal. What no server answers is in tests/unit/web.   node requests.js STAND CURL
'use strict';
const assert = require('assert');
const net = require('net');
const { deadline, size, Stand, Backend, subscription, list, online, run_all } = require('./tools');

const get = (target, headers = 'Host: x\r\n', method = 'GET') =>
    `${method} ${target} HTTP/1.1\r\n${headers}Connection: close\r\n\r\n`;
const AGAIN = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'; // the connection stays
const upgrade = (headers) => 'GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n' +
    'Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n' + headers + '\r\n';
const LONGEST = 256; // name of a camera, in bytes
const long = (bytes) => `/camera/${'a;'.padEnd(bytes, 'x')}/image`;

// Of targets; `a;1` is subscribed.
const targets = {
    // names that are none
    '/camera/nobody/image': 400, '/camera/;/image': 400, '/camera/a;/image': 400,
    '/camera/;1/image': 400, '/camera/a;b;c/image': 400, '/camera/a/stream': 400,
    '/camera//image': 400, '/camera/image': 400, '/camera/./image': 400,
    '/camera/%00/image': 400, '/camera/%ff;1/image': 400, '/camera/a;%7f/image': 400,
    '/camera/a;1/image%0d%0aX-A:%20b': 400, '/camera/a;%c0%ae%c0%ae%c0%af/image': 400,
    '/camera/a&1/image': 400, [long(LONGEST + 1)]: 400, [long(1000)]: 400, [long(60000)]: 400,
    [long(100000)]: 431,
    // names that would walk to one that is there
    '/camera/a;1x%2f..%2f/image': 400, '/camera/x/../a;1/image': 400, '/camera/a;1/./image': 400,
    '/camera//a;1/image': 400, '/camera/%2fa;1/image': 400, '/x/../healthz': 400,
    '/camera/../../etc/passwd': 400, '/camera/a;..%5cx/image': 400,
    // percent-encoding that is none
    '/camera/%zz/image': 400, '/camera/a;1/image%': 400, '/camera/a;1/image?x=%': 400,
    '/camera/a;1/image?x=%00': 400, '/camera/a;1/image?crop=1%0a': 400, '/status%zz': 400,
    // values that make no sense
    '/camera/a;1/image?crop=2': 400, '/camera/a;1/image?crop': 400,
    '/camera/a;1/stream?boxes=many': 400, '/camera/a;1/image?width=0': 400,
    '/camera/a;1/image?crop=1&&width=8193': 400, '/camera/a;1/image?width=%31e3': 400,
    '/camera/a;1/image?source=shown': 400,
    ...Object.fromEntries(['crop=', 'crop=11', 'width', 'width=15', 'width=4294967360', 'width=1e3',
        'source', 'source=', 'source=Stream', 'source=stream,', 'x=1&&width=0'].map((query) =>
        ['/camera/a;1/image?' + query, 400])),
    // what is not there
    '/camera/nobody;1/image': 404, '/camera/a;1/video': 404, '/camera/a;1': 404, '/nothing': 404,
    '/camera/': 404, '/': 404, '/x/image': 404, '/kamera/a;1/stream': 404, [long(LONGEST)]: 404,
    '/camera/a;1/image&': 404, '/camera/a;+1/image': 404,
    // what is there
    '/camera/a;1/image': 200, '/camera/%61%3B%31/%69mage': 200, '///camera/a;1/image?crop=1': 200,
    '/camera/a;1/image?x=../..//&y=a%26crop=2&;width=0': 200, '/camera/a;1/image?%63rop=%31': 200,
    [`/camera/a;1/image?${'y'.repeat(600)}&${'x=1&'.repeat(500)}`]: 200,
};

// Name: [bytes, statuses].
const cases = {
    ...Object.fromEntries(Object.entries(targets).map(([target, status]) =>
        [`${target.slice(0, 60)}, ${target.length}`, [get(target), [status]]])),
    'HEAD': [get('/healthz', 'Host: x\r\n', 'HEAD'), [200]],
    'two in one': [AGAIN + get('/healthz'), [200, 200]],
    'many headers': [get('/healthz', 'Host: x\r\n' + 'X-A: y\r\n'.repeat(400)), [200]],
    'a good one, one that walks': [AGAIN + get('/x/../healthz') + AGAIN, [200, 400]],
    ...Object.fromEntries(['POST', 'PUT', 'DELETE', 'OPTIONS'].map((method) =>
        [method, [get('/healthz', 'Host: x\r\n', method), [405]]])),
    'a body': [get('/healthz', 'Host: x\r\nContent-Length: 3\r\n') + 'abc', [400]],
    // hosts: a page in a browser that was rebound to our address names its own
    ...Object.fromEntries(Object.entries({ '127.0.0.1:8000': 200, '[::1]': 200, 'x': 200,
        'localhost:80': 200, '': 200, 'evil.example': 403, '127.0.0.1.evil.example:80': 403,
        'evil.example@x': 400 }).map(([host, status]) =>
        [`the host "${host}"`, [get('/status', `Host: ${host}\r\n`), [status]]])),
    'no host': ['GET /status HTTP/1.0\r\n\r\n', [200]],
    'a probe of a foreign host': [get('/healthz', 'Host: evil.example\r\n'), [200]],
    // upgrades
    'of version 8': [upgrade('Sec-WebSocket-Version: 8\r\n'), [400]],
    'behind a good one': [AGAIN + upgrade('Sec-WebSocket-Version: 8\r\n'), [200, 400]],
    'to HTTP/2': [get('/', 'Host: x\r\nUpgrade: h2c\r\n'), [400]],
    'with an Origin': [upgrade('Sec-WebSocket-Version: 13\r\nOrigin: http://x\r\n'), [403]],
    'with an empty Origin': [upgrade('Sec-WebSocket-Version: 13\r\nOrigin:\r\n'), [403]],
};

function dial(stand) {
    const socket = net.connect(stand.port, '127.0.0.1');
    socket.parts = [];
    socket.on('data', (data) => socket.parts.push(data));
    socket.on('error', (error) => { socket.error = error; });
    socket.gone = new Promise((resolve) => socket.on('close', resolve));
    return socket;
}

// The statuses of the answers among the bytes, each checked.
function answers(bytes, name) {
    const found = [];
    for (let rest = bytes; rest.length > 0;) {
        const cut = rest.indexOf('\r\n\r\n');
        const [, status, head] = /^HTTP\/1\.[01] (\d{3}) [A-Za-z ]+\r\n([^]*)$/
            .exec(rest.slice(0, cut)) || assert.fail(`${name}: ${rest.slice(0, 200)}`);
        const length = Number((/^content-length: ?(\d+)\r?$/im.exec(head) ||
            assert.fail(`${name}: ${head}`))[1]);
        const body = rest.slice(cut + 4, cut + 4 + length);
        if (status !== '200') {
            assert.match(head, /^content-type: application\/json\r?$/m, name);
            assert.match(head, /^cache-control: no-store\r?$/m, name);
            const { error } = JSON.parse(body);
            assert.ok(error.length > 10 && !error.includes('xxx'), name);
            assert.strictEqual(status === '405', /^allow: GET, HEAD\r?$/m.test(head), name);
            if (name === 'of version 8') assert.match(head, /^sec-websocket-version: 13\r?$/m);
        }
        found.push(Number(status));
        rest = rest.slice(name === 'HEAD' ? rest.length : cut + 4 + length);
    }
    return found;
}

async function check_cases(stand) {
    for (const [name, [bytes, expected]] of Object.entries(cases)) {
        const socket = dial(stand);
        socket.pause(); // many a client listens only once it has said all
        socket.write(Buffer.from(bytes, 'latin1'), () => socket.resume());
        await deadline(socket.gone, name);
        const text = Buffer.concat(socket.parts).toString('latin1');
        assert.deepStrictEqual(answers(text, name), expected, `${name}: ${socket.error}`);
    }
}

// Byte by byte, for ever: hung up on, be it the first request of the connection or a later one.
async function check_slow(stand) {
    const drip = async (first) => {
        const socket = dial(stand);
        socket.write(first + 'GET /healthz HTTP/1.1\r\nX-A: ');
        const timer = setInterval(() => socket.write('y'), 100);
        await deadline(socket.gone, 'a slow head to be hung up on');
        clearInterval(timer);
        const text = Buffer.concat(socket.parts).toString('latin1');
        assert.deepStrictEqual(answers(text, 'slow'), first === '' ? [] : [200]);
    };
    await Promise.all([drip(''), drip(AGAIN)]);
}

// Each name that a subscription may have brings its own camera's picture, told by its width.
async function check_names(stand, backend) {
    const names = ['a;front door', 'a;100%', 'a;%41', 'a;A', 'a;x/y', 'a;q?x', 'a;h#x', 'a;p+q', 'a;p q',
        'a;b&c', 'a;b=c', 'a;é☃', 'a;b/image', 'a;b/stream', 'a;x\\y', 'a;"q"', 'a;x/.hidden', 'a;..x',
        'a;[1]', 'a;{x}|^`', 'a;,', 'a/b;c/d', 'a;/b', 'a;~:@'];
    const refused = ['a;x//y', 'a;./x', 'a;x/', '/a;b', 'a;..', 'a;x/../y'];
    backend.send(list(...refused.map((name) => subscription(name)), ...names.map((name, i) =>
        subscription(name, { cropX1: 0, cropX2: 16 + 2 * i }))));
    await backend.report(online(names.length));
    for (let i = 0; i < names.length; i++) {
        const path = `/camera/${encodeURIComponent(names[i])}/image?crop=1`;
        const { status, body } = stand.curl(path);
        assert.strictEqual(status, 200, path);
        assert.strictEqual(size(body)[0], 16 + 2 * i, path);
    }
    const status = JSON.parse(stand.curl('/status').body);
    assert.strictEqual(status.counters.subscriptionsRefused, refused.length);
}

run_all({
    async 'whatever is sent, an answer comes or the connection ends'() {
        const stand = await Stand.start();
        const backend = await Backend.watching(stand, subscription('a;1'));
        await Promise.all([check_cases(stand), check_slow(stand)]);
        await check_names(stand, backend);
        backend.messages.length = 0;
        await backend.report(online(24));
        await backend.close();
        await stand.stop();
    },
});
