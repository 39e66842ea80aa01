// Precision and recall of what the program baton-detector reports of a camera that streams: every frame
// that the model saw, against what the clip is known to show.
//   node stream.js BATON-DETECTOR CURL RTSP-SERVER CLIP.h264 ARCHIVE
'use strict';
const assert = require('assert');
const { Backend, list, subscription, run_all } = require('../detector/tools');
const { Camera, Worker } = require('../detector/life');
const { score } = require('./score');

const archive = process.argv[6];
const FPS = 15, FRAMES = 45, WANTED = 100;

// tests/detector/clips.sh
const truth = (n) => [
    { class: 'red', box: [10 + n * 60 / FPS, 20, 60, 40] },
    { class: 'green', box: [140, 80 + n * 30 / FPS, 40, 50] },
    { class: 'blue', box: [280 - n * 70 / FPS, 190, 30, 30] },
];

// When each picture was sent, in milliseconds as the worker's clock has them.
function sent(camera) {
    const offset = Date.now() - Number(process.hrtime.bigint()) / 1e6;
    return [...camera.said.matchAll(/^picture \S+ (\d+) (\d+)$/gm)]
        .map(([, number, time]) => ({ number: Number(number), at: Number(time) / 1e6 + offset }));
}

// The clip's frames that one of that time may be: a picture is known to be whole when the next one
// begins, and both clocks are read late, on a busy machine by up to a second.
function candidates(pictures, at) {
    const next = pictures.findIndex((picture) => picture.at > at + 5);
    const last = next < 0 ? pictures.length - 1 : next - 1;
    return pictures.slice(Math.max(0, last - FPS), last + 1).map((picture) => picture.number);
}

const tests = {
    async 'what is reported of a stream is what it shows'() {
        const camera = await Camera.start(0, ['cam'], 'tell=pictures');
        const worker = await Worker.start('--model', archive);
        const backend = await Backend.connect(worker);
        const seen = []; // [timestamp, objects] of each frame
        const take = (message) => {
            if (message.type !== 'imageDetection') return false;
            const { class: name, x, y, width, height } = message.data.detection;
            let [timestamp, objects] = seen.at(-1) || [];
            // A frame has one of each class. Two may be of one millisecond, if their reader was late.
            if (timestamp !== message.timestamp || objects.some((one) => one.class === name)) {
                seen.push([message.timestamp, objects = []]);
            }
            objects.push({ class: name, box: [x, y, width, height] });
            return seen.length > WANTED;
        };
        backend.send(list(subscription('hall;door', { rtspUrl: camera.url() })));
        await backend.next('enough detections', take);
        const { inferred, failures } = worker.camera('hall;door').model_state;
        backend.send({ type: 'requestState' }); // what was sent before its answer has come then
        await backend.next('a report', (m) => { take(m); return m.type === 'stateReport'; });
        backend.send(list());
        await backend.next('the end', (m) => { take(m); return m.type === 'stateReport' &&
            m.cameraConnections.length === 0; });

        assert.strictEqual(failures, 0);
        assert.ok(seen.length >= inferred, `${inferred} frames were looked at, ${seen.length} reported`);
        const pictures = sent(camera);
        const of_frame = seen.map(([timestamp, objects]) => {
            const fits = candidates(pictures, Date.parse(timestamp)).map((n) => [n,
                score([truth(n)], new Map([[0, objects]])).iou || 0]);
            return [fits.sort((a, b) => b[1] - a[1])[0][0], objects];
        });
        const result = score(of_frame.map(([n]) => truth(n)),
            new Map(of_frame.map(([, objects], i) => [i, objects])));
        console.log(`precision ${result.precision.toFixed(4)}, recall ${result.recall.toFixed(4)}` +
            ` at IoU 0.5, mean IoU ${result.iou.toFixed(3)}: ${result.wanted_count} rectangles in` +
            ` ${seen.length} frames, ${result.found_count} objects`);
        assert.ok(result.precision >= 0.99 && result.recall >= 0.99);
        assert.ok(result.iou > 0.9);
        // The score can tell: half a clip later all of them are elsewhere.
        const other = score(of_frame.map(([n]) => truth((n + FRAMES / 2) % FRAMES)),
            new Map(of_frame.map(([, objects], i) => [i, objects])));
        assert.ok(other.precision < 0.5 && other.recall < 0.5);
        await backend.close();
        await worker.stop();
        await camera.end();
    },
};

run_all(tests);
