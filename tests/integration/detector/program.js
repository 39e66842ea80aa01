// The program baton-detector with a camera that streams, driven by a backend of other make.
//   node program.js BATON-DETECTOR CURL RTSP-SERVER CLIP
'use strict';
const assert = require('assert');
const fs = require('fs');
const net = require('net');
const path = require('path');
const { spawn, spawnSync } = require('child_process');
const { once } = require('events');
const { program, deadline, until, Viewer, Backend, list, subscription, session, online, certificate,
    in_folder, refuses, run_all } = require('./tools');
const { Camera, Worker, Scene } = require('./life');

const tests = {
    async 'a stream is seen, lost and found again'() {
        const scene = await Scene.start();
        const { camera, worker, backend } = scene;
        const two = scene.subscription('hall;gate');
        backend.send(list(scene.subscription('hall;door'), two));
        await backend.report(online(2));
        const image = worker.curl('/camera/hall;door/image');
        assert.strictEqual(image.status, 200);
        assert.strictEqual(image.body.readUInt16BE(0), 0xffd8);
        const viewer = (await Viewer.open(worker, '/camera/hall;door/stream?width=160')).read();
        const parts = [];
        for (let i = 0; i < 5; i++) parts.push(await viewer.part());
        assert.ok(parts.slice(1).every((part, i) => !part.equals(parts[i])), 'rectangles move');
        viewer.close();
        // Where the machine is so busy that it was given up as stalled, once more for each time.
        await until('opened once', () =>
            camera.count('play cam') === 1 + worker.camera('hall;door').stream.restarts);
        const stream = worker.camera('hall;door').stream;
        assert.strictEqual(stream.codec, 'h264');
        assert.strictEqual(stream.subscribers, 2);
        assert.ok(stream.shown > 0);
        let { fps } = stream;
        await until('frames a second', () => {
            ({ fps } = worker.camera('hall;door').stream);
            return fps.decoded > 0;
        });
        assert.ok(fps.received >= fps.decoded && fps.decoded >= fps.dropped, JSON.stringify(fps));
        assert.ok(fps.shown > 0, JSON.stringify(fps));
        await camera.end();
        await backend.report((all) => all.length === 2 && all.every((c) => !c.online));
        scene.camera = await Camera.start(camera.port);
        await backend.report(online(2));
        assert.ok(worker.camera('hall;gate').stream.restarts > 0);
        backend.send(list(two));
        await backend.report((all) => all.length === 1);
        assert.strictEqual(worker.curl('/camera/hall;door/image').status, 404);
        backend.send(list());
        await backend.report((all) => all.length === 0);
        await scene.end();
    },

    async 'a process that the kernel does not let go keeps no camera off, and no worker from its end'() {
        const ice = `/sys/fs/cgroup/freezer/baton-test-${process.pid}`;
        try {
            fs.mkdirSync(ice); // what stands in this freezer cannot be killed, as if it waited for a disk
        } catch (error) {
            console.log('skipped: a process that cannot be killed takes root and the first freezer');
            return;
        }
        const thaw = spawn('sh', ['-c', 'cat; echo THAWED >freezer.state; until rmdir "$PWD"; do sleep 0.1; done'],
            { cwd: ice, detached: true, stdio: ['pipe', 'ignore', 'ignore'] }); // if this test is killed, too
        const scene = await Scene.start('--stall-timeout', '1s');
        const { camera, worker, backend } = scene;
        const tasks = `/proc/${worker.child.pid}/task/${worker.child.pid}`;
        try {
            backend.send(list(scene.subscription('hall;door')));
            await backend.report(online(1));
            const [stuck] = fs.readFileSync(`${tasks}/children`, 'utf8').split(' ');
            fs.writeFileSync(ice + '/freezer.state', 'FROZEN');
            fs.writeFileSync(ice + '/cgroup.procs', stuck);
            await worker.says(/camera-offline .*does not answer, and is killed/);
            await backend.report(online(1));
            assert.ok(fs.readFileSync(`${tasks}/children`, 'utf8').split(' ').includes(stuck));
            await backend.close();
            worker.signal('SIGTERM'); // its errors are open for as long as the other one is there
            assert.deepStrictEqual(await deadline(once(worker.child, 'exit'), 'the end'), [0, null]);
        } finally {
            thaw.stdin.end();
            await deadline(once(thaw, 'exit'), 'the folder to be empty');
        }
        await camera.end();
    },

    async 'a refused password is tried seldom, says so, and another one is tried at once'() {
        const scene = await Scene.start('--backoff-max', '60s');
        const { camera, worker, backend } = scene;
        const wants = (url) => backend.send(list(subscription('hall;door', { rtspUrl: url }),
            subscription('hall;gate', { rtspUrl: camera.url('nothing') }),
            subscription('hall;none', { rtspUrl: camera.url().replace('eye:canary@', '') })));
        const stream = (name) => worker.camera(name).stream;
        wants(camera.url().replace('canary', 'canary2'));
        await worker.says(/camera-offline .*hall;door.*refuses name or password.*; next try in \d+ s/);
        await worker.says(/camera-offline .*hall;none.*refuses name or password.*; the URL has none/);
        await until('other failures to be tried again', () => stream('hall;gate').restarts >= 5);
        assert.ok(stream('hall;door').restarts <= 1);
        assert.match(stream('hall;door').last_error,
            /^open: the camera refuses name or password, .*MD5; next try in \d+ s, or at once with another name or password$/);
        wants(camera.url());
        await backend.report((all) => all.some((one) => one.online));
        assert.strictEqual(stream('hall;door').last_error, undefined);
        await scene.end();
    },

    async 'forty cameras of one list are online at once'() {
        const names = Array.from({ length: 40 }, (_, i) => 'cam' + i);
        const camera = await Camera.start(0, names);
        const worker = await Worker.start();
        const backend = await Backend.watching(worker, ...names.map((name) =>
            subscription('hall;' + name, { rtspUrl: camera.url(name) })));
        for (const name of names) {
            const stream = () => worker.camera('hall;' + name).stream;
            assert.ok(stream().decoded > 0, name);
            // What either of them says may come later than what it says of.
            await until(name + ' to have played no more than once, and once for each restart',
                () => camera.count('play ' + name) <= 1 + stream().restarts);
        }
        await backend.close();
        await worker.stop();
        await camera.end();
    },

    'SIGHUP reads the configuration anew and keeps what runs': () => in_folder(async (folder) => {
        const file = path.join(folder, 'detector.yaml');
        fs.writeFileSync(file, 'camera-fps: 5\n');
        const scene = await Scene.start('--config', file);
        const { camera, worker, backend } = scene;
        backend.send(list(scene.subscription('a;1')));
        await backend.report(online(1));
        fs.writeFileSync(file, 'camera-fps: 0\n');
        worker.signal('SIGHUP');
        await worker.says(/reloaded .*log-level=info .*camera-fps=0/);
        fs.writeFileSync(file, 'camera-fps: many\n');
        worker.signal('SIGHUP');
        await worker.says(/reload-refused .*camera-fps/);
        for (const [wrong, why] of [['tls-cert: /nonexistent', 'tls-key'], ['stall-timeout: 0s',
            'at least 1ms'], ['token-file: /nonexistent', 'token'], ['out: seen', 'needs --try']]) {
            fs.writeFileSync(file, `camera-fps: 7\n${wrong}\n`);
            worker.signal('SIGHUP');
            await worker.says(new RegExp(`reload-refused .*${why}`));
        }
        assert.ok(!worker.log.includes('camera-fps=7'), worker.log);
        fs.writeFileSync(file, 'camera-fps: 0\ndrain-timeout: 9s\nreport-interval: 100ms\n' +
            'queue: 7\nmodel-cache-mib: 8\nmotion: 5\n');
        worker.signal('SIGHUP');
        await worker.says(/reloaded .*report-interval=100ms queue=7 drain-timeout=9s/);
        await worker.says(/reloaded .*model-cache-mib=8/);
        await worker.says(/restart-needed changed=motion$/m);
        await deadline((async () => { // of 2 s each it would be too late for these
            for (let reports = 0; reports < 50; reports++) await backend.report(online(1));
        })(), 'fifty reports');
        // A slow machine may lose the stream by itself.
        const lost = worker.log.match(/ camera-offline /g) || [];
        assert.strictEqual(camera.count('play cam'), 1 + lost.length);
        await scene.end();
    }),

    async 'SIGTERM ends it when nothing waits, and its backends are told'() {
        const worker = await Worker.start('--drain-timeout', '600s');
        const backend = await Backend.connect(worker);
        backend.send(list(subscription('a;1')));
        backend.send(session('a', 1));
        await backend.report((all) => all.length === 1);
        const waits = await Backend.connect(worker);
        worker.signal('SIGTERM');
        for (const one of [backend, waits]) {
            assert.deepStrictEqual(await deadline(one.closed, 'the close'),
                { code: 1001, reason: 'this worker ends' });
        }
        assert.strictEqual(await deadline(worker.ended, 'the end'), 0, worker.log);
    },

    async 'it listens at its address and at no other'() {
        const reached = (host, port) => new Promise((resolve) => {
            const socket = net.connect(port, host, () => socket.destroy(resolve(true)));
            socket.on('error', () => resolve(false));
        });
        const worker = await Worker.start(); // at 127.0.0.1
        assert.ok(!worker.log.includes('open-to-all'), worker.log);
        assert.ok(await reached('127.0.0.1', worker.port));
        assert.ok(!await reached('127.0.0.2', worker.port), 'all of 127/8 is this machine');
        refuses([[['--host', '127.0.0.1', '--port', String(worker.port)],
            /--host 127\.0\.0\.1 port \d+: cannot listen there: .*port free/]], [74]);
        refuses([[['--host', '127.0.0.2', '--port', String(worker.port), '--model', '/nonexistent'],
            /nonexistent/]], [64]);
        await worker.stop();
        const named = await Worker.start('--host', 'localhost');
        assert.ok(await reached('127.0.0.1', named.port));
        assert.ok(!await reached('127.0.0.2', named.port));
        await named.stop();
        const open = await Worker.start('--host', '0.0.0.0');
        assert.ok(open.log.includes('open-to-all'), open.log);
        assert.ok(await reached('127.0.0.2', open.port), 'it can tell');
        await open.stop();
        refuses([[['--host', '192.0.2.1', '--port', '0'], /--host 192\.0\.2\.1 port 0: cannot/],
            [['--host', 'nobody.invalid', '--port', '0'], /--host nobody\.invalid port 0: cannot/]],
        [74]);
    },

    async 'it answers to names that it knows'() {
        const worker = await Worker.start('--http-host', 'a.example', '--http-host', 'cams.example');
        const as = (host) => worker.curl('/status', '-H', 'Host: ' + host).status;
        for (const host of ['127.0.0.1', 'localhost:80', 'worker', 'a.example', 'CAMS.example:8000']) {
            assert.strictEqual(as(host), 200, host);
        }
        assert.strictEqual(as('evil.example'), 403);
        const backend = await Backend.connect(worker, { headers: { Host: 'evil.example' } });
        await backend.report(); // no page can do that: it would have an Origin
        await backend.close();
        await worker.stop();
    },

    'a certificate or key that is none is named': () => in_folder(async (folder) => {
        const { cert, key } = certificate(folder);
        const other = fs.mkdtempSync(path.join(folder, 'other-'));
        const words = (c, k) => ['--host', '127.0.0.1', '--port', '0', '--tls-cert', c,
            '--tls-key', k];
        refuses([[words('/nonexistent.pem', key), /--tls-cert \/nonexistent\.pem: .*No such file/],
            [words(cert, '/nonexistent.pem'), /--tls-key \/nonexistent\.pem: .*No such file/],
            [words(key, key), /--tls-cert .*key\.pem: .*no start line/],
            [words(cert, certificate(other).key), /--tls-key .*key\.pem: .*mismatch/]], [64]);
    }),

    async 'what the specification asks for is there without an option'() {
        const { stdout } = spawnSync(program, ['--help'], { encoding: 'utf8' });
        const preset = (name) =>
            new RegExp(`--${name} [^(]*\\(default:\\s+([^)]*)\\)`).exec(stdout)[1];
        assert.strictEqual(preset('port'), '8000');
        assert.strictEqual(preset('report-interval'), '2s'); // who is silent for 10 s counts as dead
    },

    async 'what cannot be printed is an error'() {
        const full = fs.openSync('/dev/full', 'w');
        for (const word of ['--help', '--version']) {
            const { status, stderr } = spawnSync(program, [word],
                { encoding: 'utf8', stdio: ['ignore', full, 'pipe'] });
            assert.strictEqual(status, 74, stderr);
            assert.match(stderr, /standard output: No space left/);
        }
        fs.closeSync(full);
    },

    async 'it does not begin without its threads'() {
        const tasks = `/sys/fs/cgroup/pids/baton-test-${process.pid}`;
        try {
            fs.mkdirSync(tasks);
        } catch (error) {
            console.log('skipped: a limit of tasks takes root and the first controller of cgroups');
            return;
        }
        fs.writeFileSync(tasks + '/pids.max', '20');
        const { status, stderr } = spawnSync('/bin/sh', ['-c',
            `echo $$ > ${tasks}/cgroup.procs; exec "$@"`, 'sh', program, '--port', '0'],
        { encoding: 'utf8', timeout: 60000 });
        fs.rmdirSync(tasks);
        assert.strictEqual(status, 69, stderr);
        assert.match(stderr, /only \d+ of 40 threads can be started: .*TasksMax/);
    },

    async 'a wrong option is named, and the way out'() {
        const cases = [[['--camera-fps', '1000'], /camera-fps/], [['--tls-cert', 'x'], /tls-key/],
            [['--token-file', '/nonexistent'], /nonexistent/], [['clip.mp4'], /clip\.mp4/],
            [['--backoff-min', '9s', '--backoff-max', '8s'], /backoff-max/],
            [['--model-host', 'https://models.example/'], /--model-host https:.*: must be one host/],
            [['--model-host', 'a.example,b.example'], /a\.example,b\.example: must be one host/],
            [['--model-host', ''], /--model-host/],
            [['--report-interval', '99ms'], /--report-interval: '99ms': must be at least 100ms/],
            [['--report-interval', '2m'], /--report-interval: '2m': must be at most 60000ms/]];
        refuses(cases);
        refuses([[['--engine-library', '/nonexistent.so'],
            /--engine-library \/nonexistent\.so: No such file/],
        [['--model-ca', '/nonexistent'], /--model-ca \/nonexistent: No such file/],
        [['--hardware', 'foo'], /--hardware foo: FFmpeg knows no such.*: .*vaapi/]], [64]);
    },
};

run_all(tests);
