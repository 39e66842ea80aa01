// Speaks to detector_stand as a backend of other make would, with the `ws` client, and with curl as
// anybody would.   node wire.js STAND CURL EXAMPLES.H
'use strict';
const assert = require('assert');
const fs = require('fs');
const http = require('http');
const { deadline, until, get, size, Stand, Viewer, Backend, subscription, list, session,
    stage, online, certificate, in_folder, run_all } = require('./tools');
const { metrics } = require('./exposition');

// The commands that the specification shows; what C says as "…" "…" JSON would say, too.
const table = fs.readFileSync(process.argv[4], 'utf8');
const commands = [...table.matchAll(/", false,\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\}/g)].map(([, literals]) =>
    JSON.parse(literals.match(/"(?:[^"\\]|\\.)*"/g).map(JSON.parse).join('')));
assert.strictEqual(commands.length, table.split('", false,').length - 1, 'none is left out');

const metric = (stand, name) => metrics(stand).value(name);

// ---- the tests ----

const tests = {
    // tests/unit/detector/test_worker.c says what each of them changes.
    async 'every command of the specification is taken'(stand) {
        const backend = await Backend.connect(stand);
        for (const message of commands) {
            backend.send(message);
            if (message.subscriptions) await backend.report(online(message.subscriptions.length));
        }
        backend.send(list(subscription('end;1')));
        await backend.report((c) => c.length === 1 && c[0].subscriptionIdentifier === 'end;1');
        const { counters } = JSON.parse(stand.curl('/status').body);
        assert.deepStrictEqual([counters.messages, counters.messagesRefused,
            counters.subscriptionsRefused], [commands.length + 1, 0, 0]);
        assert.ok(!stand.log.includes('message-unknown'), stand.log);
        await backend.close();
    },

    async 'what is not valid is told, counted, and changes nothing'(stand) {
        const backend = await Backend.watching(stand, subscription('a;1'));
        for (const bad of ['', 'x', '[]', '{"type":"setSubscriptionList"}', '['.repeat(100000),
            Buffer.from(JSON.stringify(list()))]) backend.socket.send(bad);
        backend.send({ type: 'somethingNew' });
        backend.send({ type: 'patchSessionResult', payload: { sessionId: 77, success: false,
            message: 'no such session\nforged=1' + 'x'.repeat(3000) } });
        backend.send({ type: 'requestState' });
        await backend.report((c) => c.length === 1);
        backend.send(list(subscription('b;1'), { subscriptionIdentifier: 'c;1' }));
        await backend.report((c) => c.length === 1 && c[0].subscriptionIdentifier === 'b;1');
        const { counters } = JSON.parse(stand.curl('/status').body);
        assert.deepStrictEqual([counters.messagesRefused, counters.subscriptionsRefused,
            counters.patchesRefused], [6, 1, 1]);
        await stand.says(/message-refused .*binary/);
        await stand.says(/patch-refused .*session=77 .*no such session forged/);
        backend.send(' '.repeat(5 << 20));
        const { code, reason } = await deadline(backend.closed, 'the close');
        assert.strictEqual(code, 1009);
        assert.match(reason, /4194304 bytes/);
        assert.strictEqual(metric(stand, 'messages_refused_total'), 7);
        await stand.says(/message-refused .*too large/);
    },

    async 'a successor takes over and the older one is told why'(stand) {
        const older = await Backend.watching(stand, subscription('a;1'));
        const newer = await Backend.connect(stand);
        await newer.report(online(1));
        await older.report(online(1)); // silence deposes nobody
        newer.send(list(subscription('b;1')));
        const { code, reason } = await deadline(older.closed, 'the older one to be closed');
        assert.strictEqual(code, 4001);
        assert.strictEqual(reason, 'another backend owns this worker now');
        await newer.report((c) => c.length === 1 && c[0].subscriptionIdentifier === 'b;1');
        await newer.close();
    },

    async 'the image endpoint gives the newest frame as JPEG'(stand) {
        const backend = await Backend.watching(stand, subscription('display-001;cam-001',
            { cropX1: 8, cropY1: 8, cropX2: 40, cropY2: 24 }));
        for (const path of ['/camera/display-001;cam-001/image',
            '/camera/display-001%3Bcam-001/image', '/camera/display-001%3bcam%2D001/image']) {
            const { status, head, body } = stand.curl(path);
            assert.strictEqual(status, 200, path);
            assert.match(head, /content-type: image\/jpeg/);
            assert.match(head, /cache-control: no-cache/);
            assert.match(head, /etag: "[0-9a-f]+-[0-9a-f]+-[0-9a-f.]+-[0-9a-f]+"/);
            assert.strictEqual(body.readUInt16BE(0), 0xffd8);
            assert.deepStrictEqual(size(body), [64, 48]);
        }
        const cropped = stand.curl('/camera/display-001;cam-001/image?crop=1');
        assert.deepStrictEqual(size(cropped.body), [32, 16]);
        for (const [query, expected] of Object.entries({ 'width=32': [32, 24], 'width=33': [33, 25],
            'width=64': [64, 48], 'width=8192': [64, 48], 'crop=1&width=16': [16, 8],
            'width=20&crop=1': [20, 10], 'crop=1&width=50': [32, 16], 'width=0032': [32, 24],
            't=99&%63rop=%31&=': [32, 16], 'crop=0&&': [64, 48],
            'cropped=7&sources=7&;width=0&x=a%26width=32': [64, 48] })) {
            const scaled = stand.curl('/camera/display-001;cam-001/image?' + query);
            assert.deepStrictEqual(size(scaled.body), expected, query);
        }
        const head = stand.curl('/camera/display-001;cam-001/image', '-I');
        assert.strictEqual(head.status, 200);
        assert.match(head.head, /content-length: [1-9]/);
        assert.strictEqual(head.body.length, 0);
        backend.send(list(subscription('other;cam', { rtspUrl: 'rtsp://192.0.2.2/2' })));
        await backend.report((c) => c[0].subscriptionIdentifier === 'other;cam');
        assert.strictEqual(stand.curl('/camera/display-001;cam-001/image').status, 404);
        await backend.close();
    },

    async 'a stream shows newer and newer frames, until its camera goes'(stand) {
        const backend = await Backend.watching(stand, subscription('a;1',
            { cropX1: 8, cropY1: 8, cropX2: 40, cropY2: 24 }), subscription('a;2'));
        const viewer = await Viewer.open(stand, '/camera/a%3B1/stream');
        assert.strictEqual(viewer.answer.statusCode, 200);
        assert.strictEqual(viewer.answer.headers['content-type'],
            'multipart/x-mixed-replace; boundary=frame');
        assert.strictEqual(viewer.answer.headers['cache-control'], 'no-store');
        assert.strictEqual(viewer.answer.headers['content-length'], undefined);
        viewer.read();
        const parts = [];
        for (let i = 0; i < 5; i++) parts.push(await viewer.part());
        for (let i = 1; i < 5; i++) assert.ok(!parts[i].equals(parts[i - 1]), 'part ' + i);
        assert.deepStrictEqual(size(parts[0]), [64, 48]);
        const small = (await Viewer.open(stand, '/camera/a;1/stream?crop=1&width=16')).read();
        assert.deepStrictEqual(size(await small.part()), [16, 8]);
        assert.strictEqual(metric(stand, 'stream_viewers'), 2);
        small.close();
        await until('one viewer', () => metric(stand, 'stream_viewers') === 1);
        const head = stand.curl('/camera/a;1/stream', '-I');
        assert.strictEqual(head.status, 200);
        for (const [path, expected] of Object.entries({ '/camera/b;1/stream': 404,
            '/camera/b/stream': 400, '/camera/a;1/stream?width=1': 400 })) {
            assert.strictEqual(stand.curl(path).status, expected, path);
        }
        backend.send(list(subscription('a;2')));
        await deadline(viewer.ended, 'the end of the stream');
        assert.strictEqual(metric(stand, 'stream_viewers'), 0);
        await backend.close();
    },

    async 'boxes are drawn where something was found'(stand) {
        const backend = await Backend.watching(stand, subscription('a;1'));
        const picture = (query) => stand.curl('/camera/a;1/image' + query).body.length;
        const plain = picture('?boxes=1'); // grey all over: every frame is as small
        assert.ok(Math.abs(plain - picture('')) < 40);
        stand.signal('SIGUSR1');
        await backend.next('a detection', (m) => m.type === 'imageDetection');
        assert.ok(picture('?boxes=1') > plain + 100);
        assert.ok(Math.abs(plain - picture('?boxes=0')) < 40);
        const viewer = (await Viewer.open(stand, '/camera/a;1/stream?boxes=1')).read();
        assert.ok((await viewer.part()).length > plain + 100);
        viewer.close();
        assert.strictEqual(stand.curl('/camera/a;1/image?boxes=many').status, 400);
        await backend.close();
    },

    async 'an unchanged frame is told by its tag'(stand) {
        const backend = await Backend.watching(stand, subscription('a;1'));
        const agent = new http.Agent({ keepAlive: true });
        const ask = (known) => get(stand, '/camera/a;1/image',
            { agent, headers: known ? { 'If-None-Match': known } : {} });
        const first = (await ask()).headers.etag;
        assert.match(first, /^"[^"]+"$/);
        await until('a new one', async () => (await ask(first)).status === 200);
        stand.signal('SIGHUP');
        let tag, again;
        await until('a 304', async () => { // the signal may be a frame late
            tag = (await ask()).headers.etag;
            again = await ask(tag);
            return again.status === 304;
        });
        assert.strictEqual(again.body.length, 0);
        assert.strictEqual(again.headers['content-length'], undefined, 'the picture\'s is not known');
        for (const names of [`W/${tag}`, '*', `"x", ${tag}`]) {
            assert.strictEqual((await ask(names)).status, 304, names);
        }
        assert.strictEqual((await ask('"x"')).status, 200);
        stand.signal('SIGHUP');
        agent.destroy();
        await backend.close();
    },

    async 'health, readiness, metrics and status are there'(stand) {
        assert.strictEqual(stand.curl('/healthz').status, 200);
        assert.strictEqual(stand.curl('/readyz').status, 200);
        const backend = await Backend.watching(stand, subscription('a;1'), subscription('a;2'));
        const { families, value } = metrics(stand);
        assert.strictEqual(value('subscriptions_online'), 2);
        assert.strictEqual(value('connections'), 1);
        assert.strictEqual(families.baton_detector_detections_dropped_total.type, 'counter');
        backend.send(session('a', 7));
        backend.send(stage('a', 'welcome'));
        await until('session and stage', () => {
            const [{ sessionId, progressionStage }] = JSON.parse(stand.curl('/status').body).cameras;
            return sessionId === 7 && progressionStage === 'welcome';
        });
        const status = JSON.parse(stand.curl('/status').body);
        assert.strictEqual(status.hasBackend, true);
        assert.ok(status.usage.cpus > 0);
        await backend.close(); // drain.js: not ready while draining
    },

    async 'no password reaches log, status or metrics'(stand) {
        const backend = await Backend.connect(stand);
        backend.send(list(subscription('a;1'), subscription('a;1'),
            subscription('b;1', { rtspUrl: 'http://u:canary@h/' })));
        await backend.report((c) => c.length === 1);
        backend.send('{"rtspUrl":"rtsp://u:canary@h" "');
        backend.send({ type: 'requestState' });
        assert.ok(!JSON.stringify(await backend.report()).includes('canary'));
        for (const path of ['/status', '/metrics', '/camera/a;1/image']) {
            assert.ok(!stand.curl(path).body.includes('canary'), path);
        }
        assert.match(stand.log, /subscription-refused/);
        assert.ok(!stand.log.includes('canary'), stand.log);
        await backend.close();
    },
};

// Those who look and do not read hold a place and a part, and cost those who read nothing.
async function slow_viewers() {
    const stand = await Stand.start('--scale', '32');
    const backend = await Backend.watching(stand, subscription('a;1'));
    const viewers = [];
    for (let i = 0; i < 15; i++) viewers.push(await Viewer.open(stand, '/camera/a;1/stream'));
    const reader = (await Viewer.open(stand, '/camera/a;1/stream')).read();
    const refused = await Viewer.open(stand, '/camera/a;1/stream');
    assert.strictEqual(refused.answer.statusCode, 503);
    assert.match(refused.answer.headers['retry-after'], /^[1-9]/);
    refused.close();
    for (let i = 0; i < 40; i++) await reader.part();
    assert.strictEqual(stand.curl('/camera/a;1/image').status, 200);
    viewers[0].read(); // what it is shown, when it reads again, is whole
    for (let i = 0; i < 5; i++) await viewers[0].part();
    viewers.forEach((one) => one.close());
    reader.close();
    await until('no viewer', () => metric(stand, 'stream_viewers') === 0);
    backend.messages.length = 0;
    await backend.report(online(1));
    await backend.close();
    await stand.stop();
}

// Pictures of 12 megapixels, each of another size: more than can be made.
async function overload() {
    const stand = await Stand.start('--scale', '64');
    const backend = await Backend.watching(stand, subscription('a;1'));
    const paths = [...Array(150).keys()].map((i) => `/camera/a;1/image?width=${2000 + i}`);
    const before = metric(stand, 'images_encoded_total');
    const answers = await Promise.all(paths.map((one) => get(stand, one)));
    const good = answers.filter((one) => one.status === 200);
    const busy = answers.filter((one) => one.status === 503);
    assert.strictEqual(good.length + busy.length, paths.length);
    assert.ok(good.length >= 34 && busy.length > 0, `${good.length} good, ${busy.length} busy`);
    for (const one of good) assert.strictEqual(one.body.readUInt16BE(0), 0xffd8);
    for (const one of busy) {
        assert.match(one.headers['retry-after'], /^[1-9]\d*$/);
        assert.strictEqual(one.headers.etag, undefined);
        assert.match(JSON.parse(one.body).error, /too busy/);
    }
    assert.strictEqual(metric(stand, 'images_refused_total'), busy.length);
    assert.strictEqual(metric(stand, 'images_encoded_total') - before, good.length);
    backend.messages.length = 0;
    await backend.report(online(1)); // the loop was never kept from its reports
    assert.strictEqual(stand.curl('/camera/a;1/image?width=64').status, 200);
    await backend.close();
    await stand.stop();
}

async function with_token() {
    const stand = await Stand.start('--token', 'open-sesame');
    await assert.rejects(Backend.connect(stand), /401/);
    await assert.rejects(Backend.connect(stand, { headers: { Authorization: 'Bearer open' } }),
        /401/);
    const backend = await Backend.connect(stand,
        { headers: { Authorization: 'Bearer open-sesame' } });
    await backend.report();
    const refused = stand.curl('/status');
    assert.strictEqual(refused.status, 401);
    assert.match(refused.head, /\r\nwww-authenticate: bearer(\r|$)/);
    assert.strictEqual(stand.curl('/status', '-H', 'Authorization: Bearer open-sesame', '-H',
        'Host: worker.example').status, 200, 'the token is enough');
    assert.strictEqual(stand.curl('/healthz').status, 200);
    assert.strictEqual(stand.curl('/status', '-H', 'Authorization: Bearer open-sesame').status, 200);
    await backend.close();
    await stand.stop();
}

const with_tls = () => in_folder(async (folder) => {
    const { cert, key } = certificate(folder);
    const stand = await Stand.start('--cert', cert, '--key', key);
    await assert.rejects(Backend.connect(stand), /self.signed/);
    const backend = await Backend.connect(stand, { ca: fs.readFileSync(cert) });
    backend.send(list(subscription('a;1')));
    await backend.report(online(1));
    const image = stand.curl('/camera/a;1/image', '--cacert', cert);
    assert.strictEqual(image.status, 200);
    assert.strictEqual(image.body.readUInt16BE(0), 0xffd8);
    await backend.close();
    await stand.stop();
});

// The test has a stand, whose log is shown if it fails.
const with_stand = (test) => async () => {
    const stand = await Stand.start();
    try {
        await test(stand);
        await stand.stop();
    } catch (error) {
        stand.child.kill('SIGKILL');
        console.log(stand.log.slice(-3000));
        throw error;
    }
};

run_all({
    ...Object.fromEntries(Object.entries(tests).map(([name, test]) => [name, with_stand(test)])),
    'viewers are bounded, and a slow one costs nobody else': slow_viewers,
    'more pictures than can be made are refused, and the others come': overload,
    'a token is asked of everybody but probes': with_token,
    'the same is there under TLS': with_tls,
});
