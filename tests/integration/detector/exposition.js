// Reads Prometheus' text format, version 0.0.4, as strictly as it is written down: what a lenient
// reader forgives fails here.
'use strict';
const assert = require('assert');

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(,|$)/y;
const SAMPLE = new RegExp(`^(${NAME})(?:\\{(.*)\\})? (\\S+)$`);
const NUMBER = /^([+-]?Inf|NaN|[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?)$/;
const KINDS = ['counter', 'gauge', 'histogram', 'summary', 'untyped'];
const ENDINGS = { histogram: ['_bucket', '_sum', '_count'], summary: ['', '_sum', '_count'] };

function number(text) {
    assert.match(text, NUMBER);
    return text.endsWith('Inf') ? (text[0] === '-' ? -Infinity : Infinity) : Number(text);
}

function labels_of(text, line) {
    const labels = {};
    LABEL.lastIndex = 0;
    while (text && LABEL.lastIndex < text.length) {
        const found = LABEL.exec(text);
        assert.ok(found, `labels: ${line}`);
        assert.ok(!(found[1] in labels), `a label twice: ${line}`);
        labels[found[1]] = found[2].replace(/\\(.)/g, (_, c) => (c === 'n' ? '\n' : c));
        if (found[3] === '') break;
    }
    return labels;
}

// Bounds grow and counts with them, up to +Inf, which is the count; and there is a sum.
function check_histogram(family) {
    const series = new Map();
    for (const { name, labels, value } of family.samples) {
        const { le, ...rest } = labels;
        const key = JSON.stringify(rest);
        if (!series.has(key)) series.set(key, { buckets: [] });
        if (name.endsWith('_bucket')) series.get(key).buckets.push([number(le), value]);
        else series.get(key)[name.slice(family.name.length + 1)] = value;
    }
    for (const { buckets, sum, count } of series.values()) {
        assert.ok(buckets.length >= 2 && sum >= 0, family.name);
        buckets.slice(1).forEach(([bound, value], i) => {
            assert.ok(bound > buckets[i][0] && value >= buckets[i][1], family.name);
        });
        assert.deepStrictEqual(buckets[buckets.length - 1], [Infinity, count], family.name);
    }
}

// {family's name: {type, help, samples: [{name, labels, value}]}}; throws at what is wrong.
function parse(text) {
    const families = {};
    const seen = new Set();
    let family = null;
    assert.ok(text.endsWith('\n'), 'the last line ends');
    assert.ok(!text.includes('\r') && !text.includes('\t'));
    for (const line of text.slice(0, -1).split('\n')) {
        let found = new RegExp(`^# HELP (${NAME}) (.+)$`).exec(line);
        if (found) {
            assert.ok(!(found[1] in families), `a family twice: ${line}`);
            assert.ok(!/\\(?![\\n])/.test(found[2]), `an escape: ${line}`);
            assert.ok(!family || family.type, `no type: ${line}`);
            family = { name: found[1], help: found[2], type: null, samples: [] };
            families[found[1]] = family;
            continue;
        }
        found = new RegExp(`^# TYPE (${NAME}) (\\w+)$`).exec(line);
        if (found) {
            assert.strictEqual(found[1], family && family.name, `its help is elsewhere: ${line}`);
            assert.strictEqual(family.type, null, `a type twice: ${line}`);
            assert.strictEqual(family.samples.length, 0, line);
            assert.ok(KINDS.includes(found[2]), line);
            family.type = found[2];
            continue;
        }
        found = SAMPLE.exec(line);
        assert.ok(found && family && family.type, `not understood: ${line}`);
        const [, name, raw, value] = found;
        assert.ok((ENDINGS[family.type] || ['']).some((end) => name === family.name + end), line);
        assert.ok(family.type !== 'counter' || name.endsWith('_total'), line);
        const labels = labels_of(raw, line);
        const key = name + JSON.stringify(Object.entries(labels).sort());
        assert.ok(!seen.has(key), `a sample twice: ${line}`);
        seen.add(key);
        family.samples.push({ name, labels, value: number(value) });
        assert.ok(family.type === 'gauge' || family.samples[family.samples.length - 1].value >= 0, line);
    }
    Object.values(families).filter((one) => one.type === 'histogram').forEach(check_histogram);
    return families;
}

// What /metrics of the worker says, looked at, and its value of a name and some of the labels.
function metrics(worker) {
    const { status, head, body } = worker.curl('/metrics');
    assert.strictEqual(status, 200);
    assert.match(head, /^content-type: text\/plain; version=0\.0\.4; charset=utf-8\r?$/m);
    const families = parse(String(body));
    const value = (name, labels = {}) => {
        const family = families[name.replace(/_(bucket|sum|count)$/, '')] || families[name];
        const found = (family ? family.samples : []).filter((one) => one.name === name &&
            Object.entries(labels).every(([key, text]) => one.labels[key] === text));
        assert.ok(found.length <= 1, `${name} is ambiguous`);
        return found.length === 1 ? found[0].value : undefined;
    };
    return { families, value: (name, labels) => value('baton_detector_' + name, labels) };
}

module.exports = { parse, metrics };
