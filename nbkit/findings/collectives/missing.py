"""Finds calls that ranks of a group did not make, for which the others wait, and calls that nobody ends."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from nbkit import units
from nbkit.findings.collectives.dumps import Dumps, Group
from nbkit.findings.collectives.parting import left_out, parting_of
from nbkit.findings.collectives.words import at, call_text, evidence, most_frequent, of_ranks, ranks_text
from nbkit.findings.finding import Finding, rule

# A rank that is behind for less may just be about to make its call.
LEAST_WAIT_S = 1.0
NS_PER_S = 1e9
LOOK = "Look at the rank's own line: a branch, an exception or a loop that ends early there takes it past the call."
ENDED_THERE = "the latest call of all is one in which the ranks part"
FIRST = "Mend that call first: this follows from it."
NO_DUMP = "See whether the rank without a dump still runs, and in its log why it ended."
ALL_MADE = "Look at what runs on the devices, and at the network: every rank that is known made this call."
SNAPSHOT = "Dump again: if the rank is still behind then, it hangs."


@dataclass(frozen=True, eq=False)
class Missing:
    """Says that `ranks` did not make call `seq` of a group; `rows` are the calls of those that made it.

    `own` are the last calls there of the ranks, or the ones that they made in its place. `is_inside` says that they
    went on: each later call of theirs is one that the others make next. The dumps of `older` ranks are older than it.
    """

    group: Group
    seq: int
    ranks: Sequence[int]
    rows: Mapping[int, int]
    own: Mapping[int, int]
    is_inside: bool = False
    older: Sequence[int] = ()

    def waited_s(self, job: Dumps) -> float:
        """Returns for how many seconds the others waited, at most, when they dumped."""
        made = min(job.created_ns(row) for row in self.rows.values())
        return (max(float(job.about[rank]["dumped_ns"]) for rank in self.rows) - made) / NS_PER_S


def missing_calls(job: Dumps) -> list[Missing]:
    """Returns the first call of each group that ranks did not make."""
    return [one for group in job.groups if (one := _missing_of(job, group)) is not None]


def _missing_of(job: Dumps, group: Group) -> Missing | None:
    first = min(group.last.values(), default=0) + 1
    parting = parting_of(job, group)
    if parting is not None and parting.seq < first:
        if not parting.left_out:
            return None
        place = min(parting.left_out.values())
        ranks = [rank for rank, at_place in parting.left_out.items() if at_place == place]
        calls = {rank: calls[place] for rank, calls in group.calls.items() if place in calls}
        reference, mine = ({rank: calls[rank] for rank in of if rank in calls} for of in (parting.reference, ranks))
        return Missing(group, place, ranks, reference, mine, True)
    if first > max(group.last.values(), default=0):
        return None
    behind = [rank for rank, last in group.last.items() if last < first]
    rows = {rank: calls[first] for rank, calls in group.calls.items() if first in calls}
    if not rows:  # the rings of the others have dropped it: they missed the first that is left as well
        first = min(seq for calls in group.calls.values() for seq in calls if seq > first)
        rows = {rank: calls[first] for rank, calls in group.calls.items() if first in calls}
    made = min(job.created_ns(row) for row in rows.values())
    older = [rank for rank in behind if job.about[rank]["dumped_ns"] < made]
    ranks = [rank for rank in behind if rank not in older]
    own = {rank: group.calls[rank][group.last[rank]] for rank in ranks if group.last[rank]}
    if len(ranks) == 1 and ranks[0] in own and len(rows) > 1:
        inside = left_out(job, group, ranks[0], max(rows, key=lambda rank: group.last[rank]))
        if inside is not None:
            there = {rank: calls[inside] for rank, calls in group.calls.items() if inside in calls and rank in rows}
            return Missing(group, inside, ranks, there, {ranks[0]: group.calls[ranks[0]][inside]}, True)
    return Missing(group, first, ranks, rows, own, older=older)


@rule("error", "hint", rank=10)
def missing_rank(job: Dumps) -> Iterator[Finding]:
    """Ranks of a group did not make a collective, for which the others wait; a hint where they wait for less than a
    second, or where the rank itself waits in another group for a rank that misses a call there.

    Names the call, the ranks, the line of the others' call, and that of the ranks' last call. A rank whose dump is
    older than the call, or has dropped its calls of the group, is not blamed.
    """
    found = missing_calls(job)
    waits = {id(one): _waits_for(job, one, found) for one in found}
    for one in found:
        if one.older:
            told = f"call {one.seq:,} of group {one.group.name} was made after the dump of {ranks_text(one.older)}"
            job.notes.append(f"Nothing is said of who missed what there: {told}.")
        if not one.ranks or any(_is_in_place_of(job, other, one) for other in found):
            continue
        finding = _finding(job, one)
        cause, parted = waits[id(one)], _parted_before(job, one)
        if cause is not None and (_ends(one, waits) or len(cause.ranks) < len(one.ranks)):
            finding = replace(
                finding,
                severity="hint",
                message=f"{finding.message}, and waits there for {ranks_text(cause.ranks)}",
                advice=f"Mend what {ranks_text(cause.ranks)} missed first: this follows from it.",
            )
        elif parted:
            finding = replace(finding, severity="hint", message=f"{finding.message}; {ENDED_THERE}", advice=FIRST)
        yield finding


def _finding(job: Dumps, one: Missing) -> Finding:
    row, waited = next(iter(one.rows.values())), one.waited_s(job)
    is_snapshot = waited < LEAST_WAIT_S and not one.is_inside
    did = "left out" if one.is_inside else f"{'has' if len(one.ranks) == 1 else 'have'} not made"
    call = f"call {one.seq:,} of group {one.group.name}, {call_text(job, row)}"
    made = f"which {of_ranks(job, [*one.rows])} made{at(job, one.rows.values())}"
    went_on = f": each later call there is the one that the others make next, the first{at(job, one.own.values())}"
    return missing_rank.finding(
        severity="hint" if is_snapshot else "error",
        message=f"{of_ranks(job, one.ranks)} {did} {call}, {made}{went_on if one.is_inside else _last(job, one)}",
        advice=SNAPSHOT if is_snapshot else LOOK,
        source=most_frequent(job, one.rows.values()),
        count=len(one.ranks),
        evidence=evidence(job, one.group.name, row, one.seq, one.ranks, one.rows, waited_s=round(waited, 3)),
    )


def _last(job: Dumps, one: Missing) -> str:
    """Says where a rank was last: in this group, and in another one if its latest call is there."""
    if len(one.ranks) > 1:
        return ""
    (rank,) = one.ranks
    words = "; none there is known"
    if (own := one.own.get(rank)) is not None:
        words = f"; the last there is call {one.group.last[rank]:,}, {call_text(job, own)}{at(job, [own])}"
    latest = _latest(job, rank)
    if latest is None or latest[0] is one.group:
        return words
    group, seq = latest
    row = group.calls[rank][seq]
    did = "the latest of all is"
    if _is_same(job, row, next(iter(one.rows.values()))):
        did = "such a call was made instead as"
    return f"{words}; {did} call {seq:,} of group {group.name}, {call_text(job, row)}{at(job, [row])}"


def _latest(job: Dumps, rank: int) -> tuple[Group, int] | None:
    """Returns group and number of the latest call of a rank."""
    of = [(calls[group.last[rank]], group) for group in job.groups if (calls := group.calls.get(rank))]
    row, group = max(of, key=lambda pair: pair[0], default=(-1, None))
    return None if group is None else (group, int(job.seq[row]))


def _is_same(job: Dumps, row: int, other: int) -> bool:
    return bool(job.content[row] == job.content[other])


def _waits_for(job: Dumps, one: Missing, found: Sequence[Missing]) -> Missing | None:
    """Returns the call of another group in which all of these ranks wait for others."""
    for other in found:
        if other is one or not other.ranks or not one.ranks:
            continue
        latest = [_latest(job, rank) for rank in one.ranks]
        if all(
            place is not None and place[0] is other.group and place[1] >= other.seq and rank in other.rows
            for rank, place in zip(one.ranks, latest, strict=True)
        ):
            return other
    return None


def _ends(one: Missing, waits: Mapping[int, Missing | None]) -> bool:
    """Returns whether waiting for each other ends at a rank that does not wait: a circle has no such cause."""
    seen: set[int] = set()
    at_last: Missing | None = one
    while at_last is not None:
        if id(at_last) in seen:
            return False
        seen.add(id(at_last))
        at_last = waits[id(at_last)]
    return True


def _parted_before(job: Dumps, one: Missing) -> bool:
    """Returns whether the latest call of each of these ranks is one that the ranks made otherwise: they ended there."""
    for rank in one.ranks:
        latest = _latest(job, rank)
        parting = None if latest is None else parting_of(job, latest[0])
        if latest is None or parting is None or parting.group is one.group or latest[1] < parting.seq:
            return False
    return True


def _is_in_place_of(job: Dumps, wanted: Missing, one: Missing) -> bool:
    """Returns whether a rank made this call in the wrong group: it misses the same one in the other."""
    if wanted is one or len(wanted.ranks) != 1 or [*one.rows] != [*wanted.ranks] or wanted.is_inside:
        return False
    return _is_same(job, next(iter(wanted.rows.values())), one.rows[wanted.ranks[0]])


@rule("warning", "hint", rank=50)
def stalled(job: Dumps) -> Iterator[Finding]:
    """All ranks with a dump made the last call of a group, and have not ended it for a second or more; or a rank has no
    dump, so that it may be the one that the others wait for. A hint beside a call that was missed or made otherwise.
    """
    is_explained = any(parting_of(job, group) for group in job.groups) or any(one.ranks for one in missing_calls(job))
    for group in job.groups:
        last = {*group.last.values()}
        number = max(last, default=0)
        absent = [rank for rank in job.absent if group.members is None or rank in group.members]
        is_of_all = len(group.calls) + len(absent) >= len(job.ranks) + len(job.absent)
        absent = absent if group.members is not None or is_of_all else []
        if len(last) != 1 or not number or parting_of(job, group) is not None:
            continue
        rows = {rank: calls[number] for rank, calls in group.calls.items()}
        waiting = [rank for rank in rows if job.is_unfinished(group.name, rank, number)]
        made = max(map(job.created_ns, rows.values()))
        waited = (max(job.about[rank]["dumped_ns"] for rank in rows) - made) / NS_PER_S
        # A call that one rank has ended has all that it waited for; its dump may say so of others a moment later.
        is_waiting = len(waiting) == len(rows) and waited >= LEAST_WAIT_S and (len(rows) > 1 or bool(absent))
        if absent or is_waiting:
            found = _stalled(job, group, number, rows, waiting if is_waiting else [], absent, waited)
            yield replace(found, severity="hint") if is_explained else found


def _stalled(
    job: Dumps,
    group: Group,
    seq: int,
    rows: Mapping[int, int],
    waiting: Sequence[int],
    absent: Sequence[int],
    waited_s: float,
) -> Finding:
    row = next(iter(rows.values()))
    idle = [rank for rank in waiting if job.state(rows[rank]) == "scheduled"]
    idle = idle if len(idle) < len(waiting) else []
    words = [f"call {seq:,} of group {group.name}, {call_text(job, row)}{at(job, rows.values())}, "]
    if waiting:
        words.append(f"was made by {of_ranks(job, [*rows])} and not ended by {of_ranks(job, waiting)} ")
        words.append(f"after {units.duration(waited_s * 1e6)}")
    else:
        words.append(f"is the last of {of_ranks(job, [*rows])}")
    if idle:
        words.append(f"; {ranks_text(idle)} {'has' if len(idle) == 1 else 'have'} not begun it on the device")
    if absent:
        them = "it" if len(absent) == 1 else "them"
        words.append(f"; there is no dump of {ranks_text(absent)}, so that nothing is known of {them}")
    return stalled.finding(
        severity="warning" if waiting or len(absent) <= len(rows) else "hint",
        message="".join(words),
        advice=NO_DUMP if absent else ALL_MADE,
        source=most_frequent(job, rows.values()),
        evidence=evidence(job, group.name, row, seq, absent or idle, rows),
    )
