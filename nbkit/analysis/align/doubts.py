"""Says what stands against "the two agree" where no difference was found: unknown values, other arguments."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from nbkit.analysis.align.align import Alignment
from nbkit.analysis.align.allowance import NARROW, region_of
from nbkit.analysis.align.errors import given_matches, metrics_of
from nbkit.analysis.align.kinds.arguments import differing_arguments
from nbkit.analysis.align.matches import Match
from nbkit.analysis.align.matching.by_value import same_of
from nbkit.analysis.align.relations import relative_error
from nbkit.analysis.align.side import Side
from nbkit.divergence.arguments import Pairs, in_words
from nbkit.ops.families import BATCH_NORMS
from nbkit.ops.kinds import SCALES
from nbkit.ops.names import packet_of
from nbkit.step.decode import arguments_of
from nbkit.units import and_more, general

ONNX_BATCH_NORM = "BatchNormalization"
# In a narrow dtype a statistic of right results differs by up to so many eps: the largest element by half of one.
NARROW_SAME = 4.0
# Casting before a product, not after it, rounds more than once: an element is off by more than one ulp then.
ONCE, ROUNDED = 1.0, 0.501
# A statistic has to differ by so many times as much as those of what an op reads, for its difference to begin there.
STEP = 8.0


def not_known(alignment: Alignment) -> dict[str, Any] | None:
    """Returns of how many pairs statistics alone are known, and of how many those differ; null where there are none.

    `first` and `error` are the name and the difference of the first pair whose statistics differ beyond rounding though
    those of what it reads do not; null where there is none.
    """
    pairs = [match for match in alignment.matches.all if alignment.is_missing(match)]
    if not pairs:
        return None
    left, right = alignment.left, alignment.right
    distances = {match.left: statistics_error(left, right, match) for match in alignment.matches.all}
    limit = _limit(left, right)
    differing = [match for match in pairs if distances[match.left] > limit]
    first = next((match for match in differing if _begins(left, match, distances)), None)
    return {
        "results": len(pairs),
        "differ": len(differing) if first else 0,
        "first": None if first is None else left.results[first.left].name,
        "error": None if first is None else distances[first.left],
    }


def norms_out_of_training(alignment: Alignment) -> list[str]:
    """Says that an exporter has written batch norms of a training step as those of inference; empty if it has not."""
    sides = (
        [result for result in side.results if packet_of(result.op) in norms]
        for side, norms in ((alignment.left, BATCH_NORMS), (alignment.right, {ONNX_BATCH_NORM}))
    )
    trained, exported = ([arguments_of(result.arguments) for result in results] for results in sides)
    if not any(of.get("training") for of in trained) or not exported or any(of.get("training_mode") for of in exported):
        return []
    return [
        "The left batch norms take the statistics of the batch, as in training, and the right ones their running "
        "statistics: torch.onnx.export writes BatchNormalization without training_mode in any mode. Results and "
        "gradients behind them differ for that reason; call eval() on the model to compare what was exported."
    ]


def _begins(side: Side, match: Match, distances: dict[int, float]) -> bool:
    read = [distances.get(source, np.inf) for source in side.results[match.left].sources]
    return distances[match.left] > STEP * max(read, default=0.0)


def _limit(left: Side, right: Side) -> float:
    eps = max(left.coarsest, right.coarsest)
    return NARROW_SAME * eps if eps >= NARROW else same_of(left, right)


def statistics_error(left: Side, right: Side, match: Match) -> float:
    """Returns the largest difference of rms, mean and extremes of a pair, over rms; inf where NaN or Inf differ."""
    pair = left.moments[match.left], right.moments[match.right]
    if np.isnan(pair[0][0]) or np.isnan(pair[1][0]):
        return 0.0
    if (pair[0][5:] != pair[1][5:]).any():
        return float("inf")
    scale = float(max(pair[0][0], pair[1][0])) or 1.0
    # Of a tensor of zeros the others are not over rms.
    values = [np.concatenate([row[:1], row[[1, 3, 4]] * (row[0] or 1.0)]) for row in pair]
    return float(np.abs(values[0] - values[1]).max() / scale)


def doubts(alignment: Alignment) -> Iterator[str]:
    """Yields a sentence for each set of arguments that differ, for casts, and for what is returned beside tensors."""
    yield from _other_arguments(alignment)
    yield from _cast_before(alignment)
    yield from _other_returned(alignment)


def _other_returned(alignment: Alignment) -> Iterator[str]:
    """Yields which numbers, texts and arrays differ, and that nothing is returned where ops have no partner."""
    sides, matches = (alignment.left, alignment.right), alignment.matches
    left, right = (side.execution for side in sides)
    for name in [name for name in left.plain if name in right.plain]:
        pair = left.plain[name], right.plain[name]
        if not _is_same(*pair, alignment.tolerance):
            what = f"the returned {name}" if name else "what is returned"
            yield f"But {what} is {_shown(pair[0])} on the left, {_shown(pair[1])} on the right{_apart(*pair)}."
    is_whole = len(left.results) == len(matches.right_of) and len(right.results) == len(matches.left_of)
    returned = [
        *left.outputs,
        *right.outputs,
        *(one for run in (left, right) for one in run.plain.values() if one is not None),
    ]
    if left.origin == right.origin == "torch" and not returned and not is_whole:
        yield "Neither returns anything, so that ops of one side alone were compared with nothing."


def _is_same(left: Any, right: Any, tolerance: float) -> bool:
    try:
        ours, theirs = np.asarray(left), np.asarray(right)
        if all(one.dtype.kind in "fciub" for one in (ours, theirs)):
            near = ours.shape == theirs.shape and np.allclose(ours, theirs, rtol=tolerance, atol=0.0, equal_nan=True)
            return bool(near)
        return bool(np.array_equal(ours, theirs))
    except (TypeError, ValueError, OverflowError):
        return True


def _apart(left: Any, right: Any) -> str:
    if not all(isinstance(one, np.ndarray) and one.dtype.kind in "fiu" for one in (left, right)):
        return ""
    is_same_shape = left.shape == right.shape and left.size
    return f": the arrays differ by up to {general(float(np.abs(left - right).max()), 2)}" if is_same_shape else ""


def _shown(value: Any) -> str:
    return f"an array of shape {value.shape}" if isinstance(value, np.ndarray) and value.size > 1 else repr(value)[:80]


def _other_arguments(alignment: Alignment) -> Iterator[str]:
    """Yields a sentence for each set of arguments that differ, where they change a result or are other numbers."""
    left, right = alignment.left, alignment.right
    found: dict[str, list[Match]] = {}
    for match in sorted(alignment.matches.left_of.values(), key=lambda match: match.left):
        ours, theirs = left.results[match.left], right.results[match.right]
        if not (ours.arguments and theirs.arguments):
            continue
        others = differing_arguments(left, right, match.left, match.right)
        local = alignment.local.get(match.right)
        if others and ((local is not None and local.error > 0) or _has_other_numbers(others)):
            found.setdefault(f"{ours.op} has other arguments: {in_words(others)}", []).append(match)
    for words, matches in found.items():
        errors = [local.error for match in matches if (local := alignment.local.get(match.right)) is not None]
        places = f"{words} ({left.results[matches[0].left].name}{and_more(len(matches) - 1)})"
        size = f"; what it gives differs by {general(max(errors), 2)} for that" if max(errors, default=0.0) > 0 else ""
        yield f"{places}{size}."


def _cast_before(alignment: Alignment) -> Iterator[str]:
    """Yields where one side first multiplies what it has cast to a narrow dtype, and the other one casts the product.

    Both read the same but for one rounding, and what they give differs by more than one.
    """
    sides = alignment.left, alignment.right
    pairs = {(one.left, one.right): one for one in alignment.matches.all}
    for numbers, match in sorted(pairs.items()):
        eps = [side.eps[number] for side, number in zip(sides, numbers, strict=True)]
        does = {side.does[number] for side, number in zip(sides, numbers, strict=True)}
        if max(eps) < NARROW or eps[0] == eps[1] or not does.issubset(SCALES):
            continue
        sources = (side.results[number].sources for side, number in zip(sides, numbers, strict=True))
        read = [pairs[place] for place in zip(*sources, strict=False) if place in pairs]
        ulps = [float(found.get("max_ulp", np.inf)) for found in metrics_of(*sides, [match, *read])]
        if len(ulps) < 3 or not ONCE < ulps[0] < np.inf or max(ulps[1:]) > ROUNDED:
            continue
        which = int(eps[1] > eps[0])
        narrow, wide = (sides[one].results[numbers[one]] for one in (which, 1 - which))
        yield (
            f"The {('left', 'right')[1 - which]} side multiplies in {wide.dtype} and casts then, the "
            f"{('left', 'right')[which]} one casts to {narrow.dtype} first: {narrow.name} is up to "
            f"{general(ulps[0], 2)} ulp off, more than one rounding ({narrow.module or narrow.op})."
        )
        return


def _has_other_numbers(others: Pairs) -> bool:
    """Returns whether an argument is a fraction on both sides, such as an epsilon: no axis, no size."""
    return any(all(isinstance(value, float) for value in pair) for pair in others.values())


def one_sided(alignment: Alignment) -> dict[str, Any] | None:
    """Returns what one side alone does in a narrow dtype, if it changes what it leads to; null where nothing does.

    `names` are the results, `error` is the largest change, and `dtype` the one of which that is rounding.
    """
    names, worst, dtype = dict[str, None](), 0.0, ""
    for found, error, of in (*_inside(alignment), *_besides(alignment)):
        names |= dict.fromkeys(found)
        worst, dtype = max((worst, dtype), (error, of))
    return {"names": [*names], "error": worst, "dtype": dtype} if names else None


def _inside(alignment: Alignment) -> Iterator[tuple[list[str], float, str]]:
    """Yields the steps without a partner that lead to a pair, where the right ones give something else."""
    left, right, matches = alignment.left, alignment.right, alignment.matches
    given = given_matches(left, right, matches, alignment.differing)
    lefts = {match.left for match in given.values()}
    for number, local in alignment.local.items():
        match = matches.left_of[number]
        if local.eps < NARROW or not 0 < local.error < np.inf:
            continue
        steps = [
            side.results[one].name
            for side, end, known, taken in (
                (left, match.left, lefts, matches.right_of),
                (right, number, given, matches.left_of),
            )
            for one in region_of(side, end, known)
            if one not in known and one not in taken and side.is_main[one] and not side.is_passing[one]
        ]
        if steps:
            yield steps, local.error, _narrow_dtype(alignment, match)


def _besides(alignment: Alignment) -> Iterator[tuple[list[str], float, str]]:
    """Yields ops that give nearly what they read, so that the other side has one partner for both."""
    matches = alignment.matches
    for match in matches.all:
        for side, which, number, other in (
            (alignment.left, 0, match.left, match.right),
            (alignment.right, 1, match.right, match.left),
        ):
            result = side.results[number]
            first = matches.of(1 - which)[other]
            is_second = (first.right if which else first.left) in result.sources
            if not is_second or side.is_passing[number] or side.eps[number] < NARROW:
                continue
            read = side.value(first.right if which else first.left), side.value(number)
            if read[0] is None or read[1] is None or read[0].size != read[1].size:
                continue
            if error := relative_error(read[0].reshape(-1), read[1].reshape(-1)):
                yield [result.name], error, result.dtype


def _narrow_dtype(alignment: Alignment, match: Match) -> str:
    sides = (alignment.left, match.left), (alignment.right, match.right)
    side, number = max(sides, key=lambda pair: pair[0].eps[pair[1]])
    return side.results[number].dtype
