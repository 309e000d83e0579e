// Globs as regular expressions that JavaScript, RE2 and Python's re read alike.

/** Turns a glob (`*` any text, `?` one character, `[a-c]`, `[!a-c]`) into a regular expression that fits up to the end of a text. @param {string} glob */
export function globPattern(glob) {
  let pattern = "";
  for (let at = 0; at < glob.length; at += 1) {
    const end = glob[at] === "[" ? closing(glob, at + 1) : -1;
    if (end > 0) {
      pattern += oneOf(glob.slice(at + 1, end));
      at = end;
    } else if (glob[at] !== "*") pattern += glob[at] === "?" ? "[\\s\\S]" : escaped(glob[at]);
    // A star that begins the glob, or follows another one, says nothing new.
    else if (at > 0 && glob[at - 1] !== "*") pattern += "[\\s\\S]*";
  }
  return `${pattern}$`;
}

/** Escapes a text, inside a class too. @param {string} text */
function escaped(text) {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}

/** Returns where the bracket that ends a class stands; -1 if it does not end. @param {string} glob @param {number} start */
function closing(glob, start) {
  const inside = glob[start] === "!" ? start + 1 : start;
  return glob.indexOf("]", glob[inside] === "]" ? inside + 1 : inside);
}

/** @param {string} inside what stands in the brackets */
function oneOf(inside) {
  const isNegated = inside.startsWith("!");
  return `[${isNegated ? "^" : ""}${escaped(isNegated ? inside.slice(1) : inside)}]`;
}
