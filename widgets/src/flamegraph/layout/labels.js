// Labels: shorter forms of a frame's name for a box with less room, which keep what tells it from its neighbors.

/** A path that ends in numbers, as it is written on a frame: 'layers.3 (LlamaDecoderLayer)'. */
const NUMBERED = /^(?:[^ ]*?[^ .]\.)?(\d+(?:\.\d+)*)(?= \(|$)/;

/** Letters of a name that tell something; a mark is cut to its sign to leave room for them. */
const TELLING = 6;
const NAMESPACE = /^aten[.:]+|^torch\.(?=\w+\.)|^autograd::engine::evaluate_function: /;

/**
 * Returns what is written in a box: the mark of a change, if there is one, and the name.
 * @param {string} name @param {string} mark '▲ +20 %', 'new' or "" @param {number} letters
 */
export function labelOf(name, mark, letters) {
  if (!mark) return shorter(name, letters);
  const sign = mark.length + 1 + Math.min(name.length, TELLING) > letters ? mark.split(" ")[0] : mark;
  return `${sign} ${shorter(name, letters - sign.length - 1)}`;
}

/**
 * Returns the form of a name for so many letters; it may still be too long, and is then cut at its end.
 * One of many equal modules is told by its number, so that is kept: 'layers.3', '.3'. An op loses its namespace.
 * @param {string} name @param {number} letters
 */
export function shorter(name, letters) {
  if (name.length <= letters) return name;
  const numbered = NUMBERED.exec(name);
  if (!numbered) return name.replace(NAMESPACE, "").replace(/\.default$/, "");
  const [path, number] = numbered;
  // A class that is cut to nothing but its bracket tells nothing.
  const forms = letters > path.length + 4 ? [] : [path, `.${number}`];
  return forms.find((form) => form.length <= letters) ?? (forms.length ? `.${number}` : name);
}
