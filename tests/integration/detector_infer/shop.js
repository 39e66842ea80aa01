// Where models are fetched from, in tests.
'use strict';
const { execFileSync } = require('child_process');
const http = require('http');

// A server of models: what is at each path (a URL: it leads there), its ETag (that of `tags`, with
// null none, else its path), the status that is answered in place of it, and what was asked.
class Shop {
    static async start(goods) {
        const shop = new Shop();
        shop.goods = goods;
        shop.tags = {};
        shop.statuses = {};
        shop.asked = []; // [path, whether it was known]
        shop.queries = []; // of each of them
        shop.sent = {}; // how often each path was sent whole
        shop.wake = () => {};
        shop.server = http.createServer((request, response) => {
            const [name, query] = request.url.split('?');
            const etag = name in shop.tags ? shop.tags[name] : `"${name}"`;
            const is_known = etag !== null && request.headers['if-none-match'] === etag;
            const leads = goods[name] instanceof URL;
            const status = shop.statuses[name] ||
                (is_known ? 304 : leads ? 302 : name in goods ? 200 : 404);
            shop.asked.push([name, is_known]);
            shop.queries.push(query);
            if (status === 200) shop.sent[name] = (shop.sent[name] || 0) + 1;
            response.writeHead(status, { ...(etag !== null && { ETag: etag }),
                ...(leads && { Location: goods[name].href }) });
            response.end(status === 200 ? goods[name] : undefined);
            shop.wake();
        });
        await new Promise((resolve) => shop.server.listen(0, '127.0.0.1', resolve));
        return shop;
    }
    // Puts something else in that place.
    put(name, bytes, tag) {
        this.goods[name] = bytes;
        this.tags[name] = tag;
    }
    count(name) { return this.asked.filter(([one]) => one === name).length; }
    // Waits until it was asked for so many times more.
    async asks(name, more) {
        const until = this.count(name) + more;
        while (this.count(name) < until) {
            await new Promise((resolve) => { this.wake = resolve; });
        }
    }
    url(name, signature = 'canary') {
        return `http://127.0.0.1:${this.server.address().port}${name}?signature=${signature}`;
    }
    close() { return new Promise((resolve) => this.server.close(resolve)); }
}

const make = `
import sys, zipfile
source, file, target = sys.argv[1:4]
with zipfile.ZipFile(source) as zip, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as out:
    for name in zip.namelist():
        old = zip.read(name)
        out.writestr(name, eval(sys.argv[4]) if name == file else old)
`;

// Makes `target` of an archive: what is `old` in one of its files becomes what the Python says.
function alter(archive, target, file, expression) {
    execFileSync('python3', ['-c', make, archive, file, target, expression]);
}

module.exports = { Shop, alter };
