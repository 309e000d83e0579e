// Names for the eye: one line of text with nothing in it that could disturb a page, as nbkit/views/summary/names.py makes them.

export const ROOT = "(root)";
const LIMIT = 200;
/** Marks that turn the direction of the text around them, and what cannot be seen. */
const HIDDEN = /[\u200e\u200f\u202a-\u202e\u2066-\u2069\u061c\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u;
/** @type {Record<string, string>} */
const SHORT = { "\t": "\\t", "\n": "\\n", "\r": "\\r" };

/** Puts a text on one line, escapes invisible characters, and cuts it to `limit` with an ellipsis. @param {string} text @param {number} [limit] */
export function shown(text, limit = LIMIT) {
  let characters = text.length > limit ? [...text.slice(0, 2 * (limit + 1))] : [...text];
  if (HIDDEN.test(text)) characters = [...characters.slice(0, limit + 1).map((character) => (HIDDEN.test(character) ? escaped(character) : character)).join("")];
  return characters.length <= limit ? characters.join("") : `${characters.slice(0, limit - 1).join("")}…`;
}

/** @param {string} character */
function escaped(character) {
  const code = /** @type {number} */ (character.codePointAt(0));
  const digits = (/** @type {number} */ length) => code.toString(16).padStart(length, "0");
  return SHORT[character] ?? (code < 0x100 ? `\\x${digits(2)}` : code < 0x10000 ? `\\u${digits(4)}` : `\\U${digits(8)}`);
}
