// baton-detector --try on a clip of which every rectangle of every frame is known.
//   node try.js BATON-DETECTOR FFMPEG FOLDER-OF-MODELS
'use strict';
const assert = require('assert');
const { spawnSync, execFileSync } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');

const [program, ffmpeg, models] = process.argv.slice(2);
const archive = path.join(models, 'rectangles.mpta');
const DEADLINE_MS = 120000;
const FPS = 15, FRAMES = 180, WIDTH = 640, HEIGHT = 360;

// Colour, size, where it is in frame n, first and last frame in which it is. All is even, so that
// nothing is rounded where colours have half the resolution; no two of them touch.
const rectangles = [
    ['red', 120, 60, (n) => 10 + 4 * n, () => 20, 0, 124],
    ['red', 40, 40, (n) => 560 - 4 * n, () => 300, 20, 130],
    ['green', 60, 100, () => 300, (n) => 2 * n, 0, 130],
    ['green', 24, 24, (n) => 220 + 2 * n, () => 250, 90, 165],
    ['blue', 50, 30, (n) => 20 + 2 * n, () => 200, 40, 165],
    ['blue', 30, 80, () => 600, (n) => 2 * n - 20, 60, 140],
];
// What the model must not take for any of them.
const others = [['yellow', 60, 60, 440, 120], ['white', 40, 40, 80, 110],
    ['magenta', 30, 30, 200, 150]];

function truth(shift = 0) {
    return Array.from({ length: FRAMES }, (_, n) => rectangles
        .filter(([, , , , , from, to]) => n >= from && n <= to)
        .map(([name, w, h, x, y]) => ({ class: name, box: [x(n) + shift, y(n), w, h] })));
}

function make_clip(file) {
    const inputs = [`color=c=0x404040:s=${WIDTH}x${HEIGHT}:r=${FPS}:d=${FRAMES / FPS}`];
    const steps = [];
    const paint = (colour, w, h, x, y, enable) => {
        const at = inputs.length;
        inputs.push(`color=c=${colour}:s=${w}x${h}:r=${FPS}:d=${FRAMES / FPS}`);
        steps.push(`[${at === 1 ? 0 : 's' + (at - 1)}][${at}]` +
            `overlay=x='${x}':y='${y}':enable='${enable}'[s${at}]`);
    };
    const line = (f) => `${f(0)}+${f(1) - f(0)}*n`;
    for (const [name, w, h, x, y, from, to] of rectangles) {
        paint(name === 'green' ? 'lime' : name, w, h, line(x), line(y), `between(n,${from},${to})`);
    }
    for (const [name, w, h, x, y] of others) paint(name, w, h, x, y, '1');
    execFileSync(ffmpeg, ['-nostdin', '-v', 'error', '-y',
        ...inputs.flatMap((input) => ['-f', 'lavfi', '-i', input]),
        '-filter_complex', `${steps.join(';')};[s${inputs.length - 1}]null`,
        '-an', '-c:v', 'libx264', '-preset', 'veryfast', '-g', '30', '-pix_fmt', 'yuv420p',
        '-threads', '1', '-bitexact', file], { stdio: ['ignore', 'inherit', 'inherit'] });
}

function iou([ax, ay, aw, ah], [bx, by, bw, bh]) {
    const w = Math.min(ax + aw, bx + bw) - Math.max(ax, bx);
    const h = Math.min(ay + ah, by + bh) - Math.max(ay, by);
    const both = w > 0 && h > 0 ? w * h : 0;
    return both / (aw * ah + bw * bh - both);
}

// Each rectangle of the truth is found by one object at most, of its class, at IoU 0.5 or above.
function score(wanted, found) {
    let hits = 0, overlap = 0, wanted_count = 0, found_count = 0;
    wanted.forEach((boxes, n) => {
        const left = [...(found.get(n) || [])];
        wanted_count += boxes.length;
        found_count += left.length;
        for (const one of boxes) {
            const fits = left.filter((other) => other.class === one.class)
                .map((other) => [iou(one.box, other.box), other]).sort((a, b) => b[0] - a[0])[0];
            if (fits && fits[0] >= 0.5) {
                hits++;
                overlap += fits[0];
                left.splice(left.indexOf(fits[1]), 1);
            }
        }
    });
    return { precision: hits / found_count, recall: hits / wanted_count, iou: overlap / hits,
        wanted_count, found_count };
}

function run(words, options) {
    return spawnSync(program, words, { encoding: 'utf8', timeout: DEADLINE_MS,
        stdio: ['ignore', 'pipe', 'pipe'], ...options });
}

const lines_of = (file) => fs.readFileSync(file, 'utf8').split('\n').filter(Boolean)
    .map((line) => JSON.parse(line));

const tests = {
    'every rectangle is found, and nothing else'(folder, clip) {
        const out = path.join(folder, 'out');
        const done = run(['--try', clip, '--model', archive, '--out', out]);
        assert.strictEqual(done.status, 0, done.stderr);
        assert.strictEqual(done.stdout, '', 'with a folder, nothing goes to standard output');
        const objects = lines_of(path.join(out, 'objects.jsonl'));
        const found = new Map();
        for (const object of objects) {
            const n = Math.round(object.seconds * FPS);
            assert.strictEqual(object.frame, n + 1, 'no frame is left out');
            found.set(n, [...(found.get(n) || []), object]);
        }
        const result = score(truth(), found);
        console.log(`precision ${result.precision.toFixed(4)}, recall ${result.recall.toFixed(4)}` +
            ` at IoU 0.5, mean IoU ${result.iou.toFixed(3)}: ${result.wanted_count} rectangles in` +
            ` ${FRAMES} frames, ${result.found_count} objects`);
        assert.ok(result.precision >= 0.99 && result.recall >= 0.99);
        // The score can tell: were all of them elsewhere, it would be low.
        const other = score(truth(40), found);
        assert.ok(other.precision < 0.5 && other.recall < 0.5);

        const detections = lines_of(path.join(out, 'detections.jsonl'));
        assert.deepStrictEqual(detections.map((line) => line.detection.bodyType).sort(),
            rectangles.map(([name]) => name).sort(), 'each is reported once');
        assert.match(done.stderr, new RegExp(`${FRAMES} frames, ${objects.length} objects in ` +
            `them, ${detections.length} detections`));
    },
};

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'detector-try-'));
try {
    const clip = path.join(folder, 'clip.mp4');
    make_clip(clip);
    for (const [name, test] of Object.entries(tests)) {
        test(folder, clip);
        console.log('ok', name);
    }
} finally {
    fs.rmSync(folder, { recursive: true });
}
