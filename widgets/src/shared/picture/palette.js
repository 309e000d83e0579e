// Fill colors and patterns. Every fill keeps 3:1 against a white and a dark page and bears black text at 4.5:1;
// hues that color-blind eyes confuse are not used side by side, and what shares a hue differs by its pattern.

export const HUES = {
  blue: "#3b8cf6", amber: "#d97706", green: "#159a4b", violet: "#9d6bf2", cyan: "#0796b8", magenta: "#d94fa6", brown: "#a8794a", gray: "#868686",
};
/** Drawn over a fill: nothing, diagonals, the other diagonals, dots, bright diagonals. */
export const PATTERNS = ["", "slash", "backslash", "dots", "light"];

/** `strength` is that of the fill where colors are steps of one hue. @typedef {{label: string, color: string, pattern: string, strength?: number}} Category */

/** @param {string} label @param {keyof typeof HUES} hue @param {string} [pattern] @returns {Category} */
const category = (label, hue, pattern = "") => ({ label, color: HUES[hue], pattern });

/** What holds frames of several categories. */
export const SEVERAL = "several";

/** The categories a way of coloring has; the order is that of the codes. @type {Record<string, Category[]>} */
export const CATEGORIES = {
  phase: [category("forward", "blue"), category("backward", "amber"), category("optimizer", "green"), category("other", "gray"), category(SEVERAL, "gray", "light")],
  family: [
    category("matmul", "blue"), category("attention", "violet", "backslash"), category("convolution", "blue", "slash"), category("normalization", "cyan"),
    category("elementwise", "amber"), category("reduction", "green"), category("indexing", "green", "slash"), category("copy and layout", "brown", "dots"),
    category("communication", "magenta", "backslash"), category("module or block", "gray"), category("autograd", "amber", "slash"), category("device driver", "cyan", "slash"),
    category("other", "gray", "dots"), category(SEVERAL, "gray", "light"),
  ],
  difference: [
    category("same", "gray"), category("slower", "amber"), category("faster", "blue"), category("added", "magenta", "slash"), category("removed", "violet", "dots"),
  ],
};

/** Returns the categories of a difference, whose noise is known or not. @param {boolean} isJudged */
export function differenceCategories(isJudged) {
  const [same, ...changed] = CATEGORIES.difference;
  return [{ ...same, label: isJudged ? "within noise" : "no clear change" }, ...changed];
}

/** @type {[keyof typeof HUES, string][]} */
const DEVICE_LOOKS = [["blue", ""], ["amber", ""], ["green", ""], ["magenta", "backslash"], ["cyan", "dots"], ["brown", "slash"], ["violet", "dots"]];

/** Returns the categories of devices: one per name, one for none. @param {string[]} devices @returns {Category[]} */
export function deviceCategories(devices) {
  const looks = devices.map((device, index) => {
    const [hue, pattern] = DEVICE_LOOKS[index % DEVICE_LOOKS.length];
    return category(device, hue, index < DEVICE_LOOKS.length ? pattern : "dots");
  });
  return [...looks, category("no device", "gray"), category(SEVERAL, "gray", "light")];
}
