// The program baton-detector with a camera that streams and models that see, driven by a backend of
// other make.
//   node program.js BATON-DETECTOR CURL RTSP-SERVER CLIP.h264 ARCHIVE CLIP.mp4
'use strict';
const assert = require('assert');
const fs = require('fs');
const path = require('path');
const { deadline, until, Backend, list, subscription, session, in_folder, refuses, run_all } =
    require('../detector/tools');
const { Camera, Worker, Scene } = require('../detector/life');
const { metrics } = require('../detector/exposition');
const { Shop } = require('./shop');

const [archive, clip] = process.argv.slice(6);
const still = path.join(path.dirname(process.argv[5]), 'larger.jpg');
const brands = { red: 'Ferrari', green: 'Lotus', blue: 'Ford' };
const letters = { red: 'R', green: 'G', blue: 'B' };
const is_detection = (of) => (m) => m.type === 'imageDetection' && m.subscriptionIdentifier === of;

function check(detection) {
    const colour = detection.bodyType;
    assert.strictEqual(detection.carBrand, brands[colour]);
    assert.strictEqual(detection.licensePlateText, letters[colour]);
    assert.ok(detection.licensePlateConfidence > 0.3 && detection.licensePlateConfidence <= 1);
    assert.ok(Number.isInteger(detection.x) && Number.isInteger(detection.y));
    assert.deepStrictEqual(Object.keys(detection).sort(), ['bodyType', 'carBrand',
        'licensePlateConfidence', 'licensePlateText', 'x', 'y']);
    return colour;
}

// With a worker that is to fetch /a.mpta of that shop, and has nothing of it yet.
const fetching = (shop, work, ...options) => in_folder(async (cache) => {
    const scene = await Scene.start('--model-cache', cache, ...options);
    scene.backend.send(list(scene.subscription('hall;door',
        { modelId: 1, modelUrl: shop.url('/a.mpta') })));
    await work(scene);
    await scene.end();
});

// The end of an image's tag names the boxes that were drawn; 0: none.
const boxed = /etag: "[^"]*-[1-9a-f][0-9a-f]*"/;

