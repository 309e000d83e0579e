// Numbers as text: fixed decimals, significant digits, whole numbers.

/** Formats a number with so many decimals. @param {number} value @param {number} digits */
export function fixed(value, digits) {
  return Number.isFinite(value) ? value.toFixed(digits) : named(value);
}

/** Formats a number with so many significant digits, without zeros at the end: 1.5, 12, 1.23e-05. @param {number} value @param {number} digits */
export function general(value, digits) {
  if (!Number.isFinite(value)) return named(value);
  if (value === 0) return "0";
  const [mantissa, power] = value.toExponential(digits - 1).split("e");
  const exponent = Number(power);
  if (exponent >= -4 && exponent < digits) return bare(value.toPrecision(digits));
  return `${bare(mantissa)}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
}

/** Formats a whole number, however large. @param {number} value */
export function whole(value) {
  return Number.isFinite(value) ? String(BigInt(Math.trunc(value))) : named(value);
}

/** Formats a number with thousands separators. @param {number} value */
export function count(value) {
  return whole(value).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** Counts things in words: 1 row, 2,000 rows. @param {number} value @param {string} noun */
export function counted(value, noun) {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/** Removes zeros at the end. @param {string} text */
function bare(text) {
  return text.includes(".") ? text.replace(/\.?0*$/, "") : text;
}

/** @param {number} value */
function named(value) {
  return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
}
