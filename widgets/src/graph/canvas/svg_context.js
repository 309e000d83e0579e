// What the painter needs of a canvas, recorded as SVG: the same drawing, as a file that scales.

const FONT = /^(?:(\d+) )?([\d.]+)px (.*)$/;
/** @type {Record<string, string>} */
const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
/** What no XML may hold. */
const INVALID = /[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu;

/** Writes text so that it stays text in SVG. @param {string} text */
export function escaped(text) {
  return text.replace(INVALID, "\ufffd").replace(/[&<>"]/g, (letter) => ENTITIES[letter]);
}

/** The width of a text, and how far its middle is above its baseline. @typedef {{width: number, middle: number}} Measure */

export class SvgContext {
  /**
   * @param {(text: string, font: string) => Measure} measured the size of a text in a CSS font
   * @param {(color: string) => string} colorOf a CSS color as every viewer of SVG knows it
   */
  constructor(measured, colorOf) {
    this.measured = measured;
    this.colorOf = colorOf;
    /** @type {string[]} */
    this.elements = [];
    this.path = "";
    this.isIn = false;
    this.fillStyle = this.strokeStyle = "#000";
    this.globalAlpha = this.lineWidth = 1;
    this.font = "10px sans-serif";
    this.textAlign = "left";
    this.textBaseline = "middle";
    /** @type {number[]} */
    this.dash = [];
  }

  /** Returns the file. @param {number} width @param {number} height @param {string} title */
  file(width, height, title) {
    const size = `width="${short(width)}" height="${short(height)}" viewBox="0 0 ${short(width)} ${short(height)}"`;
    const body = [...this.elements, ...(this.isIn ? ["</g>"] : [])].join("\n");
    return `<svg xmlns="http://www.w3.org/2000/svg" ${size} xml:space="preserve"><title>${escaped(title)}</title>\n${body}\n</svg>\n`;
  }

  /** @param {number} a @param {number} b @param {number} c @param {number} d @param {number} e @param {number} f */
  setTransform(a, b, c, d, e, f) {
    if (this.isIn) this.elements.push("</g>");
    this.isIn = true;
    this.elements.push(`<g transform="matrix(${[a, b, c, d, e, f].map(short).join(" ")})">`);
  }

  /** @param {number[]} dash */
  setLineDash(dash) {
    this.dash = dash;
  }

  beginPath() {
    this.path = "";
  }

  closePath() {
    this.path += "Z";
  }

  /** @param {number} x @param {number} y */
  moveTo(x, y) {
    this.path += `M${short(x)} ${short(y)}`;
  }

  /** @param {number} x @param {number} y */
  lineTo(x, y) {
    this.path += `L${short(x)} ${short(y)}`;
  }

  /** @param {...number} points */
  bezierCurveTo(...points) {
    this.path += `C${points.map(short).join(" ")}`;
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height @param {number} radius */
  roundRect(x, y, width, height, radius) {
    const r = Math.min(radius, width / 2, height / 2);
    const arc = (/** @type {number} */ across, /** @type {number} */ down) => `a${short(r)} ${short(r)} 0 0 1 ${short(across)} ${short(down)}`;
    this.path += `M${short(x + r)} ${short(y)}h${short(width - 2 * r)}${arc(r, r)}v${short(height - 2 * r)}${arc(-r, r)}h${short(2 * r - width)}${arc(-r, -r)}v${short(2 * r - height)}${arc(r, -r)}Z`;
  }

  fill() {
    this.elements.push(`<path d="${this.path}" ${this.paint("fill", this.fillStyle)}/>`);
  }

  stroke() {
    if (!this.path) return;
    const dash = this.dash.length ? ` stroke-dasharray="${this.dash.map(short).join(" ")}"` : "";
    this.elements.push(`<path d="${this.path}" fill="none" ${this.paint("stroke", this.strokeStyle)} stroke-width="${short(this.lineWidth)}"${dash}/>`);
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height */
  fillRect(x, y, width, height) {
    this.elements.push(`<rect x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}" ${this.paint("fill", this.fillStyle)}/>`);
  }

  /** @param {string} text @param {number} x @param {number} y */
  fillText(text, x, y) {
    const [, weight, size, family] = /** @type {RegExpExecArray} */ (FONT.exec(this.font));
    const anchor = this.textAlign === "center" ? ' text-anchor="middle"' : "";
    const bold = weight ? ` font-weight="${weight}"` : "";
    const font = `font-size="${size}"${bold} font-family="${escaped(family)}"`;
    this.elements.push(`<text x="${short(x)}" y="${short(y + this.measureText(text).middle)}"${anchor} ${font} ${this.paint("fill", this.fillStyle)}>${escaped(text)}</text>`);
  }

  /** @param {string} text */
  measureText(text) {
    return this.measured(text, this.font);
  }

  /** @param {string} name @param {string} color */
  paint(name, color) {
    return `${name}="${this.colorOf(color)}"${this.globalAlpha < 1 ? ` ${name}-opacity="${short(this.globalAlpha)}"` : ""}`;
  }
}

/** @param {number} value */
function short(value) {
  return String(Math.round(value * 100) / 100);
}
