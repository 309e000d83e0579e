// The place of a tooltip.

/** Returns where a tooltip goes: right below the point, or on its other side where there is no room. @param {{x: number, y: number}} point @param {{width: number, height: number}} size @param {{width: number, height: number}} room @param {number} [gap] */
export function tooltipPlace({ x, y }, size, room, gap = 12) {
  const left = x + gap + size.width <= room.width ? x + gap : x - gap - size.width;
  const top = y + gap + size.height <= room.height ? y + gap : y - gap - size.height;
  return { left: Math.max(4, Math.min(left, room.width - size.width - 4)), top: Math.max(4, top) };
}
