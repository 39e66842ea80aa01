// An S3-compatible server for test_fleet_s3.py, the npm package s3rver, with a key of its own:
//
//   usage: node s3_server.cjs PACKAGE FOLDER KEY_ID SECRET
//
// It prints its port, and reads lines from its standard input: "ahead SECONDS" sets its clock ahead
// of the machine's. It answers each with "ok", and ends with its standard input.
"use strict";

const [folder, data, id, secret] = process.argv.slice(2);
const library = `${folder}/node_modules/@20minutes/s3rver/lib`;
const Server = require(`${library}/s3rver.js`);
const accounts = require(`${library}/models/account.js`);
let aheadMs = 0;

globalThis.Date = class extends Date {
  constructor(...given) {
    super(...(given.length > 0 ? given : [Date.now() + aheadMs]));
  }
};

accounts.DUMMY_ACCOUNT.createKeyPair(id, secret);
new Server({ address: "127.0.0.1", port: 0, silent: true, directory: data,
             configureBuckets: [{ name: "models" }] })
  .run()
  .then(({ port }) => console.log(port));

require("readline")
  .createInterface({ input: process.stdin })
  .on("line", (line) => {
    aheadMs = Number(line.split(" ")[1]) * 1000;
    console.log("ok");
  })
  .on("close", () => process.exit(0));
