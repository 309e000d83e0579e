// Globs as Python's fnmatch reads them, as regular expressions.

/** A character as it stands for itself, inside a class too. @param {string} character */
export function itself(character) {
  return `\\u{${/** @type {number} */ (character.codePointAt(0)).toString(16)}}`;
}

/** As fnmatch.translate(glob), in any case; as there with search() it only has to fit up to the end. @param {string} glob @returns {RegExp} */
export function globExpression(glob) {
  const [first, ...others] = parts(glob);
  if (!others.length) return new RegExp(`${first}$`, "isu");
  const last = others.pop();
  // What follows a star is taken where it comes first: it need not be looked for again when what is behind it fails.
  const middle = others.map((part, index) => `(?=(?<star${index}>.*?${part}))\\k<star${index}>`);
  return new RegExp(`${first}${middle.join("")}.*${last}$`, "isu");
}

/** What stands between the stars. @param {string} glob */
function parts(glob) {
  const found = [""];
  let isStar = false;
  for (let at = 0; at < glob.length; ) {
    const character = String.fromCodePoint(/** @type {number} */ (glob.codePointAt(at)));
    if (character === "*" && !isStar) found.push("");
    isStar = character === "*";
    const end = character === "[" ? closing(glob, at + 1) : -1;
    if (!isStar) found[found.length - 1] += end > 0 ? oneOf(glob.slice(at + 1, end)) : character === "?" ? "." : itself(character);
    at = end > 0 ? end + 1 : at + character.length;
  }
  return found;
}

/** Where the bracket that ends a class stands; -1 if it does not end. @param {string} glob @param {number} start */
function closing(glob, start) {
  const inside = glob[start] === "!" ? start + 1 : start;
  return glob.indexOf("]", glob[inside] === "]" ? inside + 1 : inside);
}

/** @param {string} inside what stands in the brackets */
function oneOf(inside) {
  const isNegated = inside.startsWith("!");
  const characters = [...inside.slice(isNegated ? 1 : 0)];
  let items = "";
  for (let at = 0; at < characters.length; at += 1) {
    const [low, dash, high] = characters.slice(at, at + 3);
    if (dash !== "-" || high === undefined) items += itself(low);
    // A range that ends before it starts holds nothing.
    else if (low <= high) items += `${itself(low)}-${itself(high)}`;
    if (dash === "-" && high !== undefined) at += 2;
  }
  return items ? `[${isNegated ? "^" : ""}${items}]` : isNegated ? "." : "(?!)";
}
