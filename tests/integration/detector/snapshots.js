// A camera with a stream and snapshots of another size: both are there all the time, each can be asked
// for, and the one stands in for the other.
//   node snapshots.js BATON-DETECTOR CURL RTSP-SERVER CLIP SNAPSHOT.jpg
'use strict';
const assert = require('assert');
const fs = require('fs');
const tools = require('./tools');
const { Viewer, list, online, run_all } = tools;
const { Camera, Scene } = require('./life');
const { Shop } = require('../detector_infer/shop');

const STREAM = '320x240';
const SNAPSHOT = '480x270';
const LONG_MS = 600000;
const still = fs.readFileSync(process.argv[6]);

const size = (jpeg) => tools.size(jpeg).join('x');
const tag_of = (answer) => /etag: ("[^"]*")/.exec(answer.head)[1];

class Yard extends Scene {
    static async start(...words) {
        const scene = await super.start(...words);
        scene.shop = await Shop.start({ '/large.jpg': still });
        return scene;
    }
    both(name, more) {
        return this.subscription(name, { snapshotInterval: LONG_MS,
            snapshotUrl: this.shop.url('/large.jpg'), ...more });
    }
    get(name, query = '', ...options) {
        return this.worker.curl(`/camera/${name}/image${query && '?' + query}`, ...options);
    }
    until(what, holds) { return this.backend.until(what, holds); }
    async both_shown(name) {
        await this.until('both', () => this.get(name, 'source=snapshot').status === 200 &&
            this.get(name, 'source=stream').status === 200 &&
            size(this.get(name).body) === STREAM);
    }
    async end() {
        await super.end();
        this.shop.server.close();
        this.shop.server.closeAllConnections();
    }
}

const tests = {
    async 'each source can be asked for while both are online'() {
        const scene = await Yard.start();
        scene.backend.send(list(scene.both('hall;door'), scene.both('hall;gate')));
        await scene.backend.report(online(2));
        await scene.both_shown('hall;door');
        await scene.both_shown('hall;gate');
        assert.strictEqual(size(scene.get('hall;door', 'source=snapshot').body), SNAPSHOT);
        assert.strictEqual(size(scene.get('hall;door', 'source=stream').body), STREAM);
        assert.strictEqual(size(scene.get('hall;door').body), STREAM);
        const { stream, snapshots } = scene.worker.camera('hall;gate');
        assert.ok(stream.online && snapshots.online);
        assert.deepStrictEqual([snapshots.codec, snapshots.width, snapshots.height,
            snapshots.subscribers, snapshots.decoded], ['jpeg', 480, 270, 2, 1]);
        assert.strictEqual(scene.shop.count('/large.jpg'), 1, 'once for both');
        await scene.until('the camera to say so', () => scene.camera.count('play cam') > 0);
        assert.strictEqual(scene.camera.count('play cam'), 1 + stream.restarts);
        await scene.end();
    },

    async 'a snapshot is scaled, cut, tagged and streamed as any image'() {
        const scene = await Yard.start();
        scene.backend.send(list(scene.both('a;1', { cropX1: 100, cropX2: 400, cropY2: 200 })));
        await scene.both_shown('a;1');
        const tag = tag_of(scene.get('a;1', 'source=snapshot'));
        assert.notStrictEqual(tag, tag_of(scene.get('a;1', 'source=stream')));
        const same = scene.get('a;1', 'source=snapshot', '-H', 'If-None-Match: ' + tag);
        assert.deepStrictEqual([same.status, tag_of(same), same.body.length], [304, tag, 0]);
        const scaled = scene.get('a;1', 'source=snapshot&width=240&crop=1');
        assert.strictEqual(size(scaled.body), '240x160');
        assert.notStrictEqual(tag_of(scaled), tag);
        assert.strictEqual(tag_of(scene.get('a;1', 'source=snapshot&boxes=1')), tag,
            'boxes are of what is inferred: the stream');
        const viewer = (await Viewer.open(scene.worker,
            '/camera/a;1/stream?source=snapshot')).read();
        assert.strictEqual(size(await viewer.part()), SNAPSHOT);
        viewer.close();
        await scene.end();
    },

    async 'what is not there is told apart from what makes no sense'() {
        const scene = await Yard.start();
        const only = scene.subscription('b;1');
        const stills = scene.both('b;2', { rtspUrl: '' });
        const none = scene.both('b;3', { snapshotUrl: scene.shop.url('/none.jpg') });
        scene.backend.send(list(only, stills, none));
        await scene.backend.report(online(3));
        const cases = [['b;1', 'source=snapshot', 404, 'no snapshotUrl'],
            ['b;2', 'source=stream', 404, 'no stream'],
            ['b;3', 'source=snapshot', 404, 'no snapshot of this camera has arrived yet'],
            ['b;4', 'source=snapshot', 404, 'no such subscription'],
            ['b;1', 'source=STREAM', 400, 'source must be stream or snapshot']];
        for (const [name, query, status, why] of cases) {
            const answer = scene.get(name, query);
            assert.strictEqual(answer.status, status, `${name} ${query}`);
            assert.ok(JSON.parse(answer.body).error.includes(why), String(answer.body));
        }
        assert.strictEqual(size(scene.get('b;2', 'source=snapshot').body), SNAPSHOT);
        assert.strictEqual(size(scene.get('b;2').body), SNAPSHOT);
        assert.strictEqual(size(scene.get('b;3', 'source=stream').body), STREAM);
        await scene.until('the error', () => scene.worker.camera('b;3').snapshots.last_error);
        const { online: is_online, stream, snapshots } = scene.worker.camera('b;3');
        assert.ok(is_online && stream.online && !snapshots.online);
        assert.match(snapshots.last_error, /404/);
        assert.ok(!('snapshots' in scene.worker.camera('b;1')));
        await scene.end();
    },

    async 'the newest snapshot stands in at once, and the stream comes back'() {
        const scene = await Yard.start();
        scene.backend.send(list(scene.both('c;1')));
        await scene.both_shown('c;1');
        const { port } = scene.camera;
        await scene.camera.end();
        await scene.until('the snapshot', () => size(scene.get('c;1').body) === SNAPSHOT);
        const { online: is_online, stream } = scene.worker.camera('c;1');
        assert.ok(is_online && !stream.online);
        assert.strictEqual(scene.shop.count('/large.jpg'), 1, 'no further request');
        assert.strictEqual(tag_of(scene.get('c;1')), tag_of(scene.get('c;1', 'source=snapshot')));
        assert.strictEqual(size(scene.get('c;1', 'source=stream').body), STREAM,
            'the last frame that there was');
        scene.camera = await Camera.start(port);
        await scene.until('the stream', () => size(scene.get('c;1').body) === STREAM);
        assert.strictEqual(scene.shop.count('/large.jpg'), 1);
        await scene.end();
    },

    async 'snapshots of another address are not shown as those of the new one'() {
        const scene = await Yard.start();
        scene.backend.send(list(scene.both('d;1')));
        await scene.both_shown('d;1');
        scene.backend.send(list(scene.both('d;1', { snapshotInterval: LONG_MS - 1 })));
        await scene.backend.report();
        assert.strictEqual(scene.get('d;1', 'source=snapshot').status, 200);
        scene.backend.send(list(scene.both('d;1', { snapshotUrl: scene.shop.url('/none.jpg') })));
        await scene.until('its end', () => scene.get('d;1', 'source=snapshot').status === 404);
        assert.strictEqual(scene.get('d;1', 'source=stream').status, 200);
        await scene.end();
    },
};

run_all(tests);
