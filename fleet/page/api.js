// Requests to the process that served this page. A token is asked for once, and kept as long as
// the tab lives.

const TOKEN = 'baton-fleet-token';
let asking = null;

export class Refusal extends Error {
  constructor(status, answer) {
    super((answer && answer.error) || `the answer was ${status}`);
    this.status = status;
    this.field = (answer && answer.field) || null;
  }
}

// Set by main.js: shows the dialog, and gives a promise of the token.
export const credentials = { ask: null };

export function headers(more = {}) {
  const token = sessionStorage.getItem(TOKEN);
  return token ? { ...more, Authorization: `Bearer ${token}` } : more;
}

async function askOnce() {
  asking ??= credentials.ask().then((token) => {
    sessionStorage.setItem(TOKEN, token);
    asking = null;
  });
  return asking;
}

// A response that is no refusal for want of a token.
export async function request(path, options = {}) {
  for (;;) {
    const response = await fetch(path, { ...options, headers: headers(options.headers) });
    if (response.status !== 401) return response;
    await askOnce();
  }
}

export async function call(method, path, body, etag) {
  const more = body === undefined ? {} : { 'Content-Type': 'application/json' };
  if (etag) more['If-Match'] = etag;
  const response = await request(path, {
    method, headers: more, body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  let answer = null;
  try {
    answer = text ? JSON.parse(text) : null;
  } catch { /* a proxy's page */ }
  if (!response.ok) throw new Refusal(response.status, answer);
  return { answer, etag: response.headers.get('ETag') };
}

export async function get(path) {
  return (await call('GET', path)).answer;
}

// /leader and the like say something with 503, too.
export async function peek(path) {
  const response = await request(path);
  return response.json();
}

export const segment = (id) => encodeURIComponent(id);
