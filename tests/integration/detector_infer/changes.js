// What changes while a subscription runs takes effect where it should, and touches nothing else: stage,
// crop, camera.
//   node changes.js BATON-DETECTOR CURL RTSP-SERVER CLIP.h264 ARCHIVE
'use strict';
const assert = require('assert');
const fs = require('fs');
const os = require('os');
const path = require('path');
const { DEADLINE_MS, Backend, list, subscription, stage, online, run_all } = require('../detector/tools');
const { Camera, Worker } = require('../detector/life');
const { alter } = require('./shop');

const archive = process.argv[6];
const FRAMES = 3; // enough to see something, if there is anything to see

class Scene {
    static async start(model = archive) {
        const scene = new Scene();
        scene.camera = await Camera.start(0);
        scene.worker = await Worker.start('--model', model);
        scene.backend = await Backend.connect(scene.worker);
        scene.marks = 1000;
        return scene;
    }
    subscription(name, more) { return subscription(name, { rtspUrl: this.camera.url(), ...more }); }
    model(name) { return this.worker.camera(name).model_state; }
    async until(what, holds) {
        for (const until = Date.now() + DEADLINE_MS; !holds();) {
            assert.ok(Date.now() < until, 'waited too long for ' + what);
            await this.backend.report();
        }
    }
    // All is read that the worker has said: a report comes that was made from now on.
    async caught_up() {
        const marker = { rtspUrl: '', snapshotUrl: 'http://127.0.0.1:1/', modelId: ++this.marks };
        this.backend.send(list(...this.wanted, subscription('mark;er', marker)));
        await this.backend.report((all) => all.some((one) => one.modelId === this.marks));
    }
    wants(...subscriptions) {
        this.wanted = subscriptions;
        this.backend.send(list(...subscriptions));
    }
    // Until the model has seen some more frames of it.
    async frames(name) {
        const { inferred } = this.model(name);
        await this.until('frames', () => this.model(name).inferred >= inferred + FRAMES);
    }
    // What is found in some frames that come from now on.
    async found(name) {
        await this.caught_up(); // the worker has read the change,
        await this.frames(name); // the frames before it are through,
        await this.caught_up(); // and what was said of them has been read here
        const found = [];
        const collect = (data) => {
            const message = JSON.parse(data);
            if (message.subscriptionIdentifier === name) found.push(message.data.detection.class);
        };
        this.backend.socket.on('message', collect);
        await this.frames(name);
        await this.caught_up();
        this.backend.socket.removeListener('message', collect);
        return [...new Set(found)].sort();
    }
    async end() {
        await this.backend.close();
        await this.worker.stop();
        await this.camera.end();
    }
}

const all = ['blue', 'green', 'red'];

run_all({
    async 'a stage of the pipeline runs in the progression stages that it names'() {
        const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'detector-'));
        try {
            const fueling = path.join(folder, 'fueling.mpta');
            alter(archive, fueling, 'pipeline.json',
                'old.replace(b\'"fields"\', b\'"when": ["car_fueling"], "fields"\', 1)');
            const scene = await Scene.start(fueling);
            scene.wants(scene.subscription('hall;door'), scene.subscription('yard;door'));
            await scene.backend.report(online(2));
            const steps = [[null, null, [], []], ['car_fueling', null, all, []],
                ['car_fueling', 'welcome', all, []], ['car_postpayment', 'car_fueling', [], all],
                [null, 'car_fueling', [], all]];
            for (const [hall, yard, in_hall, in_yard] of steps) {
                scene.backend.send(stage('hall', hall));
                scene.backend.send(stage('yard', yard));
                assert.deepStrictEqual(await scene.found('hall;door'), in_hall, String(hall));
                assert.deepStrictEqual(await scene.found('yard;door'), in_yard, String(yard));
            }
            await scene.end();
        } finally {
            fs.rmSync(folder, { recursive: true });
        }
    },

    async 'another crop is looked at, by the same models in the same stream'() {
        const scene = await Scene.start();
        const crop = (cropY2) => ({ cropX1: 0, cropY1: 0, cropX2: 320, cropY2 });
        const wants = (more) => scene.wants(scene.subscription('hall;door', more),
            scene.subscription('hall;gate'));
        wants({});
        await scene.backend.report(online(2));
        assert.deepStrictEqual(await scene.found('hall;door'), all);
        const { pid } = scene.model('hall;door');
        const opened = scene.camera.count('play cam'); // more than once if it stalled at the start
        for (const [more, expected] of [[crop(70), ['red']], [crop(240), all], [crop(10), []],
            [{}, all]]) {
            wants(more);
            assert.deepStrictEqual(await scene.found('hall;door'), expected, JSON.stringify(more));
        }
        assert.deepStrictEqual(await scene.found('hall;gate'), all);
        assert.strictEqual(scene.model('hall;door').pid, pid);
        assert.strictEqual(scene.camera.count('play cam'), opened,
            JSON.stringify(scene.worker.camera('hall;door').stream));
        await scene.end();
    },

    async 'nothing of a camera is shown that is another one now, and no boxes when it is away'() {
        const scene = await Scene.start();
        const image = (name, query = '') => scene.worker.curl(`/camera/${name}/image${query}`);
        const has_boxes = (name) => !/etag: "[^"]*-0"/.test(image(name, '?boxes=1').head);
        scene.wants(scene.subscription('hall;door'), scene.subscription('hall;gate'));
        await scene.backend.report(online(2));
        await scene.until('boxes', () => has_boxes('hall;door') && has_boxes('hall;gate'));
        scene.wants(scene.subscription('hall;door', { rtspUrl: 'rtsp://127.0.0.1:1/' }),
            scene.subscription('hall;gate'));
        await scene.backend.report((connections) => !connections[0].online && connections[1].online);
        assert.strictEqual(image('hall;door').status, 404);
        assert.strictEqual(image('hall;gate').status, 200);
        await scene.camera.end();
        await scene.backend.report((connections) => connections.every((one) => !one.online));
        assert.strictEqual(image('hall;gate').status, 200, 'the newest there is');
        assert.ok(!has_boxes('hall;gate'), 'nobody knows what is there now');
        await scene.end();
    },
});
