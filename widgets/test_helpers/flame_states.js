// As a program: the flame graph's states that the page makes of two files, as the widget reads them and as JSON, for the test that holds
// them to Python's. The first file packs what is beside the op table, the second the op table.

import { readFileSync } from "node:fs";
import { argv, stdout } from "node:process";
import { decode, decodeNoise } from "../src/flamegraph/data/data.js";
import { flameStates } from "../src/report/flame_state.js";
import { unpack } from "../src/shared/unpack.js";

/** Typed arrays as lists, NaN as null. @param {string} _ @param {any} value */
function plain(_, value) {
  return ArrayBuffer.isView(value) ? Array.from(/** @type {any} */ (value), (one) => (Number.isNaN(one) ? null : one)) : value;
}

const [block, ops] = [argv[2], argv[3]].map((path) => new Uint8Array(readFileSync(path)));
const { flame, base, difference } = await flameStates(block, await unpack(ops));
stdout.write(JSON.stringify({ flame: decode(flame), base: decode(base), difference: decodeNoise(difference) }, plain));
