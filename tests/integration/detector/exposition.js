// Reads Prometheus' text format, version 0.0.4, as strictly as it is written down: what a lenient
// reader forgives fails here.
'use strict';
const assert = require('assert');

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const HEAD = new RegExp(`^# HELP (${NAME}) (?:[^\\\\\n]|\\\\[\\\\n])+\n# TYPE (${NAME}) (\\w+)$`);
const SAMPLE = new RegExp(`^(${NAME})(?:\\{(.*)\\})? (\\S+)$`);
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(?:,|$)/y;
const NUMBER = /^([+-]?Inf|NaN|[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?)$/;
const ENDINGS = { counter: [''], gauge: [''], histogram: ['_bucket', '_sum', '_count'],
    summary: ['', '_sum', '_count'] };

function number(text) {
    assert.match(text, NUMBER);
    return Number(text.replace('Inf', 'Infinity'));
}

function labels_of(text, line) {
    const labels = {};
    for (LABEL.lastIndex = 0; text && LABEL.lastIndex < text.length;) {
        const [, name, value] = LABEL.exec(text) || assert.fail(`labels: ${line}`);
        assert.ok(!(name in labels), `a label twice: ${line}`);
        labels[name] = value.replace(/\\(.)/g, (_, c) => (c === 'n' ? '\n' : c));
    }
    return labels;
}

function sample_of(line, { name: family, type }) {
    const [, name, raw, value] = SAMPLE.exec(line) || assert.fail(`not understood: ${line}`);
    assert.ok(ENDINGS[type].some((end) => name === family + end), line);
    assert.ok(type !== 'counter' || name.endsWith('_total'), line);
    assert.ok(type === 'gauge' || number(value) >= 0, line);
    return { name, labels: labels_of(raw, line), value: number(value) };
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

// {family's name: {name, type, samples: [{name, labels, value}]}}; throws at what is wrong.
function parse(text) {
    const families = {};
    assert.ok(text.startsWith('# HELP ') && text.endsWith('\n') && !/[\r\t]/.test(text));
    for (const part of text.slice(0, -1).split(/\n(?=# HELP )/)) {
        const [help, type_line, ...lines] = part.split('\n');
        const [, name, same, type] = HEAD.exec(`${help}\n${type_line}`) || assert.fail(part);
        assert.ok(name === same && type in ENDINGS, part);
        assert.ok(!(name in families), `a family twice: ${part}`);
        const family = families[name] = { name, type };
        family.samples = lines.map((line) => sample_of(line, family));
        const keys = family.samples.map((one) =>
            one.name + JSON.stringify(Object.entries(one.labels).sort()));
        assert.strictEqual(new Set(keys).size, keys.length, `a sample twice: ${part}`);
        if (type === 'histogram') check_histogram(family);
    }
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

module.exports = { metrics };
