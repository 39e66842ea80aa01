// Requests to the process that served this page. A token is asked for once, and kept as long as
// the tab lives.

const TOKEN = 'baton-fleet-token';
const ANSWER_MS = 8000; // for reading; a change may wait for others
const CHANGE_MS = 30000;
const PAGE = 1000; // items of one answer at most
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

// A response that is no refusal for want of a token. A TimeoutError: nobody answers, though the
// connection stands; not with a signal of the caller's own.
export async function request(path, options = {}) {
  for (;;) {
    const signal = AbortSignal.timeout(options.method && options.method !== 'GET' ? CHANGE_MS : ANSWER_MS);
    const response = await fetch(path, { signal, ...options, headers: headers(options.headers) });
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

// The first `most` items of a list, however many answers they are in, and whether there are more.
export async function list(path, most = Infinity) {
  const items = [];
  let next = '';
  do {
    const url = new URL(path, location);
    url.searchParams.set('limit', Math.min(PAGE, most - items.length));
    if (next) url.searchParams.set('after', next);
    const page = await get(url.pathname + url.search);
    items.push(...page.items);
    next = page.next;
  } while (next && items.length < most);
  return { items, hasMore: Boolean(next) };
}

// /leader and the like say something with 503, too.
export async function peek(path) {
  const response = await request(path);
  return response.json();
}

export const segment = (id) => encodeURIComponent(id);
