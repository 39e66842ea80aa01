// A model that runs is looked after where it came from: what is new there comes to work, what is
// bad, refused or without an ETag changes nothing.
//   node recheck.js BATON-DETECTOR CURL RTSP-SERVER CLIP.h264 ARCHIVE
'use strict';
const assert = require('assert');
const fs = require('fs');
const os = require('os');
const path = require('path');
const { deadline, processes, Backend, list, subscription, run_all } = require('../detector/tools');
const { Camera, Worker } = require('../detector/life');
const { metrics } = require('../detector/exposition');
const { Shop, alter } = require('./shop');

const [archive] = process.argv.slice(6);
const is_brand = (brand) => (m) => m.type === 'imageDetection' &&
    m.data.detection.carBrand === brand;

// A worker, its camera and a shop with /a.mpta (red is a Ferrari); renamed: red is a Fiat.
async function with_all(options, work) {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'detector-'));
    const first = fs.readFileSync(archive);
    const all = { folder, first,
        renamed: fs.readFileSync(path.join(path.dirname(archive), 'renamed.mpta')),
        camera: await Camera.start(0), shop: await Shop.start({ '/a.mpta': first }) };
    all.shop.tags['/a.mpta'] = '"1"';
    try {
        all.start = async () => {
            all.worker = await Worker.start('--model-cache', path.join(folder, 'cache'), ...options);
            all.backend = await Backend.connect(all.worker);
        };
        await all.start();
        all.wants = (...signatures) => all.backend.send(list(...signatures.map((one, i) =>
            subscription(`hall;${i}`, { rtspUrl: all.camera.url(), modelId: 7, modelName: 'Cars',
                modelUrl: all.shop.url('/a.mpta', one) }))));
        all.sees = (brand) => {
            all.backend.messages.length = 0;
            return all.backend.next(`a ${brand}`, is_brand(brand));
        };
        all.asks = (more, name = '/a.mpta') => deadline(all.shop.asks(name, more), 'a question');
        await work(all);
        await all.backend.close();
        await all.worker.stop();
        assert.ok(!all.worker.log.includes('canary'), all.worker.log);
    } finally {
        fs.rmSync(folder, { recursive: true });
        await all.shop.close();
        await all.camera.end();
    }
}

const often = ['--model-recheck', '20ms'];
const state = (worker) => worker.camera('hall;0').model_state;

