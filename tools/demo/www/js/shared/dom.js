/*
 * Small help with the document.  Text is only written where it changed, so that
 * a screen reader hears news and not repetitions.
 */

export const byId = (id) => document.getElementById(id);

export function setText(element, text) {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

export function setAttribute(element, name, value) {
  if (value === null || value === undefined || value === false) {
    if (element.hasAttribute(name)) {
      element.removeAttribute(name);
    }
  } else if (element.getAttribute(name) !== String(value)) {
    element.setAttribute(name, value);
  }
}

export const query = new URLSearchParams(location.search);
