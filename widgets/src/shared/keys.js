// Which key of a picture stands for which action.

/** @typedef {[keys: string[], action: string, help: string][]} Keys what they do, and what the help says; without an action they move */

const ARROWS = ["ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight", "Home", "End"];

/** Returns the action of a key; undefined for others and with a modifier. @param {Keys} keys @param {{key: string, ctrlKey?: boolean, metaKey?: boolean, altKey?: boolean}} event */
export function actionOf(keys, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
  const key = event.key.length === 1 && event.key !== "N" ? event.key.toLowerCase() : event.key;
  return keys.find(([names, action]) => action && names.includes(key))?.[1];
}

/** Tells whether a key moves from one thing to another. @param {string} key */
export function isArrow(key) {
  return ARROWS.includes(key);
}
