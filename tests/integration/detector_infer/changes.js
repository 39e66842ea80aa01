// What changes while a subscription runs takes effect where it should, and touches nothing else: stage,
// crop, camera.
//   node changes.js BATON-DETECTOR CURL RTSP-SERVER CLIP.h264 ARCHIVE
'use strict';
const assert = require('assert');
const path = require('path');
const { list, subscription, stage, online, in_folder, run_all } = require('../detector/tools');
const { Scene } = require('../detector/life');
const { alter } = require('./shop');

const archive = process.argv[6];
const FRAMES = 3; // enough to see something, if there is anything to see

class Changes extends Scene {
    // All is read that the worker has said: a report comes that was made from now on.
    async caught_up() {
        this.marks = (this.marks || 1000) + 1;
        const marker = { rtspUrl: '', snapshotUrl: 'http://127.0.0.1:1/', modelId: this.marks };
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
        await this.backend.until('frames', () => this.model(name).inferred >= inferred + FRAMES);
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
}

const all = ['blue', 'green', 'red'];

run_all({
    'a stage of the pipeline runs in the progression stages that it names': () => in_folder(
        async (folder) => {
            const fueling = path.join(folder, 'fueling.mpta');
            alter(archive, fueling, 'pipeline.json',
                'old.replace(b\'"fields"\', b\'"when": ["car_fueling"], "fields"\', 1)');
            const scene = await Changes.start('--model', fueling);
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
        }),

    async 'another crop is looked at, by the same models in the same stream'() {
        const scene = await Changes.start('--model', archive);
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
        const scene = await Changes.start('--model', archive);
        const image = (name, query = '') => scene.worker.curl(`/camera/${name}/image${query}`);
        const has_boxes = (name) => !/etag: "[^"]*-0"/.test(image(name, '?boxes=1').head);
        scene.wants(scene.subscription('hall;door'), scene.subscription('hall;gate'));
        await scene.backend.report(online(2));
        await scene.backend.until('boxes', () => has_boxes('hall;door') && has_boxes('hall;gate'));
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
