// Requests as bytes, most of them none, and the statuses that come back: whatever is sent, there is
// an answer, with a JSON error.
//   node requests.js STAND CURL
'use strict';
const assert = require('assert');
const fs = require('fs');
const net = require('net');
const os = require('os');
const path = require('path');
const tls = require('tls');
const { deadline, Stand, certificate } = require('./tools');

const END = 'Host: x\r\nConnection: close\r\n\r\n';
const get = (target, headers = '', method = 'GET', version = 'HTTP/1.1') =>
    `${method} ${target} ${version}\r\n${headers}${END}`;
const KEY = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';
const upgrade = (headers, method = 'GET', connection = 'Connection: Upgrade\r\n') =>
    `${method} / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n${connection}${headers}\r\n`;
const AGAIN = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'; // the connection stays

// Name: [bytes, statuses].
const cases = {
    // questions that are ones
    'a question': [get('/healthz'), [200]],
    'HEAD': [get('/healthz', '', 'HEAD'), [200]],
    'HTTP/1.0': [get('/healthz', '', 'GET', 'HTTP/1.0'), [200]],
    'line feeds only': ['GET /healthz HTTP/1.1\nHost: x\nConnection: close\n\n', [200]],
    'an expectation': [get('/healthz', 'Expect: 100-continue\r\n'), [200]],
    'two in one': [AGAIN + get('/healthz'), [200, 200]],
    'no body, said so': [AGAIN.replace(': x', ': x\r\nContent-Length: 0') + get('/healthz'), [200, 200]],
    'slashes': [get('//healthz'), [200]],
    'many headers': [get('/healthz', 'X-A: y\r\n'.repeat(400)), [200]],
    'no more after this, in a list': [AGAIN.replace(': x', ': x\r\nConnection: TE, Close') +
        get('/healthz'), [200]],
    'no more after this, twice': [AGAIN.replace(': x', ': x\r\nConnection: x\r\nConnection: close') +
        get('/healthz'), [200]],
    // hosts
    'our address': [AGAIN.replace('healthz', 'status').replace(': x', ': 127.0.0.1:8000\r\n' +
        'Connection: close'), [200]],
    'another address': [AGAIN.replace('healthz', 'status').replace(': x', ': [::1]\r\n' +
        'Connection: close'), [200]],
    'a name without a dot': [get('/status'), [200]],
    'no host': ['GET /status HTTP/1.0\r\n\r\n', [200]],
    'a foreign host': [AGAIN.replace('healthz', 'status').replace(': x', ': evil.example\r\n' +
        'Connection: close'), [403]],
    'a foreign host and its port': [AGAIN.replace('healthz', 'metrics').replace(': x',
        ': 127.0.0.1.evil.example:80\r\nConnection: close'), [403]],
    'a probe of a foreign host': [AGAIN.replace(': x', ': evil.example\r\nConnection: close'), [200]],
    'no host in HTTP/1.1': ['GET /healthz HTTP/1.1\r\n\r\n' + AGAIN, [400]],
    'two hosts': [AGAIN.replace(': x', ': x\r\nHost: x') + AGAIN, [400]],
    'two hosts in HTTP/1.0': ['GET /healthz HTTP/1.0\r\nHost: x\r\nHost: y\r\n\r\n', [400]],
    'a host with a blank': [AGAIN.replace(': x', ': a b') + AGAIN, [400]],
    'a host and somebody': [AGAIN.replace(': x', ': evil.example@x') + AGAIN, [400]],
    'a host that is too long': [AGAIN.replace('healthz', 'status').replace(': x',
        `: evil.example:${'0'.repeat(600)}80`) + AGAIN, [400]],
    'blanks around a host': [AGAIN.replace(': x', ':\t x \t\r\nConnection: close'), [200]],
    // methods
    'POST': [get('/healthz', '', 'POST'), [405]],
    'POST with a body': [get('/healthz', 'Content-Length: 3\r\n', 'POST') + 'abc', [405]],
    'POST of more than is read': [get('/x', 'Content-Length: 3000000\r\n', 'POST') +
        'y'.repeat(3000000), [405]],
    'no code, much after it': [get('/%zz', `X-A: ${'y'.repeat(3000000)}\r\n`), [431]],
    'an upgrade with much after it': [upgrade('') + 'y'.repeat(3000000), [400]],
    'chunks, many': [get('/healthz', 'Transfer-Encoding: chunked\r\n') +
        'y'.repeat(3000000), [400]],
    'CONNECT, many': [get('x:80', '', 'CONNECT') + 'y'.repeat(3000000), [405]],
    'PUT': [get('/healthz', '', 'PUT'), [405]], 'DELETE': [get('/x', '', 'DELETE'), [405]],
    'PATCH': [get('/healthz', '', 'PATCH'), [405]], 'OPTIONS': [get('/x', '', 'OPTIONS'), [405]],
    'CONNECT': [get('x:80', '', 'CONNECT'), [405]], 'BREW': [get('/healthz', '', 'BREW'), [400]],
    'two methods': ['GET / HTTP/1.1\r\nGET / HTTP/1.1\r\n' + END, [400]],
    'no method': [END, [400]], 'an empty line first': ['\r\n' + get('/healthz'), [200]],
    'a method in small letters': [AGAIN.replace('GET', 'get') + AGAIN, [400]],
    // headers that are none
    ...Object.fromEntries(['nonsense', ': x', 'X Y: z', 'Content-Length : 3', 'Transfer-Encoding : chunked',
        'Transfer-Encoding\t: chunked', 'X-Y: z\r\n Content-Length: 3', 'X-Y: z\r\n\tz', 'X-Y: a\rb',
        'X-Y: a\x01b', 'X-Y: a\x7fb', 'X-Y: a\0b', 'X\xe9: y', 'X: y\r\nContent-Length: 3',
        'X: y\r\nTransfer-Encoding: chunked'].map((line) =>
        [`the header ${JSON.stringify(line)}`, [AGAIN.replace(': x', `: x\r\n${line}\r\nA-B: c`) + AGAIN,
            [400]]])),
    'a header of blanks and of bytes': [get('/healthz', 'X-Y:\t \xff\xfe é \r\nX-Z:\r\n'), [200]],
    'a blank before the first header': [get('/healthz', ' X-Y: z\r\n'), [400]],
    // paths of the second request of a connection, at once or later
    'a good one, one that walks': [AGAIN + get('/x/../healthz'), [200, 400]],
    'many good ones, one that walks': [AGAIN.repeat(100) + get('/x/../healthz'), [...Array(100).fill(200),
        400]],
    'one that walks, a good one': [AGAIN.replace('/h', '/x/../h') + AGAIN, [400]],
    // targets
    'zero': [get('/a%00'), [400]], 'a raw zero': [get('/a\0b'), [400]],
    'zero in a query': [get('/healthz?x=%00'), [400]],
    'half a code': [get('/%'), [400]], 'no code': [get('/%zz'), [400]],
    'absolute form': [get('http://x/healthz'), [400]], 'asterisk': [get('*'), [400]],
    'no target': ['GET  HTTP/1.1\r\n' + END, [400]], 'tabs': ['GET\t/\tHTTP/1.1\r\n' + END, [400]],
    'semicolons': [get('/' + ';'.repeat(500)), [404]],
    'parameters': [get('/?' + 'x=1&'.repeat(500)), [400]],
    // versions
    'HTTP/2.0': [get('/healthz', '', 'GET', 'HTTP/2.0'), [400]],
    'HTTP/0.9': ['GET /healthz\r\n\r\n', [400]], 'no version': ['GET /healthz \r\n' + END, [400]],
    'the preface of HTTP/2': ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', [400]],
    // heads and bodies
    'a long path': [get('/' + 'x'.repeat(100000)), [431]],
    'a path that is still being sent': [get('/' + 'x'.repeat(3000000)), [431]],
    'a long header': [get('/healthz', `X-A: ${'y'.repeat(100000)}\r\n`), [431]],
    'too many headers': [get('/healthz', 'X-A: y\r\n'.repeat(20000)), [431]],
    'too many known headers': [get('/healthz', 'Accept: y\r\n'.repeat(500)), [200]],
    'chunks': [get('/healthz', 'Transfer-Encoding: chunked\r\n') + '3\r\nabc\r\n0\r\n\r\n', [400]],
    'chunks that hide a question': [AGAIN.replace('\r\n\r\n', '\r\nTransfer-Encoding: chunked' +
        `\r\n\r\n`) + get('/healthz'), [400]],
    'chunks without a word': [AGAIN.replace(': x', ': x\r\nTransfer-Encoding:') + AGAIN, [400]],
    'a body': [AGAIN.replace(': x', ': x\r\nContent-Length: 3') + 'abc' + AGAIN, [400]],
    'a body that never comes': [AGAIN.replace(': x', ': x\r\nContent-Length: 1'), [400]],
    'a body without an end': [AGAIN.replace(': x', ': x\r\nContent-Length: 1000000000000') +
        'y'.repeat(3000000), [400]],
    ...Object.fromEntries(['abc', '-1', '+0', '0x0', '0, 0', '0 0', '', '3abc', '9'.repeat(40)].map(
        (length) => [`a body of ${length} bytes`, [AGAIN.replace(': x',
            `: x\r\nContent-Length: ${length}`) + AGAIN, [400]]])),
    'two lengths': [AGAIN.replace(': x', ': x\r\nContent-Length: 0\r\nContent-Length: 0') + AGAIN,
        [400]],
    'a line break in a path, and another': ['GET /healthz%0a HTTP/1.1\r\nHost: x\r\n\r\n' + AGAIN,
        [400]],
    'a version that is none, and another': [AGAIN.replace('1.1', '1.10') + AGAIN, [400]],
    // bytes that are none of it
    'noise': [String.fromCharCode(...Array(256).keys()).repeat(4), [400]],
    '0xff': ['\xff'.repeat(300), [400]], 'TLS': ['\x16\x03\x01\x02\x00\x01\x00' + 'a'.repeat(99), [400]],
    // upgrades
    'to HTTP/2': [get('/', 'Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n'), [400]],
    'to something': [get('/', 'Upgrade: something\r\n'), [400]],
    'without a key': [upgrade('Sec-WebSocket-Version: 13\r\n'), [400]],
    'with a long key': [upgrade(`Sec-WebSocket-Version: 13\r\n${KEY.replace('==',
        'x'.repeat(300))}`), [400]],
    'without a version': [upgrade(KEY), [400]],
    'of version 8': [upgrade(KEY + 'Sec-WebSocket-Version: 8\r\n'), [400]],
    'without a Connection': [upgrade(KEY + 'Sec-WebSocket-Version: 13\r\n', 'GET', ''), [400]],
    'to a subprotocol': [upgrade(KEY + 'Sec-WebSocket-Version: 13\r\n' +
        'Sec-WebSocket-Protocol: x\r\n'), [400]],
    'to a WebSocket by HTTP/1.0': [upgrade(KEY + 'Sec-WebSocket-Version: 13\r\n').replace('1.1',
        '1.0'), [400]],
    'that is none': [upgrade(KEY + 'Sec-WebSocket-Version: 13\r\n', 'GET',
        'Connection: notupgrade\r\n'), [400]],
    'with a body': [upgrade(KEY + 'Sec-WebSocket-Version: 13\r\nContent-Length: 5\r\n'), [400]],
    'with chunks': [upgrade(KEY + 'Sec-WebSocket-Version: 13\r\nTransfer-Encoding: chunked\r\n'),
        [400]],
    'with two hosts': [upgrade(KEY + 'Sec-WebSocket-Version: 13\r\nHost: x\r\n'), [400]],
    'with an empty Origin': [upgrade(KEY + 'Sec-WebSocket-Version: 13\r\nOrigin:\r\n'), [403]],
    'with POST': [upgrade(KEY + 'Sec-WebSocket-Version: 13\r\n', 'POST'), [405]],
    'to nothing': [AGAIN.replace(': x', ': x\r\nUpgrade:') + get('/x/../healthz'), [400]],
    'behind a good one': [AGAIN + upgrade(KEY + 'Sec-WebSocket-Version: 8\r\n'), [200, 400]],
    'with an Origin': [upgrade(KEY + 'Sec-WebSocket-Version: 13\r\nOrigin: http://x\r\n'), [403]],
    // the second request of a connection
    'a good one, a zero': [AGAIN + get('/a%00'), [200, 400]],
    'a good one, no code': [AGAIN + get('/%zz'), [200, 400]],
    'a good one, a long one': [AGAIN + get('/' + 'x'.repeat(100000)), [200, 431]],
    'a good one, POST': [AGAIN + get('/', '', 'POST'), [200, 405]],
    'a good one, noise': [AGAIN + '\x01\x02', [200, 400]],
};

