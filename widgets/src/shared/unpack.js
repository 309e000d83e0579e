// A report's block of data as it was packed by nbkit/views/panels/pack.py: JSON data with columns as typed arrays in it.

const HEADER_BYTES = 4;
/** What stands above the digits of a float, and what its first few stand for. */
const DIGITS = 1 << 16;
const ODD = [NaN, Infinity, -Infinity];

/** @typedef {{way: string, count: number, width: number, scale: number}} Packed */

/** Unpacks the data of a block. @param {Uint8Array} block @returns {Promise<any>} */
export async function unpack(block) {
  const bytes = await inflated(block);
  const headerEnd = HEADER_BYTES + new DataView(bytes.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(HEADER_BYTES, headerEnd)));
  return filled(header, { bytes, at: headerEnd });
}

/** Inflates bytes that zlib packed. @param {Uint8Array | ArrayBuffer} packed */
export async function inflated(packed) {
  const stream = new Blob([/** @type {any} */ (packed)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/**
 * Puts the columns into the data; they stand in the block in the order in which the header names them, and are made
 * when they are first asked for.
 * @param {any} data @param {{bytes: Uint8Array, at: number}} reader @returns {any}
 */
function filled(data, reader) {
  if (Array.isArray(data)) return data.map((value) => filled(value, reader));
  if (data === null || typeof data !== "object") return data;
  for (const [name, value] of Object.entries(data)) {
    if (isPacked(value)) makeLater(data, name, WAYS[value.way], taken(value, reader), value);
    else data[name] = filled(value, reader);
  }
  return data;
}

/** @param {any} value */
function isPacked(value) {
  return value !== null && typeof value === "object" && Object.hasOwn(value, "way") && Object.hasOwn(WAYS, value.way);
}

/** Returns the bytes of a column. @param {Packed} packed @param {{bytes: Uint8Array, at: number}} reader */
function taken({ count, width }, reader) {
  const start = reader.at;
  reader.at += count * width;
  return reader.bytes.subarray(start, reader.at);
}

/** @param {any} data @param {string} name @param {(bytes: Uint8Array, packed: Packed) => any} make @param {Uint8Array} bytes @param {Packed} packed */
function makeLater(data, name, make, bytes, packed) {
  const get = () => {
    const value = make(bytes, packed);
    Object.defineProperty(data, name, { value, enumerable: true });
    return value;
  };
  Object.defineProperty(data, name, { get, enumerable: true, configurable: true });
}

/** Reads whole numbers from their byte planes, lowest first. @param {Uint8Array} bytes @param {Packed} packed */
function planes(bytes, { count, width }) {
  const values = new Float64Array(count);
  for (let plane = 0, factor = 1; plane < width; plane += 1, factor *= 256) {
    const start = plane * count;
    for (let row = 0; row < count; row += 1) values[row] += factor * bytes[start + row];
  }
  return values;
}

/** Maps whole numbers from 0 on back to positive and negative ones. @param {number} value */
function unfolded(value) {
  return value % 2 ? -(value + 1) / 2 : value / 2;
}

/** From what is packed to the column. @type {Record<string, (bytes: Uint8Array, packed: Packed) => Int32Array | Float64Array>} */
const WAYS = {
  codes(bytes, { count, width }) {
    const values = new Int32Array(count).fill(-1);
    for (let plane = 0; plane < width; plane += 1) {
      for (let row = 0; row < count; row += 1) values[row] += bytes[plane * count + row] << (8 * plane);
    }
    return values;
  },
  numbers(bytes, packed) {
    const values = planes(bytes, packed);
    for (let row = 0; row < values.length; row += 1) values[row] = values[row] ? unfolded(values[row] - 1) / packed.scale : NaN;
    return values;
  },
  rows_up(bytes, packed) {
    const values = planes(bytes, packed);
    for (let row = 0; row < values.length; row += 1) values[row] = values[row] ? row - unfolded(values[row] - 1) : NaN;
    return values;
  },
  steps(bytes, packed) {
    const values = planes(bytes, packed);
    for (let row = 0, sum = 0; row < values.length; row += 1) {
      sum += unfolded(values[row]);
      values[row] = sum / packed.scale;
    }
    return values;
  },
  floats(bytes, { count, width }) {
    const floats = new Uint8Array(count * width);
    for (let plane = 0; plane < width; plane += 1) {
      for (let row = 0; row < count; row += 1) floats[row * width + plane] = bytes[plane * count + row];
    }
    return new Float64Array(floats.buffer);
  },
  decimals(bytes, packed) {
    const values = planes(bytes, packed);
    for (let row = 0; row < values.length; row += 1) values[row] = decimal(values[row] % DIGITS, Math.floor(values[row] / DIGITS));
    return values;
  },
};

/** Makes a float of its digits and the power of ten of the last one, both as packed. @param {number} digits @param {number} power */
function decimal(digits, power) {
  if (digits < ODD.length) return ODD[digits];
  const [whole, exponent] = [unfolded(digits - ODD.length), unfolded(power)];
  // Powers of ten up to the 22nd are exact, so that one division or product rounds once.
  if (exponent < -22 || exponent > 22) return Number(`${whole}e${exponent}`);
  return exponent < 0 ? whole / 10 ** -exponent : whole * 10 ** exponent;
}
