// Clients that are slow to say what they want, and come again when they are hung up on, cost those
// nothing who say it at once.   node slow.js STAND CURL
'use strict';
const assert = require('assert');
const http = require('http');
const net = require('net');
const { fork } = require('child_process');
const { program, curl, deadline, Stand, Backend, subscription, list, online, run_all } =
    require('./tools');

const SLOW = 1500;
const PAUSE_MS = 200;
const AGAIN = 300; // so many have come once more by then
const ASKED = 10;

// The status of a page, asked for on a connection of its own.
const ask = (stand, path) => deadline(new Promise((resolve, reject) => {
    http.get({ host: '127.0.0.1', port: stand.port, path, agent: false }, (answer) => {
        answer.resume();
        answer.on('end', () => resolve(answer.statusCode));
    }).on('error', reject);
}), path);

// A process of its own: so many at any time who say `words` and no more, and come again when they
// are hung up on. Tells when all have come, and when some came again.
function be_the_crowd(port, words) {
    let came = 0;
    const come = () => {
        const socket = net.connect(port, '127.0.0.1', () => {
            socket.write(words);
            came++;
            if (came === SLOW) process.send('gathered');
            if (came === SLOW + AGAIN) process.send('again');
        });
        socket.on('data', () => {});
        socket.on('error', () => {});
        socket.on('close', () => setTimeout(come, PAUSE_MS));
    };
    for (let i = 0; i < SLOW; i++) come();
    process.on('disconnect', () => process.exit());
}

class Crowd {
    static async gather(stand, words) {
        const crowd = new Crowd();
        crowd.child = fork(__filename, [program, curl, String(stand.port), words]);
        crowd.again = new Promise((resolve) => {
            crowd.child.on('message', (what) => { if (what === 'again') resolve(); });
        });
        await deadline(new Promise((resolve) => crowd.child.once('message', resolve)), 'a crowd');
        return crowd;
    }
    leave() { this.child.kill(); }
}

async function beside(words) {
    const stand = await Stand.start();
    const owner = await Backend.connect(stand);
    owner.send(list(subscription('a;1')));
    await owner.report(online(1));
    const crowd = await Crowd.gather(stand, words);
    for (let i = 0; i < ASKED; i++) {
        assert.strictEqual(await ask(stand, '/healthz'), 200);
        assert.strictEqual(await ask(stand, '/camera/a;1/image'), 200);
        const next = await Backend.connect(stand);
        await next.report(online(1));
        await next.close();
    }
    await deadline(crowd.again, 'the oldest to be hung up on');
    owner.messages.length = 0;
    await owner.report(online(1));
    crowd.leave();
    await owner.close();
    await stand.stop();
}

const tests = {
    'half a head': () => beside('GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: '),
    'nothing at all': () => beside(''),
    'one request, and no other': () => beside('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'),
};

const [port, words] = process.argv.slice(4);
if (port !== undefined) be_the_crowd(port, words);
else run_all(tests);
