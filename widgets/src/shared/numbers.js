// Numbers as Python's format() writes them: exact, and from the middle between two of them to the even digit.

/** Digits that are enough to tell an exact middle from what lies beside it. */
const MANY = 60;

/** As f"{value:.Nf}". @param {number} value @param {number} digits */
export function fixed(value, digits) {
  if (!Number.isFinite(value)) return named(value);
  const size = Math.abs(value);
  // toFixed gives up on numbers this large, which are whole.
  const text = size >= 1e21 ? `${BigInt(size)}${digits ? `.${"0".repeat(digits)}` : ""}` : toEven(size.toFixed(digits), () => isHalf(size, digits));
  return isNegative(value) ? `-${text}` : text;
}

/** As f"{value:.Ng}". @param {number} value @param {number} digits */
export function general(value, digits) {
  if (!Number.isFinite(value)) return named(value);
  if (value === 0) return isNegative(value) ? "-0" : "0";
  const size = Math.abs(value);
  const [rounded, power] = size.toExponential(digits - 1).split("e");
  const mantissa = toEven(rounded, () => isMiddle(size, digits));
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

/** The rounded digits, or those one less if the number is exactly between both: JavaScript rounds such a number up. @param {string} text @param {() => boolean} isBetween */
function toEven(text, isBetween) {
  const last = Number(text.at(-1));
  return last % 2 && isBetween() ? `${text.slice(0, -1)}${last - 1}` : text;
}

/** Whether a number is a half and nothing less beyond its decimals. @param {number} size @param {number} digits */
function isHalf(size, digits) {
  // A half of a decimal place is a float only if it is an odd part of this power of two.
  return (size * 2 ** (digits + 1)) % 2 === 1;
}

/** Whether the significant digits of a number end in a 5 right after so many. @param {number} size @param {number} digits */
function isMiddle(size, digits) {
  const exact = size.toExponential(MANY).split("e")[0].replace(".", "").replace(/0+$/, "");
  return exact.length === digits + 1 && exact.endsWith("5");
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
