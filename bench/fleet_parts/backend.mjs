// The least that a backend does: receives, parses, publishes to listeners of /events.
//   node backend.mjs PORT SUBSCRIPTIONS WORKER-URL...
import http from 'node:http';
import { WebSocket } from 'ws';

const [port, count, ...urls] = process.argv.slice(2);
const listeners = new Set();

http.createServer((request, response) => {
  response.writeHead(200, { 'Content-Type': 'text/event-stream' });
  response.flushHeaders();
  listeners.add(response);
  response.on('close', () => listeners.delete(response));
}).listen(Number(port), '127.0.0.1');

urls.forEach((url, index) => {
  const socket = new WebSocket(url);
  const subscriptions = [];
  for (let i = index; i < Number(count); i += urls.length) {
    subscriptions.push({
      subscriptionIdentifier: `d${i >> 2};c${i}`, rtspUrl: `rtsp://127.0.0.1:9/${i}`,
      modelUrl: 'http://127.0.0.1:9/cars.mpta', modelName: 'cars', modelId: 1,
    });
  }
  socket.on('open', () => socket.send(JSON.stringify({ type: 'setSubscriptionList', subscriptions })));
  socket.on('message', (data) => {
    const message = JSON.parse(data);
    if (message.type === 'imageDetection') {
      const line = `event: detection\ndata: ${JSON.stringify(message)}\n\n`;
      for (const listener of listeners) listener.write(line);
    }
  });
});
