// The flame graph's state out of the data of a report, in the columns that the notebook sends; see flame_payload.py.

import { framesOf } from "./flame_frames.js";
import { unpack } from "../shared/unpack.js";

/** Returns the states by trait; `ops` is the unpacked block of the op table of the same trace. @param {Uint8Array} packed @param {any} ops */
export async function flameStates(packed, ops) {
  const { flame, base, difference } = await unpack(packed);
  return { flame: flame && traceState(flame, ops), base: base && traceState(base, base.ops), difference };
}

/** @param {any} packed the state without its ops @param {any} ops */
function traceState({ ops: _, track, ...rest }, ops) {
  return { ...rest, ...framesOf(ops, track) };
}
