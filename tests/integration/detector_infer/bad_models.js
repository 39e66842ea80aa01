// Good archives with models in them that are torn, something else, or of no use to any engine: the
// error names file, reason and way out.
//   node bad_models.js BATON-DETECTOR CURL RTSP-SERVER CLIP.h264 ARCHIVE CLIP.mp4 ENGINE ...
'use strict';
const assert = require('assert');
const { spawnSync } = require('child_process');
const path = require('path');
const { program, in_folder, run_all } = require('../detector/tools');
const { alter } = require('./shop');

const [archive, clip, ...engines] = process.argv.slice(6);

// What is done to the archive's files, in Python, and what the error must name beside the file.
const bad = {
    garbage: ['models/colours.onnx', 'bytes(i * 89 % 251 for i in range(558))', /pars/],
    truncated: ['models/rectangles.onnx', 'old[:len(old) // 2]', /pars/],
    'one byte less': ['models/rectangles.onnx', 'old[:-1]', /pars/],
    'a web page': ['models/rectangles.onnx', 'b"<html>403 Forbidden</html>"', /pars/],
    empty: ['models/stripes.onnx', 'b""', /0 bytes/, 'models/stripes.onnx', /must be 1 to 1073741824/],
    'a bomb': ['models/stripes.onnx', 'bytes(17 << 20)', /unpacks to more/, 'models/stripes.onnx', /2 GiB/],
    'an operator that nobody has': ['models/rectangles.onnx', 'old.replace(b"Conv", b"Cnov")', /Cnov/],
    'a model of other classes': ['pipeline.json', 'old.replace(b\'"green", "blue"]\', b\'"green"]\', 1)',
        /output \[1, 7, 3840\] does not fit 2 classes/, 'models/rectangles.onnx',
        /known are yolov5 .*, ssd .*, tensor any numbers/],
};
const advice = /onnx\.checker\.check_model.*baton-detector --try CLIP --model ARCHIVE.*--engine/;

// False: the engine is not there.
function check(engine, name, folder) {
    const [altered, expression, reason, file = altered, way_out = advice] = bad[name];
    const bad_archive = path.join(folder, name.replace(/ /g, '-') + '.mpta');
    alter(archive, bad_archive, altered, expression);
    const done = spawnSync(program, ['--try', clip, '--model', bad_archive, '--engine', engine],
        { encoding: 'utf8', timeout: 60000 });
    const told = `${engine}, ${name}: ${done.stderr}`;
    if (engine === 'onnxruntime' && /make deps-onnxruntime/.test(done.stderr)) return false;
    assert.strictEqual(done.status, 1, told);
    assert.match(done.stderr, reason, told);
    assert.match(done.stderr, way_out, told);
    assert.ok(done.stderr.includes(path.basename(bad_archive)), told);
    assert.ok(done.stderr.includes(`(${file})`), told);
    assert.strictEqual(done.stdout, '');
    return true;
}

run_all(Object.fromEntries(engines.map((engine) => [`${engine} names file, reason and way out`,
    () => in_folder(async (folder) => {
        if (!Object.keys(bad).every((name) => check(engine, name, folder))) {
            console.log('skipped:', engine, 'is not there');
        }
    })])));
