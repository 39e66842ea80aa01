// Elements. What comes from outside becomes text, never markup.

export const byId = (id) => document.getElementById(id);

// make('p', { class: 'x', onclick }, 'text', child, …)
export function make(name, properties = {}, ...children) {
  const svg = ['svg', 'rect', 'text', 'title', 'g'].includes(name);
  const element = svg ? document.createElementNS('http://www.w3.org/2000/svg', name)
    : document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? '' : value);
  }
  element.append(...children.filter((child) => child !== undefined && child !== null));
  return element;
}

// Writes the text only if it changes, so that a screen reader is not told the same again.
export function write(element, text) {
  const wanted = String(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

// Keeps the children of `parent` in step with `items`: an element for each key, made once.
export function keep(parent, items, key, create, update) {
  const old = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let place = null;
  for (const item of items) {
    const name = String(key(item));
    let element = old.get(name);
    if (element) old.delete(name);
    else {
      element = create(item);
      element.dataset.key = name;
    }
    update(element, item);
    const next = place ? place.nextSibling : parent.firstChild;
    if (element !== next) parent.insertBefore(element, next);
    place = element;
  }
  for (const element of old.values()) element.remove();
}

export function bar(label) {
  const fill = make('u');
  const output = make('output', {}, '–');
  const element = make('div', { class: 'bar' }, make('span', {}, label), make('i', {}, fill), output);
  element.set = (share, text) => {
    const percent = Math.max(0, Math.min(100, share * 100));
    fill.style.width = `${percent}%`;
    element.classList.toggle('high', percent >= 75 && percent < 92);
    element.classList.toggle('full', percent >= 92);
    write(output, text);
  };
  return element;
}

export function ago(ms) {
  const s = Math.max(0, ms / 1000);
  if (s < 1) return 'now';
  if (s < 60) return `${Math.floor(s)} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  return s < 172800 ? `${Math.floor(s / 3600)} h ago` : `${Math.floor(s / 86400)} days ago`;
}
