// Levels that are too long to be read: their repeats folded, and runs of ops put into groups.

/** Children of a level up to which it stays as it is, and how many a group of a longer one holds at least. */
export const MOST = 60;
const LEAST = 12;

/**
 * Groups the repeats of each form among children. A level that holds nothing else stays as it is.
 * @template T
 * @param {T[]} children
 * @param {(child: T) => number} formOf what all repeats of a form have in common; -1 for what repeats nothing
 * @param {(children: T[]) => T} group makes the child that holds these
 * @returns {T[]}
 */
export function foldRepeats(children, formOf, group) {
  /** @type {Map<number, T[]>} */
  const forms = new Map();
  for (const child of children) {
    const form = formOf(child);
    if (form < 0) continue;
    const members = forms.get(form);
    if (members) members.push(child);
    else forms.set(form, [child]);
  }
  if (forms.size === 1 && [...forms.values()][0].length === children.length) return children;
  return children.flatMap((child) => {
    const members = forms.get(formOf(child)) ?? [];
    if (members.length < 2) return [child];
    return members[0] === child ? [group(members)] : [];
  });
}

/**
 * Groups children in at most `MOST` groups of runs, of which each may hold groups again; short levels stay as they are. Leaves
 * are grouped before what holds others is.
 * @template T
 * @param {T[]} children
 * @param {(child: T) => boolean} isLeaf
 * @param {(children: T[]) => T} group
 * @returns {T[]}
 */
export function groupRuns(children, isLeaf, group) {
  if (children.length <= MOST) return children;
  const holders = children.filter((child) => !isLeaf(child)).length;
  const few = holders < MOST / 3 ? runs(children, isLeaf).flatMap((run) => (isLeaf(run[0]) ? pieces(run, group) : run)) : children;
  return few.length <= MOST ? few : pieces(few, group);
}

/** Splits children into runs of leaves and of others. @template T @param {T[]} children @param {(child: T) => boolean} isLeaf */
function runs(children, isLeaf) {
  /** @type {T[][]} */
  const grouped = [];
  for (const child of children) {
    const last = grouped.at(-1);
    if (last && isLeaf(last[0]) === isLeaf(child)) last.push(child);
    else grouped.push([child]);
  }
  return grouped;
}

/** Splits a run in a few pieces of one length; a short one stays as it is. @template T @param {T[]} run @param {(children: T[]) => T} group @returns {T[]} */
function pieces(run, group) {
  if (run.length <= LEAST) return run;
  const count = Math.min(Math.ceil(run.length / (MOST / 2)), MOST / 3);
  if (count === 1) return [group(run)];
  const length = Math.ceil(run.length / count);
  const parts = Array.from({ length: Math.ceil(run.length / length) }, (_, at) => run.slice(at * length, (at + 1) * length));
  return parts.map((part) => group(part.length > MOST ? pieces(part, group) : part));
}
