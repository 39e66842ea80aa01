// Where models are fetched from, in tests.
'use strict';
const http = require('http');

// A server of models: what is at each path, its ETag, and what was asked.
class Shop {
    static async start(goods) {
        const shop = new Shop();
        shop.asked = [];
        shop.server = http.createServer((request, response) => {
            const name = request.url.split('?')[0];
            const etag = `"${name}"`;
            const is_known = request.headers['if-none-match'] === etag;
            shop.asked.push([name, is_known]);
            response.writeHead(is_known ? 304 : name in goods ? 200 : 404, { ETag: etag });
            response.end(is_known ? undefined : goods[name]);
        });
        await new Promise((resolve) => shop.server.listen(0, '127.0.0.1', resolve));
        return shop;
    }
    url(name) { return `http://127.0.0.1:${this.server.address().port}${name}?signature=canary`; }
    close() { return new Promise((resolve) => this.server.close(resolve)); }
}

module.exports = { Shop };
