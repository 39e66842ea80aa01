// A camera that streams and the program baton-detector, for the tests that need both. The words of the
// command line: BATON-DETECTOR CURL RTSP-SERVER CLIP
'use strict';
const { spawn } = require('child_process');
const { once } = require('events');
const fs = require('fs');
const os = require('os');
const path = require('path');
const assert = require('assert');
const { program, deadline, Stand, Backend, subscription } = require('./tools');

const [rtsp_server, clip] = process.argv.slice(4);
const cache = fs.mkdtempSync(path.join(os.tmpdir(), 'detector-cache-'));
const children = [];
process.on('exit', () => { // a test that fails leaves nobody behind
    children.forEach((child) => child.kill('SIGKILL'));
    fs.rmSync(cache, { recursive: true });
});

class Camera {
    static async start(port, names = ['cam'], ...words) {
        const camera = new Camera();
        camera.said = '';
        camera.child = spawn(rtsp_server, [String(port), 'auth=eye:canary', ...words,
            ...names.map((name) => `${name}=${clip}`)],
            { stdio: ['pipe', 'pipe', 'inherit'] });
        children.push(camera.child);
        camera.ended = new Promise((resolve) => camera.child.on('close', resolve));
        await deadline(new Promise((resolve) => camera.child.stdout.on('data', (data) => {
            camera.said += data;
            if (/ready \d+\n/.test(camera.said)) resolve();
        })), 'the camera');
        camera.port = Number(camera.said.match(/ready (\d+)/)[1]);
        return camera;
    }
    count(line) { return this.said.split('\n').filter((one) => one === line).length; }
    // Waits until it has said so: it may come after the pictures.
    async says(line) {
        while (this.count(line) === 0) await deadline(once(this.child.stdout, 'data'), line);
    }
    async end() {
        this.child.kill('SIGKILL');
        await deadline(this.ended, 'the end of the camera');
    }
    url(name = 'cam') { return `rtsp://eye:canary@127.0.0.1:${this.port}/${name}`; }
}

class Worker extends Stand {
    static async start(...options) {
        // Few descriptors are what a service manager gives it, and more what it may have.
        const worker = new Worker(spawn('/bin/sh', ['-c', 'ulimit -Sn 256; exec "$@"', 'sh', program, '--port', '0', '--host',
            '127.0.0.1', '--report-interval', '100ms', '--backoff-min', '50ms', '--backoff-max', '200ms', '--log-level', 'info',
            '--model-cache', cache, ...options], { stdio: ['ignore', 'inherit', 'pipe'] }));
        children.push(worker.child);
        await worker.says(/listening port=(\d+)/);
        worker.port = Number(worker.log.match(/listening port=(\d+)/)[1]);
        return worker;
    }
    camera(name) {
        const status = JSON.parse(this.curl('/status').body);
        return status.cameras.find((one) => one.subscriptionIdentifier === name);
    }
}

// A camera, and a worker with its backend.
class Scene {
    static async start(...options) {
        const scene = new this();
        scene.camera = await Camera.start(0);
        scene.worker = await Worker.start(...options);
        scene.backend = await Backend.connect(scene.worker);
        return scene;
    }
    subscription(name, more) { return subscription(name, { rtspUrl: this.camera.url(), ...more }); }
    model(name) { return this.worker.camera(name).model_state; }
    async end() {
        await this.backend.close();
        await this.worker.stop();
        await this.camera.end();
        assert.ok(!this.worker.log.includes('canary'), this.worker.log);
    }
}

module.exports = { Camera, Worker, Scene };
