// Which ops made what an op reads, which read what it made, and the ops below it, as nbkit/analysis/graph/dataflow.py.

import { rowsWhere } from "./tensors.js";

/** Returns the op and all ops called below it, in call order. @param {Float64Array} parent @param {number} opId @returns {Set<number>} */
export function withChildren(parent, opId) {
  const linked = new Set([opId]);
  for (let isMore = true; isMore; ) {
    const before = linked.size;
    // A child is called after its parent, so that one pass finds all but the oddest nesting.
    for (let row = opId; row < parent.length; row += 1) if (linked.has(parent[row])) linked.add(row);
    isMore = linked.size > before;
  }
  return new Set([...linked].sort((left, right) => left - right));
}

/** Returns the ops outside a group that made its inputs, and ops outside that read its outputs, in call order of the readers. @param {import("./tensors.js").Tensors} tensors @param {Set<number>} group */
export function neighbors(tensors, group) {
  const linked = links(tensors, group);
  return {
    producers: linked.filter(({ reader, maker }) => group.has(reader) && !group.has(maker)).map(({ maker }) => maker),
    consumers: linked.filter(({ reader, maker }) => !group.has(reader) && group.has(maker)).map(({ reader }) => reader),
  };
}

/** Returns the forward ops whose gradients a group computes. @param {Float64Array} forward @param {Set<number>} group */
export function forwardOps(forward, group) {
  const ids = [...group].map((opId) => forward[opId]).filter((opId) => !Number.isNaN(opId));
  return [...new Set(ids)].sort((left, right) => left - right);
}

/** Returns the ops that compute gradients of a group. @param {Float64Array} forward @param {Set<number>} group */
export function backwardOps(forward, group) {
  return rowsWhere(forward.length, (row) => group.has(forward[row]));
}

/** Returns which ops read a tensor of the group, and which made it last before. @param {import("./tensors.js").Tensors} tensors @param {Set<number>} group @returns {{reader: number, maker: number}[]} */
function links({ count, op_id: opId, tensor_id: tensorId, position, isOutput }, group) {
  const near = new Set(rowsWhere(count, (row) => group.has(opId[row])).map((row) => tensorId[row]));
  const rows = rowsWhere(count, (row) => near.has(tensorId[row]));
  /** @type {Map<number, number[]>} */
  const made = new Map();
  for (const row of rows) {
    if (!made.has(tensorId[row])) made.set(tensorId[row], []);
    if (isOutput(row)) made.get(tensorId[row])?.push(opId[row]);
  }
  const inputs = rows.filter((row) => !isOutput(row)).sort((left, right) => opId[left] - opId[right] || position[left] - position[right]);
  return inputs.flatMap((row) => {
    const before = (made.get(tensorId[row]) ?? []).filter((maker) => maker < opId[row]);
    return before.length ? [{ reader: opId[row], maker: Math.max(...before) }] : [];
  });
}
