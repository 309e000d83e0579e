// The camera of the picture: which part of it is in view, and how near.

/** @typedef {{x: number, y: number, scale: number}} Camera left and top of the view in pixels at 1:1, and the scale */
/** @typedef {{width: number, height: number}} Size @typedef {{x: number, y: number, width: number, height: number}} Area */

const NEAREST = 3;
/** A picture that fits is not made larger than this, and one that is shown whole may become this small. */
const READABLE = 1;
const FARTHEST = 0.01;
/** Smallest scale at which boxes can be read. */
const LEAST = 0.45;
const MARGIN = 16;

/** Returns the camera that shows an area whole, in the middle. @param {Area} area @param {Size} view @returns {Camera} */
export function fitted(area, view) {
  const room = { width: Math.max(view.width - 2 * MARGIN, 1), height: Math.max(view.height - 2 * MARGIN, 1) };
  const scale = limited(Math.min(room.width / Math.max(area.width, 1), room.height / Math.max(area.height, 1), READABLE));
  return centered(area, scale, view);
}

/** Returns the camera at a scale with an area in the middle. @param {Area} area @param {number} scale @param {Size} view @returns {Camera} */
export function centered(area, scale, view) {
  return { x: area.x + area.width / 2 - view.width / 2 / scale, y: area.y + area.height / 2 - view.height / 2 / scale, scale };
}

/** Tells whether all of a picture can be read at once. @param {Size} size @param {Size} view */
export function fits(size, view) {
  return fitted({ x: 0, y: 0, ...size }, view).scale >= LEAST;
}

/** Returns what a picture opens with: whole if it can be read so, else its top at a size that can. @param {Size} size @param {Size} view @returns {Camera} */
export function opening(size, view) {
  if (fits(size, view)) return fitted({ x: 0, y: 0, ...size }, view);
  const scale = limited(Math.max(Math.min((view.width - 2 * MARGIN) / Math.max(size.width, 1), READABLE), LEAST));
  const across = centered({ x: 0, y: 0, ...size }, scale, view);
  return { ...across, y: Math.min(across.y, -MARGIN / scale) };
}

/** @param {number} scale */
function limited(scale) {
  return Math.min(Math.max(scale, FARTHEST), NEAREST);
}

/** Zooms by a factor about a point of the view that stays where it is. @param {Camera} camera @param {number} factor @param {{x: number, y: number}} about @returns {Camera} */
export function zoomed(camera, factor, about) {
  const scale = limited(camera.scale * factor);
  return { x: camera.x + about.x / camera.scale - about.x / scale, y: camera.y + about.y / camera.scale - about.y / scale, scale };
}

/** Moves the camera by pixels of the view. @param {Camera} camera @param {number} across @param {number} down @returns {Camera} */
export function panned(camera, across, down) {
  return { ...camera, x: camera.x + across / camera.scale, y: camera.y + down / camera.scale };
}

/** Returns the nearest camera that has some of the picture in view. @param {Camera} camera @param {Size} size @param {Size} view @returns {Camera} */
export function kept(camera, size, view) {
  const [across, down] = [view.width / camera.scale, view.height / camera.scale];
  const within = (/** @type {number} */ value, /** @type {number} */ extent, /** @type {number} */ room) =>
    Math.min(Math.max(value, Math.min(extent, room) / 4 - room), extent - Math.min(extent, room) / 4);
  return { ...camera, x: within(camera.x, size.width, across), y: within(camera.y, size.height, down) };
}

/** Returns a camera that shows an area, moved no more than needed; as near as now, unless nothing could be read or it has no room. @param {Camera} camera @param {Area} area @param {Size} view @param {number} [least] @returns {Camera} */
export function revealing(camera, area, view, least = 0.5) {
  const scale = Math.max(camera.scale, least);
  if (scale !== camera.scale) return centered(area, scale, view);
  const margin = MARGIN / scale;
  const moved = (/** @type {number} */ from, /** @type {number} */ start, /** @type {number} */ extent, /** @type {number} */ room) => {
    if (extent + 2 * margin > room) return start <= from + room - 2 * margin && start + extent >= from + 2 * margin && start >= from ? from : start - margin;
    return Math.min(Math.max(from, start + extent + margin - room), start - margin);
  };
  return { scale, x: moved(camera.x, area.x, area.width, view.width / scale), y: moved(camera.y, area.y, area.height, view.height / scale) };
}

/** Extends an area by what is around it, as far as there is room in view. @param {Area} area @param {number} most @param {Camera} camera @param {Size} view @returns {Area} */
export function widened({ x, y, width, height }, most, { scale }, view) {
  const [across, down] = [[width, view.width], [height, view.height]].map(([extent, room]) => Math.min(Math.max((room - 2 * MARGIN) / scale - extent, 0) / 2, most));
  return { x: x - across, y: y - down, width: width + 2 * across, height: height + 2 * down };
}

/** Returns the camera that keeps a point of the picture where it was in view, though the picture around it has changed. @param {Camera} camera @param {Area} before @param {Area} after @returns {Camera} */
export function following(camera, before, after) {
  return { ...camera, x: camera.x + after.x + after.width / 2 - before.x - before.width / 2, y: camera.y + after.y - before.y };
}

/** Interpolates between two cameras, `at` from 0 to 1. @param {Camera} start @param {Camera} end @param {number} at @returns {Camera} */
export function between(start, end, at) {
  const eased = 1 - (1 - at) ** 3;
  const mix = (/** @type {number} */ a, /** @type {number} */ b) => a + (b - a) * eased;
  return { x: mix(start.x, end.x), y: mix(start.y, end.y), scale: mix(start.scale, end.scale) };
}
