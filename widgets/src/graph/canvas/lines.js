// Lines of the picture on a canvas: curves in the gaps between ranks, straight along the ranks that they pass.

/** @param {CanvasRenderingContext2D} context @param {[number, number][]} points */
export function strokePath(context, points) {
  context.moveTo(points[0][0], points[0][1]);
  for (let at = 1; at < points.length; at += 1) {
    const [[left, top], [right, bottom]] = [points[at - 1], points[at]];
    // Points come in pairs: a gap is crossed to each odd one, a rank is passed to each even one.
    if (at % 2 === 0 || left === right) context.lineTo(right, bottom);
    else context.bezierCurveTo(left, (top + bottom) / 2, right, (top + bottom) / 2, right, bottom);
  }
}

/** Returns the rectangle around the points of a line. @param {[number, number][]} points */
export function bounds(points) {
  let [left, right] = [Infinity, -Infinity];
  for (const [x] of points) [left, right] = [Math.min(left, x), Math.max(right, x)];
  const [top, bottom] = [points[0][1], /** @type {[number, number]} */ (points.at(-1))[1]];
  return { x: left, y: top, width: right - left + 1, height: bottom - top + 1 };
}

/** Returns where a label of a line stands: in the last gap before its end. @param {[number, number][]} points @returns {[number, number]} */
export function labelPlace(points) {
  const [[left, top], [right, bottom]] = [points[points.length - 2], points[points.length - 1]];
  return [(left + right) / 2, (top + bottom) / 2];
}
