// A worker of BullMQ with its defaults; one job at a time. Each attempt appends a line to the file:
// when it starts and ends, by the monotonic clock that all processes of the machine share.
//
// usage: node bullmq_worker.mjs PORT FILE NAME, with bullmq and ioredis in NODE_PATH's folder
import { createRequire } from "node:module";
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const load = createRequire(process.env.PEERS + "/package.json");
const { Worker, Queue } = load("bullmq");
const [port, file, name] = process.argv.slice(2);
const connection = { host: "127.0.0.1", port: Number(port), maxRetriesPerRequest: null };
const now = () => Number(process.hrtime.bigint()) / 1e6;

if (name === "submit") {
  const queue = new Queue("jobs", { connection });
  await queue.add("job", { seconds: Number(process.argv[5]) });
  await queue.close();
} else {
  new Worker("jobs", async (job) => {
    appendFileSync(file, `start ${name} ${now()}\n`);
    await sleep(job.data.seconds * 1000);
    appendFileSync(file, `end ${name} ${now()}\n`);
  }, { connection });
  console.log("ready");
}
