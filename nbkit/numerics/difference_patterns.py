"""Says in words what a wrong result looks like beside its reference; nbkit/capture/diff/patterns finds it.

Evidence is JSON data and holds no element of a tensor. All patterns but `stale` and `accumulated` have
`explained_fraction`, the share of the squared error that the pattern explains, and `residual_noise_ratio`, the noise
ratio of what it leaves; what else they have:

- scaled: `factor`, and `factor_spread`, the 5th and 95th percentile of actual / expected; negated; zero; nan; constant;
- offset: `offset`, and `offset_spread` likewise of actual - expected;
- other_eps: `eps`, in as many digits as rounding leaves, and `given_eps`;
- clipped, flushed: `element_fraction`, the share of elements that end at the largest magnitude, or are zero as they are
  smaller than all others; all other elements are right;
- unchanged: as before the op, which should have written to it; copied_input: `input`; other_result: `result`;
- transposed: `axes`, `is_reshaped` where these have other sizes, so that memory is read in the other order;
- shifted: `shift`, `axis` (null: in memory), `is_wrapped` where the end comes in at the other side;
- permuted, repeated: `axis`, `order` (which slice of the reference stands where, the first MOST); reordered: elements;
- rounded_inputs, rounded_result: `format`, of results also `bits` of the mantissa and `rounding` (nearest, cut);
- stale, accumulated: `earlier_op_id`, the call whose result it is, or is added to; null if that is not in the trace;
- beyond: `axis` (null: in memory), `index`, the first wrong one; rows: `axis`, `indices` (the first MOST), `count`;
  block: `bounds`, [start, end] of each axis; elements: `indices` (the first MOST), `count`. These four also have
  `content` (zero, NaN, wrong) and `element_fraction`, the share of the elements in it; all other elements are right.
"""

from collections.abc import Callable, Mapping
from typing import Any

Evidence = Mapping[str, Any]
# Slices and elements that are listed.
MOST = 16
# Those that fit into a sentence.
NAMED = 4


def pattern_text(pattern: str, evidence: Evidence) -> str:
    """Returns the predicate of a sentence about a result: "is 1.25 x the reference"."""
    return TEXTS[pattern](evidence)


def _transposed(evidence: Evidence) -> str:
    first, second = evidence["axes"]
    how = "read as if axes {} and {} were transposed" if evidence["is_reshaped"] else "with axes {} and {} transposed"
    return f"is the reference {how.format(first, second)}"


def _shifted(evidence: Evidence) -> str:
    along = "in memory" if evidence["axis"] is None else f"along axis {evidence['axis']}"
    end = ", its end wrapped around" if evidence["is_wrapped"] else ""
    return f"is the reference shifted by {evidence['shift']} {along}{end}"


def _offset(evidence: Evidence) -> str:
    sign = "-" if evidence["offset"] < 0 else "+"
    return f"is the reference {sign} {abs(evidence['offset']):.6g}"


def _rounded_result(evidence: Evidence) -> str:
    how = "rounded" if evidence["rounding"] == "nearest" else "cut"
    to = evidence["format"] or f"{evidence['bits']} mantissa bits"
    return f"is the reference {how} to {to}"


def _earlier(evidence: Evidence) -> str:
    op_id = evidence["earlier_op_id"]
    return "an earlier call of the op" + ("" if op_id is None else f" (op {op_id})")


def _beyond(evidence: Evidence) -> str:
    last = evidence["index"] - 1
    where = f"element {last} in memory" if evidence["axis"] is None else f"index {last} of axis {evidence['axis']}"
    return f"is right up to {where}, and {evidence['content']} after it"


def _rows(evidence: Evidence) -> str:
    indices, count = evidence["indices"], evidence["count"]
    if count > NAMED and indices == [*range(indices[0], indices[0] + len(indices))] and count <= len(indices):
        where = f"indices {indices[0]} to {indices[-1]}"
    elif count > NAMED:
        where = f"{count:,} indices ({', '.join(map(str, indices[:NAMED]))}, ...)"
    else:
        where = f"{'index' if count == 1 else 'indices'} {_listed(indices)}"
    return f"is right except at {where} of axis {evidence['axis']}{_content(evidence, is_one=count == 1)}"


def _block(evidence: Evidence) -> str:
    block = ", ".join(f"{start}:{end}" for start, end in evidence["bounds"])
    return f"is right except in the block [{block}]{_content(evidence, is_one=True)}"


def _elements(evidence: Evidence) -> str:
    count = evidence["count"]
    named = f" at {_listed(evidence['indices'])}" if count <= NAMED else ""
    noun = "1 element" if count == 1 else f"{count:,} elements"
    return f"is right except for {noun}{named}{_content(evidence, is_one=count == 1)}"


def _content(evidence: Evidence, *, is_one: bool) -> str:
    if evidence["content"] == "wrong":
        return ""
    return f", which {'is' if is_one else 'are'} {evidence['content']}"


def _listed(items: list[Any]) -> str:
    texts = [*map(str, items)]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


TEXTS: dict[str, Callable[[Evidence], str]] = {
    "zero": lambda evidence: "is zero throughout",
    "nan": lambda evidence: "is NaN throughout",
    "constant": lambda evidence: "has the same value throughout",
    "unchanged": lambda evidence: "is as it was before the op",
    "copied_input": lambda evidence: f"is input {evidence['input']} as it is",
    "other_result": lambda evidence: f"is what result {evidence['result']} should be",
    "negated": lambda evidence: "is the reference with the other sign",
    "scaled": lambda evidence: f"is {evidence['factor']:.6g} x the reference",
    "offset": _offset,
    "other_eps": lambda evidence: f"is as with eps={evidence['eps']:g} instead of {evidence['given_eps']:g}",
    "clipped": lambda evidence: "is right up to a magnitude at which all larger elements end",
    "flushed": lambda evidence: "is right except for the smallest elements, which are zero",
    "transposed": _transposed,
    "shifted": _shifted,
    "repeated": lambda evidence: f"is slice {evidence['order'][0]} along axis {evidence['axis']}, repeated",
    "permuted": lambda evidence: f"is the reference with the slices along axis {evidence['axis']} in another order",
    "reordered": lambda evidence: "holds the elements of the reference in another order",
    "beyond": _beyond,
    "rows": _rows,
    "block": _block,
    "elements": _elements,
    "rounded_result": _rounded_result,
    "rounded_inputs": lambda evidence: f"is that of inputs rounded to {evidence['format']}",
    "stale": lambda evidence: f"is that of {_earlier(evidence)}",
    "accumulated": lambda evidence: f"is the reference added to the result of {_earlier(evidence)}",
}
