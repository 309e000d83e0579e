// The layers of a level: the rank of each of its boxes, and their order within a rank with few crossings.
//
// Sugiyama's steps with typed arrays: dagre takes a millisecond per box and bend, a second for a level of 100 ops with
// forward and backward, and overflows the stack on chains of thousands.

/**
 * Places in ranks: boxes 0..count-1, then bends, where long lines pass a rank.
 *
 * @typedef {object} Layers
 * @property {number} count boxes
 * @property {number[]} rank of boxes and bends
 * @property {number[][]} rows of each rank its boxes and bends, from the left
 * @property {[number, number][]} steps from each place to one of the next rank
 * @property {number[][]} paths of each pair of boxes its places from the upper to the lower one
 */

const SWEEPS = 6;

/** @param {number} count @param {[number, number][]} pairs of different boxes; cycles are allowed @returns {Layers} */
export function layersOf(count, pairs) {
  const downward = oriented(count, pairs);
  const rank = ranks(count, downward);
  const { steps, paths } = bent(rank, downward);
  const rows = firstRows(rank, steps);
  const [above, below] = [neighbors(rank.length, steps, 1), neighbors(rank.length, steps, 0)];
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const isDown = sweep % 2 === 0;
    const order = isDown ? rows : [...rows].reverse();
    const position = placesIn(rows, rank.length);
    for (const row of order) sortRow(row, isDown ? above : below, position);
  }
  return { count, rank, rows, steps, paths };
}

/** Turns pairs around so that the first box comes first in an order without cycles. @param {number} count @param {[number, number][]} pairs */
function oriented(count, pairs) {
  const position = topological(count, pairs);
  return pairs.map(([a, b]) => /** @type {[number, number]} */ (position[a] < position[b] ? [a, b] : [b, a]));
}

/** Returns the position of each box in an order along the pairs; where they make a cycle the first box is next. @param {number} count @param {[number, number][]} pairs */
function topological(count, pairs) {
  const [next, open] = [neighbors(count, pairs, 0), new Int32Array(count)];
  for (const [, to] of pairs) open[to] += 1;
  const position = new Int32Array(count).fill(-1);
  const ready = Array.from({ length: count }, (_, box) => box).filter((box) => open[box] === 0).reverse();
  for (let at = 0, first = 0; at < count; at += 1) {
    while (ready.length && position[/** @type {number} */ (ready.at(-1))] >= 0) ready.pop();
    while (position[first] >= 0) first += 1;
    const box = ready.pop() ?? first;
    position[box] = at;
    for (const to of [...next[box]].reverse()) if ((open[to] -= 1) === 0 && position[to] < 0) ready.push(to);
  }
  return position;
}

/** Returns the rank of each box: below all that it reads, sources right above what reads them. @param {number} count @param {[number, number][]} pairs */
function ranks(count, pairs) {
  const next = neighbors(count, pairs, 0);
  const position = topological(count, pairs);
  const order = Array.from(position.keys()).sort((a, b) => position[a] - position[b]);
  /** @type {number[]} */
  const rank = new Array(count).fill(0);
  const isSource = new Array(count).fill(true);
  for (const box of order) {
    for (const to of next[box]) {
      rank[to] = Math.max(rank[to], rank[box] + 1);
      isSource[to] = false;
    }
  }
  for (const box of order) if (isSource[box] && next[box].length) rank[box] = Math.min(...next[box].map((to) => rank[to])) - 1;
  return rank;
}

/** Bends where lines pass ranks; lines of one box share them as long as they go. Adds to `rank`. @param {number[]} rank @param {[number, number][]} pairs */
function bent(rank, pairs) {
  /** @type {[number, number][]} */
  const steps = [];
  /** @type {Map<number, number[]>} */
  const chains = new Map();
  const paths = pairs.map(([from, to]) => {
    const chain = chains.get(from) ?? [from];
    chains.set(from, chain);
    while (chain.length < rank[to] - rank[from]) {
      rank.push(rank[from] + chain.length);
      steps.push([/** @type {number} */ (chain.at(-1)), rank.length - 1]);
      chain.push(rank.length - 1);
    }
    const path = [...chain.slice(0, rank[to] - rank[from]), to];
    steps.push([path[path.length - 2], to]);
    return path;
  });
  return { steps, paths };
}

/** Returns the positions next to each position. @param {number} count @param {[number, number][]} steps @param {0 | 1} end 0: those below, 1: those above */
export function neighbors(count, steps, end) {
  /** @type {number[][]} */
  const lists = Array.from({ length: count }, () => []);
  for (const step of steps) lists[step[end]].push(step[1 - end]);
  return lists;
}

/** Ranks in the order in which a walk along the steps meets them. @param {number[]} rank @param {[number, number][]} steps */
function firstRows(rank, steps) {
  const next = neighbors(rank.length, steps, 0);
  const rows = Array.from({ length: 1 + rank.reduce((most, level) => Math.max(most, level), -1) }, () => /** @type {number[]} */ ([]));
  const isMet = new Uint8Array(rank.length);
  const first = Array.from(rank.keys()).sort((a, b) => rank[a] - rank[b] || a - b);
  for (const start of first) {
    const waiting = [start];
    while (waiting.length) {
      const at = /** @type {number} */ (waiting.pop());
      if (isMet[at]) continue;
      isMet[at] = 1;
      rows[rank[at]].push(at);
      waiting.push(...[...next[at]].reverse());
    }
  }
  return rows;
}

/** @param {number[][]} rows @param {number} count */
function placesIn(rows, count) {
  const position = new Float64Array(count);
  for (const row of rows) row.forEach((at, index) => (position[at] = index));
  return position;
}

/** Orders a row by the mean place of the neighbors; those without keep theirs. @param {number[]} row @param {number[][]} beside @param {Float64Array} position */
function sortRow(row, beside, position) {
  const wanted = new Map(row.map((at) => [at, beside[at].length ? beside[at].reduce((sum, neighbor) => sum + position[neighbor], 0) / beside[at].length : position[at]]));
  row.sort((a, b) => /** @type {number} */ (wanted.get(a)) - /** @type {number} */ (wanted.get(b)) || position[a] - position[b]);
  row.forEach((at, index) => (position[at] = index));
}
