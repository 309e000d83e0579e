// How a time differs from run to run of a repeated step; nbkit/analysis/query/groups.py says the same in the kernel.

/** Returns median, IQR or least of a time over the runs that have it; NaN where none has. @param {Float64Array[]} runs @param {string} how */
export function overRuns(runs, how) {
  return Float64Array.from(runs[0] ?? [], (_, row) => {
    const times = Float64Array.from(runs.map((run) => run[row]).filter((time) => !Number.isNaN(time))).sort();
    if (!times.length) return NaN;
    return how === "least" ? times[0] : how === "middle" ? quantile(times, 0.5) : quantile(times, 0.75) - quantile(times, 0.25);
  });
}

/** @param {Float64Array} times in order @param {number} part */
function quantile(times, part) {
  const at = (times.length - 1) * part;
  const below = Math.floor(at);
  return times[below] + (times[Math.min(below + 1, times.length - 1)] - times[below]) * (at - below);
}
