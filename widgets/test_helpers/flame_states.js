// As a program: the flamegraph's state that a file packs beside that of the op table, as JSON, for the test that holds them to Python's.

import { readFileSync } from "node:fs";
import { argv, stdout } from "node:process";
import { flameStates } from "../src/report/flame_state.js";
import { unpack } from "../src/report/unpack.js";

const WIDE = new Set(["start", "total", "self", "device_self", "flops", "bytes", "time", "allocated"]);

/** @param {Record<string, any>} columns */
function lists(columns) {
  return Object.fromEntries(Object.entries(columns).map(([name, buffer]) => (
    [name, Array.from(WIDE.has(name) ? new Float64Array(buffer) : new Int32Array(buffer), (value) => (Number.isNaN(value) ? null : value))])));
}

const [block, ops] = [argv[2], argv[3]].map((path) => new Uint8Array(readFileSync(path)));
const { flame } = await flameStates(block, await unpack(ops));
const memory = flame.memory?.map((/** @type {any} */ { device, ...columns }) => ({ device, ...lists(columns) })) ?? null;
stdout.write(JSON.stringify({ ...flame, columns: lists(flame.columns), memory }));