const tests = {
    'a file that was replaced comes to work, and is sent once': () => with_all(often, async (all) => {
        all.wants('canary', 'canary');
        await all.sees('Ferrari');
        const { pid } = state(all.worker);
        await all.asks(5); // the same is there
        assert.strictEqual(all.shop.sent['/a.mpta'], 1);
        assert.strictEqual(state(all.worker).pid, pid);
        all.shop.put('/a.mpta', all.renamed, '"2"');
        const message = await all.sees('Fiat');
        assert.strictEqual(message.data.modelId, 7);
        await all.asks(5);
        assert.strictEqual(all.shop.sent['/a.mpta'], 2);
        all.shop.put('/a.mpta', all.renamed, '"3"'); // as it was, by another name
        await all.asks(5);
        assert.strictEqual(all.shop.sent['/a.mpta'], 3);
        const { value } = metrics(all.worker);
        assert.strictEqual(value('model_opened_total', { model_id: '7' }), 4);
        assert.strictEqual(value('archives_fetched_total'), 3);
        assert.ok(value('archives_rechecks_total') >= 15);
        assert.strictEqual(value('archives_recheck_failures_total'), 0);
        assert.strictEqual(value('archives_fetch_failures_total'), 0);
        assert.ok(!/model-re(fused|check)/.test(all.worker.log), all.worker.log);
    }),

    'what is bad is told, and not sent again until its ETag is another': () => with_all(often,
        async (all) => {
            const { shop, worker } = all;
            const torn = path.join(all.folder, 'torn.mpta');
            alter(archive, torn, 'models/rectangles.onnx', 'old[:len(old) // 2]');
            all.wants('canary');
            await all.sees('Ferrari');
            const { pid } = state(worker);
            const bad = [['"bad"', Buffer.from('no archive'), /zip/],
                ['"torn"', fs.readFileSync(torn), /rectangles\.onnx.*; model 7 \(Cars\) goes on$/]];
            let sent = 1;
            for (const [tag, bytes, why] of bad) {
                worker.log = '';
                shop.put('/a.mpta', bytes, tag);
                await worker.says(/model-refused .*model-id=7 .*running=Cars/);
                await all.asks(5);
                assert.strictEqual(shop.sent['/a.mpta'], ++sent, tag);
                assert.strictEqual(worker.log.match(/model-refused/g).length, 1, worker.log);
                const model = state(worker);
                assert.strictEqual(model.state, 'running');
                assert.strictEqual(model.pid, pid);
                assert.match(model.last_error, why);
                await all.sees('Ferrari');
            }
            shop.put('/a.mpta', all.first, '"1"'); // as before: there is nothing to complain of
            while (state(worker).last_error !== undefined) await all.asks(1);
            assert.strictEqual(state(worker).pid, pid);
            shop.put('/a.mpta', all.renamed, '"2"');
            await all.sees('Fiat');
            const { value } = metrics(worker);
            assert.strictEqual(value('model_refused_total', { model_id: '7' }), 2);
            assert.strictEqual(value('archives_refused_total'), 1);
            assert.strictEqual(value('archives_recheck_failures_total'), 0);
        }),

    'a signature that is too old is one line in the log, and a fresh one mends it': () => with_all(often,
        async (all) => {
            const { shop, worker } = all;
            all.wants('canary', 'canary');
            await all.sees('Ferrari');
            const { pid } = state(worker);
            shop.statuses['/a.mpta'] = 403;
            await all.asks(4);
            await all.sees('Ferrari');
            const model = state(worker);
            assert.strictEqual(model.state, 'running');
            assert.strictEqual(model.pid, pid);
            assert.strictEqual(model.last_error, undefined);
            let { value } = metrics(worker);
            assert.ok(value('archives_recheck_failures_total') >= 3);
            assert.strictEqual(value('archives_fetch_failures_total'), 0);
            assert.strictEqual(value('archives_from_before_total'), 0);
            assert.strictEqual(value('model_refused_total', { model_id: '7' }), 0);
            assert.strictEqual(worker.log.match(/model-recheck-failed/g).length, 1, worker.log);
            assert.ok(!/model-(refused|from-before)/.test(worker.log), worker.log);
            delete shop.statuses['/a.mpta'];
            shop.put('/a.mpta', all.renamed, '"2"');
            all.wants('canary2', 'canary2');
            await all.sees('Fiat');
            assert.ok(shop.queries.includes('signature=canary2'));
            // The next worker has it from the disk, and opens it once, however often it is refused.
            await all.backend.close();
            await all.worker.stop();
            shop.statuses['/a.mpta'] = 403;
            await all.start();
            const pids = new Set();
            for (let i = 0; i < 20 || !/model-running/.test(all.worker.log); i++) {
                all.wants(`canary${i}`);
                await all.asks(1);
                processes(all.worker.child.pid, 'baton-model').forEach((pid) => pids.add(pid));
            }
            assert.strictEqual(pids.size, 1);
        }),

    'SIGHUP reads how often': async () => {
        const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'detector-'));
        const file = path.join(folder, 'detector.yaml');
        try {
            fs.writeFileSync(file, 'model-recheck: 0s\n');
            await with_all(['--config', file], async (all) => {
                all.wants('canary');
                await all.sees('Ferrari');
                assert.strictEqual(all.shop.count('/a.mpta'), 1);
                fs.writeFileSync(file, 'model-recheck: 20ms\n');
                all.worker.signal('SIGHUP');
                await all.worker.says(/reloaded .*model-recheck=20ms/);
                await all.asks(3);
                fs.writeFileSync(file, 'model-recheck: 0\n');
                all.worker.signal('SIGHUP');
                await all.worker.says(/reloaded .*model-recheck=0/);
                assert.ok(!all.worker.log.includes('restart-needed'), all.worker.log);
            });
        } finally {
            fs.rmSync(folder, { recursive: true });
        }
    },
};

run_all(tests);
