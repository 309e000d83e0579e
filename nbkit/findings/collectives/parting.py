"""Finds the first call of a group that its ranks made otherwise: another collective, other sizes, another dtype."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from nbkit.findings.collectives.dumps import Dumps, Group
from nbkit.findings.collectives.words import at, call_text, evidence, most_frequent, of_ranks
from nbkit.findings.finding import Finding, Rule, rule

OP, SIZE, DTYPE = "op", "size", "dtype"
ORDER = (
    "Let all ranks of a group make the same collectives in the same order: look for a branch, an exception, a loop "
    "over a set or dict, or a second thread at these lines."
)
UNLIKE = (
    "Give tensors of the same size on every rank (pad them, or all_gather the sizes first), or use an op that takes "
    "other sizes."
)
CAST = "Cast to one dtype on every rank before the call."
NOBODY = ": no rank can be told to be the one that is wrong"


@dataclass(frozen=True, eq=False)
class Parting:
    """Says which ranks made call `seq` as most did (`reference`) and which did not (`others`), with their rows.

    `is_clear` says that the others can be blamed. `left_out` has the call that a rank left out,
    where each of its later calls is the next of the others.
    """

    group: Group
    seq: int
    kind: str
    reference: Mapping[int, int]
    others: Mapping[int, int]
    is_clear: bool
    left_out: Mapping[int, int] = field(default_factory=dict)


def parting_of(job: Dumps, group: Group) -> Parting | None:
    """Returns the first call of a group in which its ranks part; null where none do."""
    if group.name not in job.partings:
        job.partings[group.name] = _parting(job, group)
    found: Parting | None = job.partings[group.name]
    return found


def _parting(job: Dumps, group: Group) -> Parting | None:
    seq = job.parted.get(job.names.index(group.name))
    if seq is None:
        return None
    classes: dict[int, dict[int, int]] = {}
    for rank, calls in group.calls.items():
        if seq in calls:
            classes.setdefault(int(job.content[calls[seq]]), {})[rank] = calls[seq]
    if len(classes) < 2:
        return None
    largest, *rest = sorted(classes.values(), key=len, reverse=True)
    others = {rank: row for one in rest for rank, row in one.items()}
    contents = [job.contents[code] for code in classes]
    kind = OP if len({one.op for one in contents}) > 1 else SIZE if len({one.numels for one in contents}) > 1 else DTYPE
    is_clear = len(largest) > len(others) and _is_seen(job, largest, others) and _is_one_group(job, group, seq)
    best = max(largest, key=lambda rank: group.last[rank])
    skipped = {rank: left_out(job, group, rank, best) for rank in others} if is_clear else {}
    return Parting(
        group, seq, kind, largest, others, is_clear, {one: at for one, at in skipped.items() if at is not None}
    )


def _is_seen(job: Dumps, *sides: Mapping[int, int]) -> bool:
    """Returns whether the lines of both sides are known, or of none: a call without a line beside others with one was
    made by no code of this thread, and who makes it where is chance.
    """
    return len({job.line(row) is None for rows in sides for row in rows.values()}) == 1


def _is_one_group(job: Dumps, group: Group, seq: int) -> bool:
    """Returns whether these ranks are known to share a group: by its members, as all do, or by earlier calls."""
    is_of_all = "(default_pg)" in group.name or group.name in ("unnamed 0", "unnamed 1")
    return (
        group.members is not None or is_of_all or any(min(calls, default=seq) < seq for calls in group.calls.values())
    )


def left_out(job: Dumps, group: Group, rank: int, reference: int) -> int | None:
    """Returns the number of the call that a rank left out: from there on each of its calls is the reference's next.

    Calls are the same if content and line are. Null where that is not so, or where as few calls follow that the two may
    only have changed places.
    """
    mine, theirs, last = group.calls[rank], group.calls[reference], group.last[rank]
    numbers = (number for number in mine if number in theirs)
    seq = next((number for number in numbers if _key(job, mine[number]) != _key(job, theirs[number])), None)
    if seq is None or job.line(mine[seq]) is None or seq + 1 not in theirs:
        return None
    if any(number not in mine for number in range(seq, last + 1)):
        return None
    followed = [number for number in range(seq, last + 1) if number + 1 in theirs]
    is_swapped = last > seq and _key(job, mine[seq + 1]) == _key(job, theirs[seq])
    is_shifted = all(_key(job, mine[number]) == _key(job, theirs[number + 1]) for number in followed)
    is_ended = last + 1 == group.last[reference]
    return seq if is_shifted and not is_swapped and (last > seq or is_ended) else None


def _key(job: Dumps, row: int) -> tuple[int, str | None]:
    return int(job.content[row]), job.line(row)


def _findings(job: Dumps, kind: str, of: Rule, advice: str) -> Iterator[Finding]:
    for group in job.groups:
        parting = parting_of(job, group)
        first = min(group.last.values(), default=0) + 1
        if parting is None or parting.kind != kind or parting.seq > first or parting.left_out:
            continue
        yield _finding(job, parting, of, advice)


def _finding(job: Dumps, one: Parting, of: Rule, advice: str) -> Finding:
    row, other = next(iter(one.reference.values())), next(iter(one.others.values()))
    sides = [
        f"{of_ranks(job, [*rows])} made {call_text(job, next(iter(rows.values())))}{at(job, rows.values())}"
        for rows in ((one.others, one.reference) if one.is_clear else (one.reference, one.others))
    ]
    joint = ", where " if one.is_clear else "; "
    clear = "" if one.is_clear else NOBODY
    return of.finding(
        message=f"in call {one.seq:,} of group {one.group.name} {joint.join(sides)}{clear}",
        advice=advice,
        source=most_frequent(job, one.others.values()),
        count=len(one.others),
        evidence=evidence(
            job,
            one.group.name,
            row,
            one.seq,
            one.others if one.is_clear else (),
            one.reference,
            others=[*one.others],
            other_row=int(other),
        ),
    )


@rule("error", rank=20)
def other_collective(job: Dumps) -> Iterator[Finding]:
    """Ranks of a group made different collectives as the same call, such as an all_reduce and a broadcast.

    Most ranks are the reference. None is blamed where as many made the one as the other, where one side has no line of
    code, or where nothing tells that they share the group.
    """
    return _findings(job, OP, other_collective, ORDER)


@rule("error", rank=30)
def other_size(job: Dumps) -> Iterator[Finding]:
    """Ranks of a group gave other numbers of elements to a collective that needs the same of all: gloo then gives
    wrong numbers without an error, NCCL hangs.
    """
    return _findings(job, SIZE, other_size, UNLIKE)


@rule("error", rank=40)
def other_dtype(job: Dumps) -> Iterator[Finding]:
    """Ranks of a group gave tensors of other dtypes to the same collective."""
    return _findings(job, DTYPE, other_dtype, CAST)
