// Questions to the person: one dialog, whose fields show what the server refuses.

import { byId, make } from './dom.js';
import { call, Refusal } from './api.js';

const dialog = byId('dialog');

export function notice(text) {
  const box = byId('notice');
  box.textContent = text;
  box.hidden = false;
  clearTimeout(notice.timer);
  notice.timer = setTimeout(() => { box.hidden = true; }, 6000);
}

function input(field) {
  if (field.choices) {
    const select = make('select', { name: field.name });
    for (const [value, text] of field.choices) {
      select.append(make('option', { value, selected: value === field.value }, text));
    }
    return select;
  }
  if (field.type === 'checkbox') {
    return make('input', { name: field.name, type: 'checkbox', checked: Boolean(field.value) });
  }
  return make('input', {
    name: field.name, type: field.type || 'text', value: field.value ?? '',
    required: field.required, placeholder: field.placeholder, autocomplete: 'off',
    inputmode: field.number ? 'numeric' : undefined,
  });
}

function read(form, fields) {
  const values = {};
  for (const field of fields) {
    const element = form.elements[field.name];
    values[field.name] = field.type === 'checkbox' ? element.checked : element.value.trim();
  }
  return values;
}

// Shows fields and a button; `act(values)` may throw a Refusal, and then the dialog stays. Gives
// the values, or null if it was closed.
export function ask(title, text, fields, button, act) {
  return new Promise((resolve) => {
    let given = null;
    const wrong = make('p', { class: 'wrong', role: 'alert' });
    const form = make('form', { method: 'dialog', novalidate: true },
      make('h2', { id: 'dialog-title' }, title), text ? make('p', {}, text) : null);
    for (const field of fields) {
      form.append(field.type === 'checkbox'
        ? make('label', { class: 'line' }, input(field), field.label)
        : make('label', {}, field.label, input(field), make('span', { class: 'wrong' })));
    }
    form.append(wrong, make('div', { class: 'actions' },
      make('button', { class: 'main', type: 'submit' }, button),
      make('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel')));
    form.addEventListener('submit', async (event) => {
      event.preventDefault();
      const values = read(form, fields);
      for (const span of form.querySelectorAll('.wrong')) span.textContent = '';
      try {
        await act(values);
        given = values;
        dialog.close();
      } catch (error) {
        const at = error instanceof Refusal && error.field
          && form.elements[error.field.split('.').pop()];
        const span = at && at.parentElement.querySelector('.wrong');
        (span || wrong).textContent = error.message;
        if (at) at.focus();
      }
    });
    dialog.replaceChildren(form);
    dialog.addEventListener('close', () => resolve(given), { once: true });
    dialog.showModal();
  });
}

// A request without fields; what is refused is shown as a notice.
export async function order(method, path, body) {
  try {
    await call(method, path, body);
  } catch (error) {
    notice(error.message);
  }
}
