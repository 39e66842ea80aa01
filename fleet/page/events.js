// /events by fetch, which can show a token; begins again by itself after the latest event's id.

import { request } from './api.js';

const PAUSE_MS = [200, 500, 1000, 2000, 5000];

function parse(block) {
  const event = { name: 'message', id: null, data: '' };
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':');
    const value = line.slice(colon + 1).replace(/^ /, '');
    if (colon < 1) continue;
    if (line.startsWith('event:')) event.name = value;
    else if (line.startsWith('id:')) event.id = value;
    else if (line.startsWith('data:')) event.data += value;
  }
  return event;
}

async function read(response, take) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    let end;
    while ((end = text.indexOf('\n\n')) >= 0) {
      const event = parse(text.slice(0, end));
      text = text.slice(end + 2);
      if (event.data) take(event);
    }
  }
}

// on.event(name, fields), on.state('live' or 'lost'); `path()` is asked for each connection.
export async function follow(path, on) {
  let latest = null;
  for (let failures = 0; ; failures += 1) {
    const gone = new AbortController();
    try {
      const response = await request(path(), {
        signal: gone.signal,
        headers: latest ? { 'Last-Event-ID': latest } : {},
      });
      if (response.ok) {
        on.state('live', gone);
        failures = 0;
        await read(response, (event) => {
          latest = event.id ?? latest;
          try {
            on.event(event.name, JSON.parse(event.data));
          } catch { /* one that cannot be read is left out */ }
        });
      }
    } catch { /* the connection has ended */ }
    on.state('lost', gone);
    await new Promise((resolve) => {
      setTimeout(resolve, PAUSE_MS[Math.min(failures, PAUSE_MS.length - 1)]);
    });
  }
}
