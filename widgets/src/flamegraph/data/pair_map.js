// A hash map from two integers to one, on typed arrays.

export class PairMap {
  /** @param {number} [capacity] */
  constructor(capacity = 1024) {
    const slots = 2 ** Math.ceil(Math.log2(Math.max(capacity * 2, 16)));
    this.size = 0;
    this.mask = slots - 1;
    this.first = new Int32Array(slots);
    this.second = new Int32Array(slots);
    this.value = new Int32Array(slots).fill(-1);
  }

  /** Finds the slot of a pair, or the free one where it belongs. @param {number} first @param {number} second */
  slot(first, second) {
    let at = Math.imul(Math.imul(first, 0x9e3779b1) ^ second, 0x85ebca6b);
    at = (at ^ (at >>> 15)) & this.mask;
    while (this.value[at] !== -1 && (this.first[at] !== first || this.second[at] !== second)) at = (at + 1) & this.mask;
    return at;
  }

  /** Returns the value of a pair, -1 if there is none. @param {number} first @param {number} second */
  get(first, second) {
    return this.value[this.slot(first, second)];
  }

  /** @param {number} first @param {number} second @param {number} value from 0 */
  set(first, second, value) {
    const at = this.slot(first, second);
    if (this.value[at] === -1) this.size += 1;
    this.first[at] = first;
    this.second[at] = second;
    this.value[at] = value;
    if (this.size * 2 > this.mask) this.grow();
  }

  grow() {
    const larger = new PairMap(this.mask + 1);
    for (let at = 0; at < this.value.length; at += 1) {
      if (this.value[at] !== -1) larger.set(this.first[at], this.second[at], this.value[at]);
    }
    Object.assign(this, larger);
  }
}
