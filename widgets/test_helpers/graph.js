// Made-up graphs as the widget unpacks them.

/** @param {(string | null)[]} texts */
function coded(texts) {
  const values = [...new Set(texts.filter((text) => text !== null))];
  return { values, codes: Int32Array.from(texts, (text) => (text === null ? -1 : values.indexOf(text))) };
}

/** @param {any[]} rows @param {string[]} texts @param {string[]} numbers */
function table(rows, texts, numbers) {
  return {
    count: rows.length, texts: Object.fromEntries(texts.map((name) => [name, coded(rows.map((row) => row[name] ?? null))])),
    numbers: Object.fromEntries(numbers.map((name) => [name, Float64Array.from(rows, (row) => row[name] ?? NaN)])),
  };
}

/**
 * The data of one graph. Nodes and parts are partial rows; edges are pairs of node rows.
 * @param {{nodes: any[], edges?: [number | null, number][], parts?: any[], values?: any[], trees?: string[], overlay?: any}} rows
 * @returns {any}
 */
export function graphOf({ nodes, edges = [], parts = [], values = [], trees = [], overlay = null }) {
  const named = (/** @type {any} */ row, /** @type {number} */ at) => ({ graph: "g", kind: "op", name: `n${at}`, op: `op${at}`, ...row });
  return {
    title: "a graph", name: "a model", incomplete: null, figures: [], notes: [], graphs: [...new Set(nodes.map((row) => row.graph ?? "g"))], trees, values, overlay,
    nodes: table(nodes.map(named), ["graph", "kind", "op", "name", "module", "role", "phase", "inserted", "dtype", "shape", "device", "sbp", "mesh", "ring", "peer", "attributes", "source", "overlay"],
      ["part_id", "line", "op_id", "overlay", "overlay_rows", ...values.map(({ name }) => name)]),
    edges: table(edges.map(([src, dst], at) => ({ src: src ?? NaN, dst, dst_port: 0, tensor: `t${at}`, dtype: "float32", shape: "[2, null]" })),
      ["slot", "tensor", "dtype", "shape", "sbp"], ["src", "src_port", "dst", "dst_port"]),
    parts: table(parts.map((row) => ({ graph: "g", ...row })), ["graph", "name", "module", "type", "phase", "role", "evidence", "dtypes", "tied_to", "overlay"],
      ["parent_id", "number", "repeat_of", "nodes", "params", "counted_params", "counted_bytes", "tied_params", "unsized_params", "overlay", "overlay_rows"]),
  };
}

/** Layers of two nodes each, one after the other, in a part that is called model; with a node before and after it. @param {number} layers */
export function layered(layers) {
  const parts = [{ name: "model", module: "", type: "Model" }, ...Array.from({ length: layers }, (_, at) => (
    { name: String(at), module: `layers.${at}`, type: "Layer", role: "block", parent_id: 0, number: at, repeat_of: 1 }))];
  const inside = Array.from({ length: layers }, (_, at) => [{ part_id: at + 1, role: "norm" }, { part_id: at + 1, role: "mlp" }]).flat();
  const nodes = [{ kind: "input", op: null }, { part_id: 0, role: "embedding" }, ...inside, { part_id: 0, role: "head" }];
  const edges = nodes.slice(1).map((_, at) => /** @type {[number, number]} */ ([at, at + 1]));
  return graphOf({ nodes, edges, parts });
}

/** The data of two graphs, l and r, that are compared. @param {Parameters<typeof graphOf>[0]} rows of both @param {any[]} correspondence its rows */
export function compared(rows, correspondence) {
  const sides = ["l", "r"].map((graph) => ({ name: `graph ${graph}`, graphs: [graph] }));
  return { ...graphOf(rows), comparison: { sides, rows: table(correspondence, ["level", "relation", "message"], ["left_id", "right_id"]) } };
}