function dial(stand) {
    const socket = stand.scheme === 'wss'
        ? tls.connect({ port: stand.port, rejectUnauthorized: false })
        : net.connect(stand.port, '127.0.0.1');
    socket.parts = [];
    socket.on('data', (data) => socket.parts.push(data));
    socket.on('error', (error) => { socket.error = error; });
    socket.gone = new Promise((resolve) => socket.on('close', resolve));
    return socket;
}

// The answers among the bytes, each checked.
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
            assert.ok(JSON.parse(body).error.length > 10, name);
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

// In pieces of any size, and one request behind the answer to another.
async function check_pieces(stand) {
    const walks = get('/x%2f..%2fhealthz');
    for (const [name, pieces, expected] of [['bytes', [...walks], [400]],
        ['bytes of a good one', [...get('/healthz')], [200]],
        ['a line and a head', [AGAIN, '/x', walks], [200, 400]],
        ['halves', [AGAIN + walks.slice(0, 9), walks.slice(9)], [200, 400]],
        ['an upgrade', [...upgrade(KEY + 'Sec-WebSocket-Version: 13\r\n').replace('/ ', '/x/.. ')],
            [400]]]) {
        const socket = dial(stand);
        for (const piece of pieces) {
            if (piece === '/x') {
                await deadline(new Promise((resolve) => socket.once('data', resolve)), name);
            } else {
                await new Promise((resolve) => socket.write(piece, resolve));
                await new Promise((resolve) => setImmediate(resolve));
            }
        }
        await deadline(socket.gone, name);
        const text = Buffer.concat(socket.parts).toString('latin1');
        assert.deepStrictEqual(answers(text, name), expected, name);
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

// Requests with bytes changed, by a generator that gives the same each time: each connection comes
// to an end once it hears no more, and what came was answers (or an upgrade).
async function check_changed(stand) {
    let state = 12345;
    const random = (below) => {
        state = (Math.imul(state, 1103515245) + 12345) >>> 0;
        return (state >>> 8) % below;
    };
    const seeds = Object.values(cases).map(([bytes]) => bytes).filter((b) => b.length < 3000);
    const signs = ['\0', '\r', '\n', '%', ';', '&', '/', '..', '?', ' ', ':', '\xff', '%00', '+'];
    const one = async () => {
        const bytes = [...seeds[random(seeds.length)]];
        for (let i = random(6); i >= 0; i--) {
            bytes.splice(random(bytes.length), random(3), signs[random(signs.length)]);
        }
        const socket = dial(stand);
        socket.end(Buffer.from(bytes.join(''), 'latin1'));
        await deadline(socket.gone, JSON.stringify(bytes.join('')));
        const text = Buffer.concat(socket.parts).toString('latin1');
        assert.match(text, /^(HTTP\/1\.[01] (101|200|400|403|404|405|431) |$)/);
    };
    for (let i = 0; i < 40; i++) await Promise.all(Array.from({ length: 25 }, one));
}

async function check(...options) {
    const stand = await Stand.start(...options);
    await Promise.all([check_cases(stand).then(() => check_pieces(stand)).then(() =>
        check_changed(stand)), check_slow(stand)]);
    assert.strictEqual(stand.curl('/healthz', '-k').status, 200);
    await stand.stop();
    console.log('ok whatever is sent over', stand.scheme,
        'an answer comes or the connection ends');
}

(async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'baton-requests-'));
    try {
        const { cert, key } = certificate(folder);
        await Promise.all([check(), check('--cert', cert, '--key', key)]);
    } finally {
        fs.rmSync(folder, { recursive: true });
    }
})().catch((error) => {
    console.log(error);
    process.exit(1);
});
