// A peer: the same hop in Node's amqplib, pipelined as its own documentation has it.
// node amqplib.mjs <folder of node_modules> <url> <letters> [prefetch]
import { createRequire } from "node:module";

const [folder, url, count, prefetch] = process.argv.slice(2);
const amqp = createRequire(`${folder}/`)("amqplib");
const routes = new Map([["order.created", 3]]);

const connection = await amqp.connect(url);
const incoming = await connection.createChannel();
const outgoing = await connection.createConfirmChannel();
await incoming.prefetch(Number(prefetch ?? 100));

let left = Number(count);
let began, used;
const done = new Promise((resolve, reject) => {
  const move = (message) => {
    if (began === undefined) {
      began = process.hrtime.bigint();
      used = process.cpuUsage();
    }
    const { "x-death": deaths, ...headers } = message.properties.headers;
    const key = deaths[0]["routing-keys"][0];
    if (!routes.get(key)) return reject(new Error("no route"));
    headers["x-retry-count"] = 1;
    const options = {
      headers,
      mandatory: true,
      persistent: true,
      contentType: message.properties.contentType,
      messageId: message.properties.messageId,
      correlationId: message.properties.correlationId,
    };
    outgoing.publish("bench.outbox", `binding.${key}.1`, message.content, options, (error) => {
      if (error) return reject(error);
      incoming.ack(message);
      if (--left === 0) resolve();
    });
  };
  incoming.consume("bench.in", move).catch(reject);
});
outgoing.on("return", () => {
  throw new Error("a letter came back");
});
await done;
const seconds = Number(process.hrtime.bigint() - began) / 1e9;
const { user, system } = process.cpuUsage(used);
await connection.close();
console.log(JSON.stringify({ seconds, cpu: (user + system) / 1e6 }));
