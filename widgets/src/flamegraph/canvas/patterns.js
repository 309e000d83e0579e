// Patterns over the fills, and the same ones as pictures for the legend.

const SIDE = 6;
const INK = "rgba(0, 0, 0, 0.30)";
/** On gray, black text between dark lines is hard to read. */
const LIGHT = "rgba(255, 255, 255, 0.35)";

/** Draws a small tile of a pattern. @param {string} name @param {number} scale */
function tile(name, scale) {
  const canvas = document.createElement("canvas");
  canvas.width = SIDE * scale;
  canvas.height = SIDE * scale;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.scale(scale, scale);
  context.strokeStyle = name === "light" ? LIGHT : INK;
  context.fillStyle = INK;
  if (name === "dots") context.fillRect(2, 2, 2, 2);
  else diagonals(context, name !== "backslash");
  return canvas;
}

/** @param {CanvasRenderingContext2D} context @param {boolean} isRising */
function diagonals(context, isRising) {
  context.lineWidth = 1.2;
  context.beginPath();
  for (const shift of [-SIDE, 0, SIDE]) {
    context.moveTo(shift - 1, isRising ? SIDE + 1 : -1);
    context.lineTo(shift + SIDE + 1, isRising ? -1 : SIDE + 1);
  }
  context.stroke();
}

/** @type {Map<string, string>} */
const pictures = new Map();

/** Returns the pattern as the value of background-image. @param {string} name */
export function patternImage(name) {
  if (!name) return "none";
  if (!pictures.has(name)) pictures.set(name, `url(${tile(name, 1).toDataURL()})`);
  return pictures.get(name) ?? "none";
}

/** Returns the pattern to fill with; null for none. @param {CanvasRenderingContext2D} context @param {string} name @param {number} scale */
export function patternFill(context, name, scale) {
  return name ? context.createPattern(tile(name, scale), "repeat") : null;
}
