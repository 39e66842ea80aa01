// Pings of both sides at one moment, and a peer that answers none.   node pings.js STAND CURL
'use strict';
const assert = require('assert');
const { deadline, Stand, Raw, frame, frames, PING, PONG } = require('./tools');

const INTERVAL_MS = 1000, CROWD = 7; // and a mute one: no more backends are taken
const IS_PING = 9, IS_PONG = 10;

// The payload of the next frame of a kind.
async function next(raw, opcode) {
    raw.taken = raw.taken || {};
    const number = raw.taken[opcode] = (raw.taken[opcode] || 0) + 1;
    for (;;) {
        const found = frames(raw.heard).filter((one) => one.opcode === opcode);
        if (found.length >= number) return String(found[number - 1].payload);
        assert.ok(!raw.is_gone, 'a frame of kind ' + opcode);
        await deadline(Promise.race([raw.gone, new Promise((resolve) =>
            raw.socket.once('data', resolve))]), 'a frame of kind ' + opcode);
    }
}

// As a client with the same interval does: its ping goes out when the worker's next one is due.
async function in_phase(stand, number) {
    const raw = await Raw.connect(stand);
    for (let round = 0; round < 6; round++) {
        const text = `PNG ${number} ${round}`;
        raw.send(frame(PONG, await next(raw, IS_PING)));
        await new Promise((resolve) => setTimeout(resolve, INTERVAL_MS + number % 3 - 1));
        raw.send(frame(PING, text));
        assert.strictEqual(await next(raw, IS_PONG), text);
    }
    raw.socket.destroy();
}

// Who answers no ping is closed, after one of them.
async function mute(stand) {
    const raw = await Raw.connect(stand);
    const { code, reason } = await raw.closed();
    assert.strictEqual(code, 1008);
    assert.match(reason, /answers no ping/);
    assert.strictEqual(frames(raw.heard).filter((one) => one.opcode === IS_PING).length, 1);
}

(async () => {
    const stand = await Stand.start('--ping', '1');
    await Promise.all([mute(stand),
        ...Array.from({ length: CROWD }, (_, number) => in_phase(stand, number))]);
    await stand.stop();
    console.log('ok');
})().catch((error) => {
    console.log(error);
    process.exit(1);
});
