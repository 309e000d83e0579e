// Regular expressions as Python reads them, in JavaScript's words.

import { PatternError } from "../columns/errors.js";
import { itself } from "./globs.js";
import { quoted } from "../columns/words.js";

/** Python's letters and digits are those of all scripts. */
const WORD = "\\p{L}\\p{N}_";
const EDGE = `(?:(?<=[${WORD}])(?![${WORD}])|(?<![${WORD}])(?=[${WORD}]))`;
/** @type {Record<string, string>} */
const ESCAPES = {
  A: "(?<![\\s\\S])", Z: "(?![\\s\\S])", b: EDGE, B: `(?!${EDGE})`, d: "\\p{Nd}", D: "\\P{Nd}", w: `[${WORD}]`, W: `[^${WORD}]`,
  s: "\\s", S: "\\S", a: "\\x07", n: "\\n", r: "\\r", t: "\\t", f: "\\f", v: "\\v",
};
/** @type {Record<string, string>} */
const INSIDE = { ...ESCAPES, b: "\\x08", w: WORD };
const OUTSIDE_ONLY = "ABWZ";
const CODE = /^\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))/;
const REPEAT = /^\{(\d*)(,?)(\d*)\}/;
const NAMED = /^\(\?P<([A-Za-z_]\w*)>/;
const AGAIN = /^\(\?P=([A-Za-z_]\w*)\)/;
const GROUP = /^\((?:\?(?::|=|!|<=|<!)|(?!\?))/;
const FLAGS = /^\(\?([aimsu]+)\)/;

/** As re.compile(pattern). Raises PatternError on what is none, or is one that Python alone knows. @param {string} pattern @returns {RegExp} */
export function expression(pattern) {
  const [start, flags] = FLAGS.exec(pattern) ?? ["", ""];
  try {
    return new RegExp(translated(pattern.slice(start.length), flags), flags.includes("i") ? "iu" : "u");
  } catch (error) {
    const reason = /** @type {Error} */ (error).message.split(": ").at(-1);
    throw new PatternError(`${quoted(pattern)} is not a regular expression: ${reason}; mend it or leave 're:' out.`);
  }
}

/** @param {string} pattern @param {string} flags */
function translated(pattern, flags) {
  let text = "";
  for (let at = 0; at < pattern.length; ) {
    const [part, length] = piece(pattern.slice(at), flags);
    text += part;
    at += length;
  }
  return text;
}

/** What a pattern begins with in JavaScript's words, and how long that is. @param {string} rest @param {string} flags @returns {[string, number]} */
function piece(rest, flags) {
  const [character] = rest;
  switch (character) {
    case "\\":
      return escape(rest, ESCAPES);
    case "[":
      return oneOf(rest);
    case "(":
      return group(rest);
    case "{":
      return repeat(rest);
    case "}":
    case "]":
      return [`\\${character}`, 1];
    case ".":
      return [flags.includes("s") ? "[\\s\\S]" : "[^\\n]", 1];
    case "^":
      return [flags.includes("m") ? "(?<![^\\n])" : "(?<![\\s\\S])", 1];
    case "$":
      return [flags.includes("m") ? "(?![^\\n])" : "(?=\\n?(?![\\s\\S]))", 1];
    default:
      return [character, 1];
  }
}

/** @param {string} rest @param {Record<string, string>} known @returns {[string, number]} */
function escape(rest, known) {
  const code = CODE.exec(rest);
  if (code) return [`\\u{${code[1] ?? code[2] ?? code[3]}}`, code[0].length];
  const character = [...rest.slice(1, 3)][0];
  if (character === undefined) throw new Error("bad escape (end of pattern)");
  if (known === INSIDE && OUTSIDE_ONLY.includes(character)) throw new Error(`\\${character} cannot stand in a set here`);
  if (Object.hasOwn(known, character)) return [known[character], 2];
  if (known === ESCAPES && /[1-9]/.test(character)) return [`\\${character}`, 2];
  if (/[A-Za-z0-9]/.test(character)) throw new Error(`bad escape \\${character}`);
  return [itself(character), 1 + character.length];
}

/** A set of characters. @param {string} rest @returns {[string, number]} */
function oneOf(rest) {
  const start = rest[1] === "^" ? 2 : 1;
  let text = rest.slice(0, start);
  let at = start;
  while (at < rest.length && (rest[at] !== "]" || at === start)) {
    const [part, length] = rest[at] === "\\" ? escape(rest.slice(at), INSIDE) : ["[]".includes(rest[at]) ? `\\${rest[at]}` : rest[at], 1];
    text += part;
    at += length;
  }
  if (at >= rest.length) throw new Error("unterminated character set");
  return [`${text}]`, at + 1];
}

/** @param {string} rest @returns {[string, number]} */
function group(rest) {
  const named = NAMED.exec(rest);
  if (named) return [`(?<${named[1]}>`, named[0].length];
  const again = AGAIN.exec(rest);
  if (again) return [`\\k<${again[1]}>`, again[0].length];
  const plain = GROUP.exec(rest);
  if (!plain) throw new Error(`groups that begin with ${rest.slice(0, 3)} work in the notebook only`);
  return [plain[0], plain[0].length];
}

/** How often; braces that say nothing of the kind stand for themselves. @param {string} rest @returns {[string, number]} */
function repeat(rest) {
  const found = REPEAT.exec(rest);
  if (!found || found[0] === "{}") return ["\\{", 1];
  const [all, low, comma, high] = found;
  return [`{${low || 0}${comma}${high}}`, all.length];
}
