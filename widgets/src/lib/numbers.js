// Numbers as Python's format() writes them: exact, and from the middle between two of them to the even digit.

/** Digits that are enough to tell an exact middle from what lies beside it. */
const MANY = 60;

/** As f"{value:.Nf}". @param {number} value @param {number} digits */
export function fixed(value, digits) {
  if (!Number.isFinite(value)) return named(value);
  const size = Math.abs(value);
  // toFixed gives up on numbers this large, which are whole.
  const text = size >= 1e21 ? `${BigInt(size)}${digits ? `.${"0".repeat(digits)}` : ""}` : toEven(size, size.toFixed(digits), () => size - 10 ** -digits / 4, (below) => below.toFixed(digits));
  return isNegative(value) ? `-${text}` : text;
}

/** As f"{value:.Ng}". @param {number} value @param {number} digits */
export function general(value, digits) {
  if (!Number.isFinite(value)) return named(value);
  if (value === 0) return isNegative(value) ? "-0" : "0";
  const size = Math.abs(value);
  const [mantissa, power] = toEven(size, size.toExponential(digits - 1), () => size * (1 - 10 ** -digits / 4), (below) => below.toExponential(digits - 1)).split("e");
  const exponent = Number(power);
  const sign = isNegative(value) ? "-" : "";
  if (exponent < -4 || exponent >= digits) return `${sign}${bare(mantissa)}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  return sign + bare(plain(mantissa.replace(".", ""), exponent));
}

/** As round(value, digits). @param {number} value @param {number} digits */
export function roundedTo(value, digits) {
  return Number.isFinite(value) ? Number(fixed(value, digits)) : value;
}

/** As str(int(value)). @param {number} value */
export function whole(value) {
  return String(BigInt(Math.trunc(value)));
}

/** With thousands separators. @param {number} value */
export function count(value) {
  return whole(value).replace(/\B(?=(\d{3})+$)/g, ",");
}

/**
 * The rounded text, or that of a number a little smaller if the value is exactly in the middle of two and the text ends
 * in an odd digit: JavaScript rounds such a value up.
 * @param {number} size @param {string} text @param {() => number} smaller @param {(value: number) => string} write
 */
function toEven(size, text, smaller, write) {
  const isOdd = "13579".includes(text.split("e")[0].slice(-1));
  return isOdd && isMiddle(size, text) ? write(smaller()) : text;
}

/** Whether the digits of a number end in a 5 right after those of the text. @param {number} size @param {string} text */
function isMiddle(size, text) {
  const exact = size.toExponential(MANY).split("e")[0].replace(".", "").replace(/0+$/, "");
  const shown = text.split("e")[0].replace(".", "").replace(/^0+/, "");
  // Rounding up may have made a digit more: 9.5 reads 10.
  const length = exact.length - 1;
  return exact.endsWith("5") && (shown.length === length || (shown.length === length + 1 && /^10*$/.test(shown)));
}

/** Digits with the point in its place. @param {string} digits @param {number} exponent */
function plain(digits, exponent) {
  if (exponent < 0) return `0.${"0".repeat(-exponent - 1)}${digits}`;
  return `${digits.slice(0, exponent + 1)}.${digits.slice(exponent + 1)}`;
}

/** Without zeros at the end. @param {string} text */
function bare(text) {
  return text.includes(".") ? text.replace(/\.?0*$/, "") : text;
}

/** @param {number} value */
function isNegative(value) {
  return value < 0 || Object.is(value, -0);
}

/** @param {number} value */
function named(value) {
  return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
}
