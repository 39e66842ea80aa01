// The archive of examples/model is made and tried as its README says, and gives what that shows.
//   node example.js BATON-DETECTOR PYTHON EXAMPLE ENGINE...
'use strict';
const assert = require('assert');
const { spawnSync, execFileSync } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');

const [program, python, example, ...engines] = process.argv.slice(2);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'detector-example-'));
const made = path.join(folder, 'made');
const readme = fs.readFileSync(path.join(example, 'README.md'), 'utf8');

const json_lines = (text) => text.split('\n').filter((line) => line.startsWith('{"frame"'))
    .map((line) => JSON.parse(line));

// A lamp's brightness depends a little on the encoder of the clip, and its edges may.
function compare(seen, wanted) {
    assert.strictEqual(seen.length, wanted.length);
    seen.forEach((line, i) => {
        const { box, detection: { brightness, ...fields }, ...rest } = line;
        const { box: box_, detection: { brightness: brightness_, ...fields_ }, ...rest_ } = wanted[i];
        assert.deepStrictEqual({ ...rest, ...fields, score: 0 }, { ...rest_, ...fields_, score: 0 });
        assert.ok(box.every((value, k) => Math.abs(value - box_[k]) < 2), String(box));
        assert.ok(Math.abs(brightness - brightness_) < 0.05, String(brightness));
        assert.ok(rest.score > 0.95, String(rest.score));
    });
}

// Precision and recall as the README shows them; and a score that is bad is told as bad.
function check_score(out) {
    const score = (truth, file) => spawnSync(python, ['-B', path.join(example, 'score.py'), truth,
        file], { encoding: 'utf8', timeout: 60000 });
    const truth = path.join(made, 'clip.truth.jsonl');
    const objects = path.join(out, 'objects.jsonl');
    const good = score(truth, objects);
    assert.strictEqual(good.status, 0, good.stdout + good.stderr);
    assert.ok(readme.includes(good.stdout), good.stdout);
    // Another class, a box elsewhere, one twice, one of 105 missing twice over.
    const lines = json_lines(fs.readFileSync(objects, 'utf8'));
    const changes = [
        (line) => ({ ...line, class: line.class === 'red' ? 'blue' : line.class }),
        ({ box: [x, ...rest], ...line }) => ({ ...line, box: [x + 20, ...rest] }),
        (line) => line.frame === 3 ? null : line.frame === 50 ? null : line,
    ];
    const changed = changes.map((change) => lines.map(change).filter(Boolean));
    changed.push([...lines, ...lines]);
    for (const some of changed) {
        const file = path.join(out, 'changed.jsonl');
        fs.writeFileSync(file, some.map((line) => JSON.stringify(line) + '\n').join(''));
        assert.strictEqual(score(truth, file).status, 1, JSON.stringify(some[0]));
    }
    // What the model is not sure of is counted, and once more without.
    const unsure = path.join(out, 'unsure.jsonl');
    fs.writeFileSync(unsure, lines.map((line, i) => JSON.stringify(i % 5 ? line :
        { ...line, unsure: true }) + '\n').join(''));
    assert.match(score(truth, unsure).stdout,
        /all +105 +105 +105 +1\.0000 +1\.0000\nall sure +105 +84 +84 +1\.0000 +0\.8000/);
    const torn = path.join(out, 'torn.jsonl');
    fs.writeFileSync(torn, '{"frame":1,"class":"red"}\n');
    assert.match(score(truth, torn).stderr, /torn\.jsonl, line 1: .*box/);
}

let code = 0;
try {
    execFileSync(python, ['-B', path.join(example, 'make.py'), made]);
    execFileSync(path.join(example, 'clip.sh'), [path.join(made, 'clip.mp4')]);
    for (const engine of engines) {
        const out = path.join(made, engine);
        const done = spawnSync(program, ['--try', path.join(made, 'clip.mp4'), '--model',
            path.join(made, 'lamps.mpta'), '--out', out, '--engine', engine],
        { encoding: 'utf8', timeout: 60000, stdio: ['ignore', 'pipe', 'pipe'] });
        if (/make deps-onnxruntime/.test(done.stderr)) {
            console.log('left out:', engine, 'is not found');
            continue;
        }
        assert.strictEqual(done.status, 0, done.stderr);
        assert.ok(done.stderr.endsWith(`written to ${out}: detections.jsonl, objects.jsonl, ` +
            'seen.html\n'), done.stderr);
        const wanted = json_lines(readme);
        assert.strictEqual(wanted.length, 3, 'the README shows what comes out');
        compare(json_lines(fs.readFileSync(path.join(out, 'detections.jsonl'), 'utf8')), wanted);
        // 30 frames of red, 45 of green, 30 of blue.
        const objects = json_lines(fs.readFileSync(path.join(out, 'objects.jsonl'), 'utf8'));
        const count = (name) => objects.filter((line) => line.class === name).length;
        assert.deepStrictEqual(['red', 'green', 'blue'].map(count), [30, 45, 30]);
        check_score(out);
        console.log('ok', engine);
    }
    // The README's short pipeline.json is one: the archive lacks its model, and nothing else.
    const short = /```json\n([^]*?)```/.exec(readme)[1];
    fs.writeFileSync(path.join(folder, 'pipeline.json'), short);
    execFileSync(python, ['-c', 'import sys, zipfile\n' +
        'with zipfile.ZipFile(sys.argv[1], "w") as file: file.write(sys.argv[2], "pipeline.json")',
    path.join(folder, 'best.mpta'), path.join(folder, 'pipeline.json')]);
    const done = spawnSync(program, ['--try', path.join(made, 'clip.mp4'), '--model',
        path.join(folder, 'best.mpta')], { encoding: 'utf8', timeout: 60000 });
    assert.match(done.stderr, /"best\.onnx" is not in the archive/);
    console.log('ok the short one');
} catch (error) {
    console.log(error);
    code = 1;
} finally {
    fs.rmSync(folder, { recursive: true });
}
process.exit(code);
