// What the keys do in the picture, and where the arrows lead.

/** @type {import("../../shared/keys.js").Keys} */
export const KEYS = [
  [["ArrowDown"], "", "along a line to what reads this"],
  [["ArrowUp"], "", "back along a line to what this reads"],
  [["ArrowLeft", "ArrowRight"], "", "to the box before or after it on the same level"],
  [["Home", "End"], "", "to the first or last box of the level"],
  [["Enter"], "enter", "open or close a part; select a node"],
  [[" "], "select", "toggle selection"],
  [["i"], "inner", "to the first box in an open part"],
  [["p"], "outer", "to the part that holds this"],
  [["Escape"], "back", "one step back: tip, selection, search"],
  [["+", "="], "nearer", "zoom in"],
  [["-"], "farther", "zoom out"],
  [["0"], "all", "show all"],
  [["f"], "fit", "show the box as large as it fits"],
  [["w", "s", "a", "d"], "pan", "move the picture"],
  [["c"], "close", "close all parts"],
  [["t"], "outline", "outline on or off"],
  [["v"], "svg", "save the picture as SVG"],
  [["b"], "png", "save the picture as PNG"],
  [["/"], "search", "to the search"],
  [["n", "N"], "match", "next, previous match"],
  [["?"], "help", "this list"],
];

/**
 * Returns the item that an arrow leads to from another; the same one where there is none.
 * @param {string} key @param {import("./scene.js").Drawn} drawn @param {number} item -1 for none yet
 */
export function movedTo(key, drawn, item) {
  const box = drawn.boxOf.get(item);
  if (!box) return drawn.boxes.find((candidate) => candidate.item >= 0)?.item ?? -1;
  if (key === "ArrowDown" || key === "ArrowUp") return along(drawn, item, key === "ArrowDown");
  const level = drawn.boxes.filter((candidate) => candidate.holder === box.holder && candidate.item >= 0);
  const ordered = [...level].sort((a, b) => a.y + a.height / 2 - b.y - b.height / 2 || a.x - b.x);
  const last = ordered.length - 1;
  const index = ordered.indexOf(box);
  const to = { ArrowLeft: Math.max(index - 1, 0), ArrowRight: Math.min(index + 1, last), Home: 0, End: last }[key] ?? index;
  return ordered[to].item;
}

/** Returns the item along the line whose other end is nearest across. @param {import("./scene.js").Drawn} drawn @param {number} item @param {boolean} isForward */
function along(drawn, item, isForward) {
  const here = /** @type {import("./scene.js").Box} */ (drawn.boxOf.get(item));
  const ends = drawn.lines.flatMap(({ from, to, isUp, isDown }) => {
    if (from === item && (isForward ? isDown : isUp)) return [to];
    if (to === item && (isForward ? isUp : isDown)) return [from];
    return [];
  }).filter((end) => end >= 0);
  const boxes = ends.map((end) => /** @type {import("./scene.js").Box} */ (drawn.boxOf.get(end)));
  const away = (/** @type {import("./scene.js").Box} */ box) => Math.abs(box.x + box.width / 2 - here.x - here.width / 2) + Math.abs(box.y - here.y);
  return boxes.sort((a, b) => away(a) - away(b))[0]?.item ?? item;
}
