// WebSocket frames that no client sends: unmasked ones, fragments and pings without an end. Each is
// closed with a reason, and the owner does not notice.   node floods.js STAND CURL
'use strict';
const assert = require('assert');
const fs = require('fs');
const os = require('os');
const path = require('path');
const { DEADLINE_MS, Stand, Backend, Raw, frame, frames, TEXT, FIRST, MORE, PING, PONG, session,
    subscription, list, online, certificate } = require('./tools');
const { metrics } = require('./exposition');

const unmasked = async (stand) => {
    for (const text of [JSON.stringify(session('unmasked', 1)), JSON.stringify(list()), '',
        JSON.stringify({ type: 'requestState', more: 'x'.repeat(300) })]) {
        const raw = await Raw.connect(stand);
        raw.send(frame(TEXT, '{"type":"requestState"}'), frame(PING, 'x'));
        raw.send(frame(TEXT, '{"type":"requestState"}'));
        await new Promise((resolve) => raw.socket.once('data', resolve));
        const calm = await Raw.connect(stand);
        calm.send(frame(TEXT, text, false));
        const { code, reason } = await calm.closed();
        assert.strictEqual(code, 1002, text);
        assert.match(reason, /masked/);
        assert.ok(!raw.is_gone, 'who masks is left alone');
        raw.socket.destroy();
    }
    for (const [bytes, pattern] of [[frame(PING, 'x', false), /masked/], [frame(PONG, '', false), /masked/],
        [[TEXT, 0xfe, 0, 2, 0, 0, 0, 0, 0x7b, 0x7d], /as few bytes/],
        [[TEXT, 0xff, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0x7b, 0x7d], /as few bytes/]]) {
        const raw = await Raw.connect(stand);
        raw.send(frame(TEXT, '{"type":"requestState"}'), Buffer.from(bytes));
        const { code, reason } = await raw.closed();
        assert.strictEqual(code, 1002, String(bytes));
        assert.match(reason, pattern);
    }
};

// Frames behind the head of the handshake, in the same write, are frames like all others.
const early = async (stand) => {
    const before = metrics(stand).value('messages_total');
    const raw = await Raw.connect(stand, Buffer.concat([frame(PING, 'soon'),
        frame(TEXT, '{"type":"requestState"}')]));
    const until = Date.now() + DEADLINE_MS;
    while (metrics(stand).value('messages_total') <= before ||
            !frames(raw.heard).some((one) => one.opcode === 10)) {
        assert.ok(Date.now() < until, 'the message and the pong');
        await new Promise((resolve) => setTimeout(resolve, 20)); // its bytes go out meanwhile
    }
    assert.ok(!raw.is_gone && !raw.closing());
    raw.socket.destroy();
};

const floods = async (stand) => {
    const empty = Buffer.concat(Array(5000).fill(frame(MORE, '')));
    for (const [name, first, bytes, pattern] of [
        ['empty fragments', frame(FIRST, 'x'), empty, /fragments/],
        ['pings', Buffer.alloc(0), Buffer.concat(Array(500).fill(frame(PING, 'y'.repeat(100)))),
            /control frames/],
        ['empty pongs', Buffer.alloc(0), Buffer.concat(Array(20000).fill(frame(PONG, ''))),
            /control frames/],
        ['pings in a message', frame(FIRST, 'x'),
            Buffer.concat(Array(500).fill(frame(PING, 'y'.repeat(100)))), /control frames/]]) {
        const raw = await Raw.connect(stand);
        raw.send(first);
        await raw.flood(bytes);
        const { code, reason } = raw.closing() || {};
        if (code !== undefined) { // a reset may come before it is read
            assert.strictEqual(code, 1008, name);
            assert.match(reason, pattern, name);
        }
        raw.socket.destroy();
        const until = Date.now() + DEADLINE_MS;
        while (!new RegExp('message-refused .*' + pattern.source).test(stand.log)) {
            assert.ok(Date.now() < until, 'the log of ' + name);
            await new Promise((resolve) => setImmediate(resolve));
        }
        stand.log = '';
    }
};

// A text is UTF-8 when it is whole, wherever it was cut: who sends another is closed (RFC 6455, 8.1).
const no_texts = async (stand) => {
    const text = Buffer.from('{"type":"requestState","more":"\u2603\u{1f600}"}');
    const calm = await Raw.connect(stand);
    for (let at = 1; at < text.length; at++) {
        calm.send(frame(FIRST, text.slice(0, at)), frame(PING, 'x'), frame(MORE | 0x80, text.slice(at)));
    }
    for (const bytes of [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xe2, 0x98],
        [...text.slice(0, -1), 0xc3]]) {
        const raw = await Raw.connect(stand);
        raw.send(frame(FIRST, bytes.slice(0, 1)), frame(MORE | 0x80, bytes.slice(1)));
        const { code, reason } = await raw.closed();
        assert.strictEqual(code, 1007, String(bytes));
        assert.match(reason, /UTF-8/);
    }
    const until = Date.now() + DEADLINE_MS;
    while (metrics(stand).value('messages_refused_total') < 6 ||
            metrics(stand).value('messages_total') < text.length - 1) {
        assert.ok(Date.now() < until, 'the count');
        await new Promise((resolve) => setTimeout(resolve, 20)); // its bytes go out meanwhile
    }
    assert.ok(!calm.is_gone && !calm.closing());
    assert.match(stand.log, /message-refused .*UTF-8/);
    calm.socket.destroy();
};

// What a lively backend sends is no flood.
const lively = async (stand) => {
    const raw = await Raw.connect(stand);
    const big = JSON.stringify({ type: 'requestState', more: 'x'.repeat(60000) });
    for (let i = 0; i < 100; i++) {
        const parts = [];
        for (let at = 0; at < big.length; at += 100) {
            parts.push(frame((at === 0 ? 1 : 0) | (at + 100 >= big.length ? 0x80 : 0),
                big.slice(at, at + 100)));
        }
        raw.send(frame(PING, 'x'), ...parts);
    }
    const until = Date.now() + DEADLINE_MS;
    while (metrics(stand).value('messages_total') < 101) {
        assert.ok(Date.now() < until, 'the messages');
        await new Promise((resolve) => setTimeout(resolve, 20)); // its bytes go out meanwhile
    }
    const sent = Date.now();
    while (Date.now() < sent + 1500) await new Promise((resolve) => setTimeout(resolve, 100));
    assert.ok(!raw.is_gone && !raw.closing());
    assert.strictEqual(metrics(stand).value('messages_refused_total'), 0);
    raw.socket.destroy();
};

async function check(tests, ...options) {
    for (const test of tests) {
        const stand = await Stand.start(...options);
        const owner = await Backend.connect(stand, { rejectUnauthorized: false });
        owner.send(list(subscription('a;1')));
        await owner.report(online(1));
        await test(stand);
        owner.messages.length = 0;
        await owner.report(online(1));
        await owner.close();
        await stand.stop();
    }
    console.log('ok', ...options.slice(0, 1));
}

(async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'baton-floods-'));
    try {
        const { cert, key } = certificate(folder);
        await check([unmasked, early, floods, no_texts, lively]);
        await check([unmasked, early, floods], '--cert', cert, '--key', key);
    } finally {
        fs.rmSync(folder, { recursive: true });
    }
})().catch((error) => {
    console.log(error);
    process.exit(1);
});
