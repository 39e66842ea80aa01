// baton-detector --try on a clip of which every rectangle of every frame is known.
//   node try.js BATON-DETECTOR FFMPEG FOLDER-OF-MODELS ENGINE...
'use strict';
const assert = require('assert');
const { spawn, spawnSync, execFileSync } = require('child_process');
const { once } = require('events');
const fs = require('fs');
const os = require('os');
const path = require('path');

const { score } = require('./score');
const { DEADLINE_MS, deadline, until, program, Stand, processes, run_all } =
    require('../detector/tools');

const [ffmpeg, models, ...engines] = process.argv.slice(3);
const archive = path.join(models, 'rectangles.mpta');
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'detector-try-'));
const clip = path.join(folder, 'clip.mp4');
process.on('exit', () => fs.rmSync(folder, { recursive: true }));
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

function run(words, options, of = program) {
    return spawnSync(of, words, { encoding: 'utf8', timeout: DEADLINE_MS,
        stdio: ['ignore', 'pipe', 'pipe'], ...options });
}

const lines_of = (file) => fs.readFileSync(file, 'utf8').split('\n').filter(Boolean)
    .map((line) => JSON.parse(line));

// A try of the clip so often that there is time to interfere: several seconds of work.
function start(words, environment) {
    const longer = path.join(folder, 'longer.mp4');
    execFileSync(ffmpeg, ['-nostdin', '-v', 'error', '-y', '-stream_loop', '15', '-i', clip, '-c',
        'copy', longer]);
    const one = new Stand(spawn(program, ['--try', longer, '--model', archive, ...words],
        { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...environment } }));
    one.stdout = '';
    one.child.stdout.on('data', (data) => { one.stdout += data; });
    process.on('exit', () => one.signal('SIGKILL'));
    return one;
}

