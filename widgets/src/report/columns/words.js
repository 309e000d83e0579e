// Texts as Python sees them: its blanks, its quotes, and names for the eye as nbkit/views/summary/names.py makes them.

export const ROOT = "(root)";
const LIMIT = 200;
/** What Python's strip() and split() take for blanks. */
const BLANKS = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const ENDS = new RegExp(`^[${BLANKS}]+|[${BLANKS}]+$`, "g");
const BETWEEN = new RegExp(`[${BLANKS}]+`);
/** Marks that turn the direction of the text around them, and what cannot be seen. */
const HIDDEN = /[\u200e\u200f\u202a-\u202e\u2066-\u2069\u061c\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u;
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}\p{Zs}]/u;
/** @type {Record<string, string>} */
const SHORT = { "\t": "\\t", "\n": "\\n", "\r": "\\r" };

/** As text.strip(). @param {string} text */
export function stripped(text) {
  return text.replace(ENDS, "");
}

/** As text.split(). @param {string} text */
export function words(text) {
  return text.split(BETWEEN).filter(Boolean);
}

/** On one line, invisible characters as escapes, cut to `limit` with an ellipsis. @param {string} text @param {number} [limit] */
export function shown(text, limit = LIMIT) {
  let characters = text.length > limit ? [...text.slice(0, 2 * (limit + 1))] : [...text];
  if (HIDDEN.test(text)) characters = [...characters.slice(0, limit + 1).map((one) => (HIDDEN.test(one) ? escaped(one) : one)).join("")];
  return characters.length <= limit ? characters.join("") : `${characters.slice(0, limit - 1).join("")}…`;
}

/** As repr(text). @param {string} text */
export function quoted(text) {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const inside = [...text].map((one) => (one === quote || one === "\\" ? `\\${one}` : one !== " " && UNPRINTABLE.test(one) ? escaped(one) : one));
  return `${quote}${inside.join("")}${quote}`;
}

/** Order of two texts by their characters' numbers, as Python and Arrow have it. @param {string} left @param {string} right */
export function byCharacters(left, right) {
  const end = Math.min(left.length, right.length);
  for (let at = 0; at < end; at += 1) {
    const [one, other] = [left.charCodeAt(at), right.charCodeAt(at)];
    if (one !== other) return inOrder(one) - inOrder(other);
  }
  return left.length - right.length;
}

/** Halves of characters beyond 0xffff come after those from 0xe000 on. @param {number} unit */
function inOrder(unit) {
  return unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}

/** @param {string} character */
function escaped(character) {
  const code = /** @type {number} */ (character.codePointAt(0));
  const digits = (/** @type {number} */ length) => code.toString(16).padStart(length, "0");
  return SHORT[character] ?? (code < 0x100 ? `\\x${digits(2)}` : code < 0x10000 ? `\\u${digits(4)}` : `\\U${digits(8)}`);
}
