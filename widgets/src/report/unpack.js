// A report's block of data as it was packed by nbkit/views/report/pack.py: JSON data with columns as typed arrays in it.

const HEADER_BYTES = 4;

/** @typedef {{way: string, count: number, width: number, scale: number, shift: number}} Packed */

/** The data of a block. @param {Uint8Array} block @returns {Promise<any>} */
export async function unpack(block) {
  const bytes = await inflated(block);
  const headerEnd = HEADER_BYTES + new DataView(bytes.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(HEADER_BYTES, headerEnd)));
  return filled(header, { bytes, at: headerEnd });
}

/** The bytes that zlib packed. @param {Uint8Array} packed */
export async function inflated(packed) {
  const stream = new Blob([/** @type {any} */ (packed)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** The data with its columns in place; they stand in the block in the order in which the header names them. @param {any} data @param {{bytes: Uint8Array, at: number}} reader @returns {any} */
function filled(data, reader) {
  if (Array.isArray(data)) return data.map((value) => filled(value, reader));
  if (data === null || typeof data !== "object") return data;
  if (data.way in WAYS) return WAYS[data.way](reader, data);
  return Object.fromEntries(Object.entries(data).map(([name, value]) => [name, filled(value, reader)]));
}

/** Whole numbers from their byte planes, lowest first. @param {{bytes: Uint8Array, at: number}} reader @param {Packed} packed */
function planes(reader, { count, width }) {
  const values = new Float64Array(count);
  for (let plane = 0, factor = 1; plane < width; plane += 1, factor *= 256) {
    const bytes = reader.bytes.subarray(reader.at, reader.at + count);
    for (let row = 0; row < count; row += 1) values[row] += factor * bytes[row];
    reader.at += count;
  }
  return values;
}

/** @param {number} value */
function unfolded(value) {
  return value % 2 ? -(value + 1) / 2 : value / 2;
}

/** From what is packed to the column. @type {Record<string, (reader: any, packed: Packed) => Int32Array | Float64Array>} */
const WAYS = {
  codes: (reader, packed) => Int32Array.from(planes(reader, packed), (value) => value - 1),
  numbers: (reader, packed) => planes(reader, packed).map((value) => (value ? unfolded(value - 1) / packed.scale : NaN)),
  rows_up: (reader, packed) => planes(reader, packed).map((value, row) => (value ? row - unfolded(value - 1) : NaN)),
  steps(reader, packed) {
    let sum = 0;
    return planes(reader, packed).map((value) => (sum += unfolded(value)));
  },
  floats(reader, { count, width, shift }) {
    const bytes = new Uint8Array(count * 8);
    for (let plane = 0; plane < width; plane += 1) {
      for (let row = 0; row < count; row += 1) bytes[row * 8 + shift + plane] = reader.bytes[reader.at + row];
      reader.at += count;
    }
    return new Float64Array(bytes.buffer);
  },
};
