// Good archives with models in them that are torn, something else, or of no use to any engine: the
// error names file, reason and way out.
//   node bad_models.js BATON-DETECTOR CURL RTSP-SERVER CLIP.h264 ARCHIVE CLIP.mp4 ENGINE ...
'use strict';
const assert = require('assert');
const { spawnSync } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const { program, run_all } = require('../detector/tools');
const { alter } = require('./shop');

const [archive, clip, ...engines] = process.argv.slice(6);

// What is done to the archive's files, in Python, and what the error must name beside the file.
const bad = {
    garbage: ['models/colours.onnx', 'bytes(i * 89 % 251 for i in range(558))', /pars/],
    truncated: ['models/rectangles.onnx', 'old[:len(old) // 2]', /pars/],
    'one byte less': ['models/rectangles.onnx', 'old[:-1]', /pars/],
    'a web page': ['models/rectangles.onnx', 'b"<html>403 Forbidden</html>"', /pars/],
    empty: ['models/stripes.onnx', 'b""', /0 bytes/],
    'an operator that nobody has': ['models/rectangles.onnx', 'old.replace(b"Conv", b"Cnov")', /Cnov/],
    'a model of other classes': ['pipeline.json', 'old.replace(b\'"green", "blue"]\', b\'"green"]\', 1)',
        /output \[1, 7, 3840\] does not fit 2 classes/, 'models/rectangles.onnx',
        /known are yolov5 .*, ssd .*, tensor any numbers/],
};
const file_of = (name) => bad[name][3] || bad[name][0];
const advice_of = (name) => bad[name][4] ||
    /onnx\.checker\.check_model.*baton-detector --try CLIP --model ARCHIVE.*--engine/;

// Paths of the archives, by name, in a folder that is removed by who asked.
function make_all(folder) {
    const paths = {};
    for (const [name, [file, expression]] of Object.entries(bad)) {
        paths[name] = path.join(folder, name.replace(/ /g, '-') + '.mpta');
        alter(archive, paths[name], file, expression);
    }
    return paths;
}

async function in_a_folder(work) {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'detector-'));
    try {
        await work(folder);
    } finally {
        fs.rmSync(folder, { recursive: true });
    }
}

const tests = {
    'each engine names file, reason and way out': () => in_a_folder(async (folder) => {
        for (const [name, file] of Object.entries(make_all(folder))) {
            for (const engine of engines) {
                const done = spawnSync(program, ['--try', clip, '--model', file, '--engine', engine],
                    { encoding: 'utf8', timeout: 60000 });
                const told = `${engine}, ${name}: ${done.stderr}`;
                if (engine === 'onnxruntime' && /make deps-onnxruntime/.test(done.stderr)) {
                    console.log('skipped:', engine, 'is not there');
                    break;
                }
                assert.strictEqual(done.status, 1, told);
                assert.match(done.stderr, bad[name][2], told);
                assert.match(done.stderr, advice_of(name), told);
                assert.ok(done.stderr.includes(path.basename(file)), told);
                assert.ok(done.stderr.includes(`(${file_of(name)})`), told);
                assert.strictEqual(done.stdout, '');
            }
        }
    }),
};

run_all(tests);
