// Every message that the specification shows, from the table that the unit tests have, spoken with a
// client of other make: each command is sent and has its effect, and each message of the worker comes
// as it is shown, field by field.   node examples.js STAND CURL EXAMPLES.H
'use strict';
const assert = require('assert');
const fs = require('fs');
const { until, Stand, Backend, list, session, run_all } = require('./tools');

// What C says as "…" "…" JSON would say, too.
const table = fs.readFileSync(process.argv[4], 'utf8');
const examples = [...table.matchAll(/\{"(§[^"]+)", (true|false),\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\}/g)]
    .map(([, section, is_from_worker, literals]) => ({ section,
        is_from_worker: is_from_worker === 'true',
        message: JSON.parse(literals.match(/"(?:[^"\\]|\\.)*"/g).map(JSON.parse).join('')) }));
assert.strictEqual(examples.length, table.split('{"§').length - 1, 'none is left out');

const status = (stand) => JSON.parse(stand.curl('/status').body);

// As stateReport shows a subscription.
const shown = ({ subscriptionIdentifier, modelId, modelName, ...more }) => ({ subscriptionIdentifier,
    modelId, modelName, online: true, ...Object.fromEntries(['cropX1', 'cropY1', 'cropX2', 'cropY2']
        .filter((key) => key in more).map((key) => [key, more[key]])) });

// A report with exactly these connections, online.
const report = (backend, connections) => backend.report((all) =>
    JSON.stringify(all) === JSON.stringify(connections));

const effects = {
    async setSubscriptionList(stand, backend, message) {
        await report(backend, message.subscriptions.map(shown));
    },
    async requestState() {}, // asked after each
    async patchSessionResult() {},
    async setSessionId(stand, backend, { payload }) {
        for (const camera of status(stand).cameras) {
            assert.strictEqual(camera.sessionId, camera.subscriptionIdentifier.startsWith(
                payload.displayIdentifier + ';') ? payload.sessionId : null);
        }
    },
    async setProgressionStage(stand, backend, { payload }) {
        for (const camera of status(stand).cameras) {
            assert.strictEqual(camera.progressionStage, camera.subscriptionIdentifier.startsWith(
                payload.displayIdentifier + ';') ? payload.progressionStage : null);
        }
    },
};

// What is found is up to the model, when it was is up to the camera.
function assert_is_as_shown(message, example) {
    const shape = JSON.parse(JSON.stringify(example));
    for (const key of ['cpuUsage', 'memoryUsage', 'gpuUsage', 'gpuMemoryUsage']) {
        if (!(key in shape)) continue;
        assert.ok(message[key] >= 0 && message[key] <= 100, key);
        shape[key] = message[key];
    }
    if (shape.timestamp) {
        assert.match(message.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
        shape.timestamp = message.timestamp;
    }
    for (const key of ['detection', 'currentCar']) {
        if (!shape.data || !(key in shape.data)) continue;
        assert.strictEqual(message.data[key].carBrand, 'Honda');
        shape.data[key] = message.data[key];
    }
    assert.strictEqual(JSON.stringify(message), JSON.stringify(shape), 'the same, in this order');
}

const camera = (connection) => ({ rtspUrl: 'rtsp://192.0.2.1/1', modelUrl: 'http://192.0.2.1/m.mpta',
    ...connection });

const occasions = {
    async stateReport(stand, backend, example) {
        backend.send(list(...example.cameraConnections.map(camera)));
        return report(backend, example.cameraConnections);
    },
    async imageDetection(stand, backend, { subscriptionIdentifier, sessionId, data }) {
        const [display] = subscriptionIdentifier.split(';');
        backend.send(list(camera({ subscriptionIdentifier, modelId: data.modelId,
            modelName: data.modelName })));
        backend.send(session(display, sessionId === undefined ? null : sessionId));
        backend.send({ type: 'requestState' });
        await backend.report((all) => all.length === 1);
        await backend.report(); // the session is known then
        stand.signal('SIGUSR1');
        return backend.next('a detection', (m) => m.type === 'imageDetection');
    },
    async patchSession(stand, backend, { sessionId }) {
        backend.send(list(camera({ subscriptionIdentifier: 'd;c', modelId: 1, modelName: 'M' })));
        backend.send(session('d', sessionId));
        await backend.report((all) => all.length === 1);
        await backend.close();
        await until('nobody', () => !status(stand).hasBackend);
        stand.signal('SIGUSR1');
        await until('a detection', () => status(stand).counters.detectionsQueued > 0);
        const next = await Backend.connect(stand);
        const patch = await next.next('a patch', (m) => m.type === 'patchSession');
        await next.close();
        return patch;
    },
};

run_all({
    async 'every command of the specification has its effect'() {
        const stand = await Stand.start();
        const backend = await Backend.connect(stand);
        const commands = examples.filter((one) => !one.is_from_worker);
        for (const { section, message } of commands) {
            backend.messages.length = 0;
            backend.send(message);
            backend.send({ type: 'requestState' });
            await backend.report();
            await effects[message.type](stand, backend, message)
                .catch((error) => { throw new Error(`${section}: ${error.message}`); });
        }
        const { messages, messagesRefused, subscriptionsRefused } = status(stand).counters;
        assert.deepStrictEqual([messages, messagesRefused, subscriptionsRefused],
            [2 * commands.length, 0, 0]);
        assert.strictEqual(new Set(commands.map((one) => one.message.type)).size,
            Object.keys(effects).length);
        await backend.close();
        await stand.stop();
    },

    async 'every message of the worker is as the specification shows it'() {
        const shows = examples.filter((one) => one.is_from_worker);
        for (const { section, message } of shows) {
            const stand = await Stand.start();
            const backend = await Backend.connect(stand);
            assert_is_as_shown(await occasions[message.type](stand, backend, message)
                .catch((error) => { throw new Error(`${section}: ${error.message}`); }), message);
            await backend.close();
            await stand.stop();
        }
        assert.strictEqual(new Set(shows.map((one) => one.message.type)).size,
            Object.keys(occasions).length);
    },
});