const tests = {
    async 'boxes are drawn on what the model looks at, and on nothing else'() {
        const shop = await Shop.start({ '/still.jpg': fs.readFileSync(still) });
        const scene = await Scene.start('--model', archive);
        const { backend, worker } = scene;
        const is_boxed = (query) => boxed.test(worker.curl('/camera/a;1/image?boxes=1' + query,
            '-I').head);
        const until_boxed = (query) => backend.until('boxes ' + query, () => is_boxed(query));
        backend.send(list(scene.subscription('a;1', { snapshotInterval: 100,
            snapshotUrl: shop.url('/still.jpg') })));
        await backend.report((all) => all.length === 1 && all[0].online);
        await backend.until('the stream', () => worker.camera('a;1').stream.online);
        await until_boxed('&source=stream');
        await until_boxed('');
        assert.ok(!is_boxed('&source=snapshot'));
        await scene.camera.end();
        await until_boxed('&source=snapshot');
        assert.ok(!is_boxed('&source=stream'));
        await scene.end();
        await shop.close();
    },

    async 'what a camera shows is reported with session, model and attributes'() {
        const scene = await Scene.start('--model', archive);
        const { camera, worker, backend } = scene;
        const modelName = 'Rectangles, "grün" \\ or not';
        const more = { rtspUrl: camera.url(), modelId: 101, modelName };
        backend.send(session('hall', 4711));
        backend.send(list(subscription('hall;door', more),
            subscription('hall;gate', { ...more, cropX1: 0, cropY1: 0, cropX2: 320, cropY2: 70 })));
        const colours = new Set();
        while (colours.size < 3) {
            const message = await backend.next('a detection', is_detection('hall;door'));
            assert.strictEqual(message.sessionId, 4711);
            assert.strictEqual(message.data.modelId, 101);
            assert.strictEqual(message.data.modelName, modelName);
            assert.ok(Math.abs(Date.parse(message.timestamp) - Date.now()) < 60000);
            colours.add(check(message.data.detection));
        }
        // Only the red one passes through the cut, and is where it is in the whole picture.
        for (let i = 0; i < 2; i++) {
            const message = await backend.next('a detection', is_detection('hall;gate'));
            assert.strictEqual(check(message.data.detection), 'red');
            assert.ok(Math.abs(message.data.detection.y - 20) <= 2);
        }
        const is_boxed = (query) => boxed.test(worker.curl('/camera/hall;door/image' + query,
            '-I').head);
        await until('a picture with boxes', () => is_boxed('?boxes=1'));
        assert.ok(!is_boxed(''));
        const model = worker.camera('hall;door').model_state;
        assert.strictEqual(model.state, 'running');
        assert.match(model.engine, /^(onnxruntime|opencv) /);
        assert.strictEqual(model.subscriptions, 2, 'cameras share the models');
        assert.ok(model.inferred > 0 && model.failures === 0);
        assert.ok(model.fps > 0 && model.dropped_fps >= 0);
        assert.ok(model.latency_p50_ms > 0 && model.latency_p50_ms <= model.latency_p99_ms);
        assert.strictEqual(camera.count('play cam'), 1);

        const of = { model_id: '101' };
        const { families, value } = metrics(worker);
        const { labels } = families.baton_detector_model_subscriptions.samples[0];
        assert.deepStrictEqual(labels, { model_id: '101', model_name: modelName,
            engine: model.engine });
        assert.strictEqual(value('model_subscriptions', of), 2);
        assert.strictEqual(value('model_opened_total', of), 2);
        assert.strictEqual(value('model_refused_total', of), 0);
        assert.ok(value('model_frames_total', of) >= model.inferred);
        assert.ok(value('model_frames_dropped_total', of) >= model.dropped);
        for (const name of ['model_run_seconds', 'model_latency_seconds']) {
            assert.strictEqual(value(name + '_count', of), value('model_frames_total', of), name);
            assert.ok(value(name + '_sum', of) > 0, name);
        }
        assert.ok(value('model_latency_seconds_sum', of) >= value('model_run_seconds_sum', of));
        assert.strictEqual(value('archives_fetched_total'), undefined, '--model has no archives');

        process.kill(model.pid, 'SIGKILL');
        await worker.says(/model-failed/);
        backend.messages.length = 0;
        check((await backend.next('a detection', is_detection('hall;door'))).data.detection);
        assert.strictEqual(worker.camera('hall;door').model_state.restarts, 1);
        backend.send(list());
        await backend.report((all) => all.length === 0);
        const after = metrics(worker).value; // counters stay when what they counted has gone
        assert.strictEqual(after('model_subscriptions', of), 0);
        assert.ok(after('model_failures_total', of) >= 1);
        for (const name of ['model_frames_total', 'model_frames_dropped_total']) {
            assert.ok(after(name, of) >= value(name, of), name);
        }
        await scene.end();
    },

    'models are fetched, kept and exchanged, and a bad one changes nothing': () => in_folder(
        async (cache) => {
            const camera = await Camera.start(0);
            const renamed = path.join(path.dirname(archive), 'renamed.mpta');
            const shop = await Shop.start({ '/a.mpta': fs.readFileSync(archive),
                '/b.mpta': fs.readFileSync(renamed), '/c.mpta': Buffer.from('no archive') });
            const red = (id) => (m) => is_detection('hall;door')(m) && m.data.modelId === id &&
                m.data.detection.bodyType === 'red';
            let worker = await Worker.start('--model-cache', cache);
            let backend = await Backend.connect(worker);
            const wants = (modelId, name) => backend.send(list(subscription('hall;door',
                { rtspUrl: camera.url(), modelId, modelName: name, modelUrl: shop.url(name) })));
            wants(101, '/a.mpta');
            const first = await backend.next('a detection', red(101));
            assert.strictEqual(first.data.detection.carBrand, 'Ferrari');
            wants(102, '/b.mpta');
            const second = await backend.next('a detection', red(102));
            assert.strictEqual(second.data.detection.carBrand, 'Fiat');
            wants(103, '/c.mpta');
            await worker.says(/model-refused .*model-id=103/);
            const model = worker.camera('hall;door').model_state;
            assert.strictEqual(model.running_id, 102);
            assert.match(model.last_error, /zip.*; model 102 \(\/b\.mpta\) goes on$/);
            backend.messages.length = 0;
            await backend.next('a detection', red(102));
            wants(104, '/b.mpta');
            await backend.next('a detection', red(104));
            wants(105, '/d.mpta');
            await worker.says(/model-refused .*model-id=105/);
            let { value } = metrics(worker);
            // What was refused may have been asked for again by now.
            const refused = value('archives_refused_total');
            const failures = value('archives_fetch_failures_total');
            assert.ok(refused >= 1 && failures >= 1);
            assert.strictEqual(value('archives_fetched_total'), 3 + refused);
            assert.strictEqual(value('archives_from_before_total'), 0);
            const again = shop.asked.filter(([, is_known]) => is_known);
            assert.ok(again.every(([name]) => name === '/c.mpta'), 'only a refused one again');
            assert.ok(value('archives_unchanged_total') <= again.length);
            for (const [id, opened, no] of [[101, 1, 0], [102, 1, 0], [103, 0, refused],
                [104, 1, 0], [105, 0, failures]]) {
                const of = { model_id: String(id) };
                assert.strictEqual(value('model_opened_total', of), opened, String(id));
                // One that comes when it is wanted no more is the archive's alone.
                const told = value('model_refused_total', of);
                assert.ok(told <= no && told >= Math.min(no, 1), `${id}: ${told} of ${no}`);
            }
            await backend.close();
            await worker.stop();
            assert.ok(!worker.log.includes('canary'), worker.log);

            // What was fetched is not fetched again by the next worker.
            shop.asked.length = 0;
            worker = await Worker.start('--model-cache', cache);
            backend = await Backend.connect(worker);
            wants(101, '/a.mpta');
            await backend.next('a detection', red(101));
            assert.deepStrictEqual(shop.asked, [['/a.mpta', true]]);
            ({ value } = metrics(worker));
            assert.strictEqual(value('archives_unchanged_total'), 1);
            assert.strictEqual(value('archives_fetched_total'), 0);
            await backend.close();
            await worker.stop();
            await shop.close();
            await camera.end();
        }),

    async 'SIGTERM waits for a backend to take what was seen, a second one does not'() {
        const camera = await Camera.start(0);
        const ends = { 'a backend': async (worker) => {
            const backend = await Backend.connect(worker);
            await backend.next('a patch', (m) => m.type === 'patchSession' && m.sessionId === 5);
            assert.strictEqual((await deadline(backend.closed, 'the close')).code, 1001);
        }, 'a second signal': async (worker) => {
            worker.signal('SIGINT');
        } };
        for (const [name, end] of Object.entries(ends)) {
            const worker = await Worker.start('--model', archive, '--drain-timeout', '600s');
            const backend = await Backend.connect(worker);
            backend.send(session('hall', 5));
            backend.send(list(subscription('hall;door', { rtspUrl: camera.url() })));
            await backend.next('a detection', is_detection('hall;door'));
            await backend.close();
            await until('a detection that waits', () =>
                metrics(worker).value('detections_queued') > 0);
            worker.signal('SIGTERM');
            await worker.says(/draining queued=[1-9]/);
            assert.strictEqual(worker.curl('/readyz').status, 503);
            await end(worker);
            assert.strictEqual(await deadline(worker.ended, 'the end by ' + name), 0, worker.log);
            assert.ok(!worker.log.includes('detections-lost'), worker.log);
        }
        await camera.end();
    },

    async 'models come from the hosts that are named, and from no other'() {
        const shop = await Shop.start({ '/a.mpta': fs.readFileSync(archive) });
        const with_hosts = (work, ...hosts) => fetching(shop, work,
            ...hosts.flatMap((host) => ['--model-host', host]));
        await with_hosts(async ({ worker }) => {
            await worker.says(/model-refused .*the host is not among those/);
            assert.match(worker.camera('hall;door').model_state.last_error,
                /; nothing is detected here until one opens$/);
            assert.deepStrictEqual(shop.asked, []);
        }, 'models.example', '.0.0.1.example');
        await with_hosts(({ backend }) => backend.next('a detection', is_detection('hall;door')),
            'models.example', '127.0.0.1');
        await shop.close();
    },

    async 'a server of models leads to a private network only if that is allowed'() {
        const inner = await Shop.start({ '/a.mpta': fs.readFileSync(archive) });
        const shop = await Shop.start({ '/a.mpta': new URL(inner.url('/a.mpta')) });
        await fetching(shop, async ({ worker }) => {
            await worker.says(/model-refused .*private network.*--model-redirect-private/);
            assert.deepStrictEqual(inner.asked, []);
        });
        await fetching(shop, ({ backend }) => backend.next('a detection',
            is_detection('hall;door')), '--model-redirect-private');
        await shop.close();
        await inner.close();
    },

    async 'a file that is no archive is a model that cannot run'() {
        const scene = await Scene.start('--model', clip);
        scene.backend.send(list(scene.subscription('hall;door')));
        await scene.worker.says(/model-refused .*zip/);
        assert.strictEqual(scene.model('hall;door').state, 'failed');
        await scene.end();
    },

    async 'what cannot be tried is named'() {
        const cases = [[['--try', clip], /--model/], [['--out', 'x'], /--try/],
            [['--try', clip, '--model', clip], /zip/], [['--model', '/nonexistent'], /nonexistent/],
            [['--try', clip, '--model', archive, '--engine', 'onnxruntime', '--engine-library',
                '/dev/null'], /make deps-onnxruntime/]];
        refuses(cases);
    },
};

run_all(tests);