// What is drawn, by the text of the page: the number of each frame, its boxes and their labels.
function pictures(file) {
    const numbers = (text, ...names) => names.map((name) =>
        Number(new RegExp(` ${name}="([-.\\d]+)"`).exec(text)[1]));
    return fs.readFileSync(file, 'utf8').split('<svg ').slice(1).map((text) => {
        const labels = text.split('<text').slice(1).map((label) => /^[^>]*>([^<]*)/.exec(label)[1]);
        return { frame: Number(/^(\d+): /.exec(labels.pop())[1]), labels,
            jpeg: Buffer.from(/base64,([^"]*)/.exec(text)[1], 'base64'),
            boxes: text.split('<rect').slice(1).map((rect) => ({
                box: numbers(rect, 'x', 'y', 'width', 'height'),
                is_thick: numbers(rect, 'stroke-width')[0] > 2 })) };
    });
}

make_clip(clip);
run_all({
    async 'every rectangle is found, and nothing else'() {
        const out = path.join(folder, 'out');
        // What spares a fleet its frames is not for a try.
        const done = run(['--try', clip, '--model', archive, '--out', out, '--camera-fps', '1',
            '--motion', '900']);
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

    ...Object.fromEntries(engines.map((engine) => [
        `an archive names the layout of its model's outputs, for ${engine}`, async () => {
            for (const name of ['boxes', 'yolov5', 'yolov10', 'ssd', 'retinaface']) {
                const done = run(['--try', clip, '--model', path.join(models, name + '.mpta'),
                    '--engine', engine]);
                if (engine === 'onnxruntime' && /make deps-onnxruntime/.test(done.stderr)) return;
                assert.strictEqual(done.status, 0, done.stderr);
                const found = new Map();
                for (const object of done.stdout.trim().split('\n').map((line) => JSON.parse(line))) {
                    found.set(object.frame - 1, [...(found.get(object.frame - 1) || []), object]);
                }
                const wanted = truth().map((boxes) => boxes.filter((box) =>
                    name !== 'retinaface' || box.class === 'red')); // it knows no other
                const { precision, recall } = score(wanted, found);
                assert.ok(precision >= 0.99 && recall >= 0.99, `${name}: ${precision}, ${recall}`);
            }
        }])),

    async 'a clip that says how it is turned is tried upright'() {
        const turned = path.join(folder, 'turned.mp4'), upright = path.join(folder, 'upright.mp4');
        execFileSync(ffmpeg, ['-nostdin', '-v', 'error', '-i', clip, '-c', 'copy',
            '-metadata:s:v:0', 'rotate=90', turned]);
        execFileSync(ffmpeg, ['-nostdin', '-v', 'error', '-i', turned, '-c:v', 'libx264', '-qp', '0',
            '-pix_fmt', 'yuv420p', upright]); // as ffmpeg shows it
        const [one, other] = [turned, upright].map((file) => {
            const out = file + '.out';
            const done = run(['--try', file, '--model', archive, '--out', out]);
            assert.strictEqual(done.status, 0, done.stderr);
            return lines_of(path.join(out, 'objects.jsonl'));
        });
        assert.ok(one.some(({ box }) => box[1] + box[3] > HEIGHT), 'it is higher than wide');
        assert.deepStrictEqual(one, other);
    },

    async 'pictures show where they are, at even distances and where one is reported'() {
        const out = path.join(folder, 'out');
        const reported = new Set(lines_of(path.join(out, 'detections.jsonl'))
            .map((line) => line.frame));
        const shown = pictures(path.join(out, 'seen.html'));
        const even = Array.from({ length: 16 }, (_, i) => Math.max(1, Math.ceil(FRAMES / 16 * i)));
        assert.deepStrictEqual(shown.map((one) => one.frame),
            [...new Set([...even, ...reported])].sort((a, b) => a - b));
        const found = new Map();
        shown.forEach(({ frame, labels, boxes }) => {
            labels.forEach((label) => assert.match(label, /^(red|green|blue) 0\.\d\d #\d+$/));
            found.set(frame - 1, boxes.map(({ box }, k) => ({ class: labels[k].split(' ')[0], box })));
            assert.strictEqual(boxes.some((box) => box.is_thick), reported.has(frame));
        });
        const wanted = truth().map((boxes, n) => found.has(n) ? boxes : []);
        const { precision, recall } = score(wanted, found);
        assert.ok(precision >= 0.99 && recall >= 0.99);
        // Below a box there is what the clip shows there.
        const jpeg = path.join(folder, 'picture.jpg');
        fs.writeFileSync(jpeg, shown[6].jpeg);
        const pixels = execFileSync(ffmpeg, ['-v', 'error', '-i', jpeg, '-f', 'rawvideo',
            '-pix_fmt', 'rgb24', '-'], { maxBuffer: 1 << 26 });
        assert.strictEqual(pixels.length, WIDTH * HEIGHT * 3);
        for (const { class: name, box: [x, y, w, h] } of truth()[shown[6].frame - 1]) {
            const at = (Math.floor(y + h / 2) * WIDTH + Math.floor(x + w / 2)) * 3;
            const colour = [...pixels.subarray(at, at + 3)];
            assert.strictEqual(colour.indexOf(Math.max(...colour)),
                ['red', 'green', 'blue'].indexOf(name));
        }
    },

    async 'without a folder the detections go to standard output, and nothing is left'() {
        const own = fs.mkdtempSync(path.join(folder, 'own-'));
        const done = run(['--try', clip, '--model', archive], { env: { ...process.env, TMPDIR: own } });
        assert.strictEqual(done.status, 0, done.stderr);
        assert.strictEqual(done.stdout, fs.readFileSync(path.join(folder, 'out',
            'detections.jsonl'), 'utf8'), 'time is the clip\'s, not ours');
        assert.deepStrictEqual(fs.readdirSync(own), []);
        // Progress is a line for each tenth.
        const told = done.stderr.split('\n').filter((line) => /^\d+ %/.test(line));
        assert.deepStrictEqual(told.map((line) => line.split(' frames')[0]),
            Array.from({ length: 9 }, (_, i) => `${10 * (i + 1)} %: ${18 * (i + 1)}`));
    },

    async 'a clip that is torn is tried as far as it goes, and that is told'() {
        const whole = path.join(folder, 'whole.mp4'), torn = path.join(folder, 'torn.mp4');
        execFileSync(ffmpeg, ['-nostdin', '-v', 'error', '-i', clip, '-c', 'copy', '-movflags',
            '+faststart', whole]);
        fs.writeFileSync(torn, fs.readFileSync(whole).subarray(0, fs.statSync(whole).size / 2));
        const done = run(['--try', torn, '--model', archive]);
        assert.strictEqual(done.status, 0, done.stderr);
        assert.match(done.stderr, /torn\.mp4: ended at \d+\.\d s, but says that it lasts 12\.0 s/);
    },

    async 'what cannot be tried is named, and the way out'() {
        const at = (name, bytes) => {
            fs.writeFileSync(path.join(folder, name), bytes);
            return path.join(folder, name);
        };
        const [tune, pipe, whole] = ['tune.wav', 'pipe', 'whole.mkv'].map((name) =>
            path.join(folder, name));
        execFileSync(ffmpeg, ['-nostdin', '-v', 'error', '-i', clip, '-c', 'copy', whole]);
        execFileSync('mkfifo', [pipe]);
        execFileSync(ffmpeg, ['-nostdin', '-v', 'error', '-f', 'lavfi', '-i', 'sine=d=1', tune]);
        const cases = [
            [at('notes.txt', 'no clip'), archive, [], /notes\.txt: broke off after 0 .* 'ffprobe .*notes\.txt'/],
            [at('empty.mp4', ''), archive, [], /empty\.mp4: broke off after 0/],
            [at('head.mkv', fs.readFileSync(whole).subarray(0, 300)), archive, [],
                /open: the clip is torn, or cannot be read/],
            [tune, archive, [], /tune\.wav: broke off after 0/],
            [folder, archive, [], /: Is a directory; 'ffprobe/],
            [path.join(folder, 'none.mp4'), archive, [], /none\.mp4: No such file/],
            [clip, path.join(folder, 'none.mpta'), [], /none\.mpta: No such file/],
            [clip, at('torn.mpta', fs.readFileSync(archive).subarray(0, 2000)), [],
                /torn\.mpta: .*make it again/],
            [clip, folder, [], /an archive is a file, and this is none/],
            [clip, pipe, [], /an archive is a file, and this is none/],
            [clip, at('large.mpta', Buffer.alloc(2 << 20)), ['--model-max-mib', '1'],
                /2097152 bytes; at most 1048576 are allowed/],
            [clip, archive, ['--out', '/nonexistent/out'], /nonexistent\/out: No such file/],
            [clip, path.join(models, 'product.mpta'), ['--engine', 'opencv'],
                /ONNX Runtime may \('make deps-onnxruntime'.*check_model|OpenCV: .*not found/],
        ];
        for (const [of, model, more, pattern] of cases) {
            const done = run(['--try', of, '--model', model, ...more]);
            assert.ok([1, 64].includes(done.status), done.stderr); // 64: a file is missing
            assert.strictEqual(done.stdout, '');
            assert.match(done.stderr, pattern);
            assert.strictEqual(done.stderr.trim().split('\n').length, 1, done.stderr);
        }
    },

    async 'results that nobody takes end the try with one line'() {
        const done = run(['-c', 'exec "$@" >/dev/full', 'sh', program, '--try', clip, '--model',
            archive], {}, 'sh');
        assert.strictEqual(done.status, 74, done.stderr);
        assert.match(done.stderr, /the results: No space left on device\n$/);
        assert.doesNotMatch(done.stderr, /standard output|written to/);
        const one = start([], {});
        one.child.stdout.destroy(); // as `head` does
        assert.strictEqual(await one.ended, 74, one.log);
        assert.match(one.log, /the results: Broken pipe\n$/);
    },

    async 'of many frames with detections the first fifty are drawn'() {
        const out = path.join(folder, 'many');
        const done = run(['--try', clip, '--model', path.join(models, 'product.mpta'), '--out', out]);
        if (done.status !== 0) { // without a tracker: a detection in every frame
            assert.match(done.stderr, /make deps-onnxruntime/);
            return;
        }
        const shown = pictures(path.join(out, 'seen.html')).map((one) => one.frame);
        assert.deepStrictEqual(shown.slice(0, 50), Array.from({ length: 50 }, (_, i) => i + 1));
        assert.ok(shown.length > 50 && shown.length < 66, 'and those at even distances');
    },

    async 'a try that is stopped keeps what it has seen, and leaves nothing else'() {
        const own = fs.mkdtempSync(path.join(folder, 'own-'));
        const out = path.join(own, 'out');
        const one = start(['--out', out], { TMPDIR: own });
        await one.says(/10 %/);
        one.signal('SIGINT');
        assert.strictEqual(await one.ended, 1, one.log);
        assert.match(one.log, /stopped before its end/);
        const [, objects] = /(\d+) objects in them/.exec(one.log);
        assert.strictEqual(lines_of(path.join(out, 'objects.jsonl')).length, Number(objects));
        assert.ok(pictures(path.join(out, 'seen.html')).length > 0);
        assert.deepStrictEqual(fs.readdirSync(own), ['out']);
    },

    async 'a try that waits for another process can be stopped'() {
        const cache = path.join(process.env.XDG_CACHE_HOME, 'baton-detector', 'archives');
        const holder = spawn('flock', [cache, 'sh', '-c', 'echo; exec cat'],
            { stdio: ['pipe', 'pipe', 'inherit'] });
        await deadline(once(holder.stdout, 'data'), 'the lock');
        const one = start([], {});
        const fds = `/proc/${one.child.pid}/fd/`;
        await until('the try to open the cache', () => fs.readdirSync(fds).some((fd) => {
            try {
                return fs.readlinkSync(fds + fd) === cache;
            } catch { // it has been closed meanwhile
                return false;
            }
        }));
        one.signal('SIGINT');
        assert.strictEqual(await deadline(one.ended, 'the end'), 'SIGINT', one.log);
        holder.stdin.end();
    },

    async 'a decoder that dies ends the try: the clip does not begin again'() {
        const one = start([], {});
        await one.says(/10 %/);
        process.kill(processes(one.child.pid)[0], 'SIGKILL');
        assert.strictEqual(await one.ended, 1, one.log);
        assert.match(one.log, /broke off after \d+ frames: .*killed by signal 9/);
        const frames = one.stdout.trim().split('\n').map((line) => JSON.parse(line).frame);
        assert.ok(frames.every((frame, i) => i === 0 || frame >= frames[i - 1]));
    },
});
