"""Finds what a divergence is: each kind is applied to the left's values, and one that gives the right's is named."""

from dataclasses import replace

import numpy as np

from nbkit.analysis.align.kinds.case import Case
from nbkit.analysis.align.kinds.inside.branches import branch_kind
from nbkit.analysis.align.kinds.inside.variants import attention_kind
from nbkit.analysis.align.kinds.linear import scale
from nbkit.analysis.align.kinds.not_finite import nan
from nbkit.analysis.align.kinds.registry import kind_tests
from nbkit.analysis.align.region import Kind, Piece, Region


def kind_of(region: Region) -> Kind | None:
    """Returns the kind that a divergence is of; null where none explains it, as a wrong name costs more than none."""
    with np.errstate(all="ignore"):
        for pair in _pairs(region):
            if (kind := _found(Case(pair))) is not None:
                return kind
        if (kind := _kind_of_parameter(region)) is not None:
            return kind
        for pair in _pairs(region):
            case = Case(pair, with_inner=True)
            has_inner = len(region.left_ops) > 1 or len(region.right_ops) > 1
            kind = (_found(case) if has_inner else None) or attention_kind(case) or branch_kind(case)
            if kind is not None:
                return kind
        # The last: what gives NaN says more than NaN does.
        return next((kind for pair in _pairs(region) if (kind := nan(Case(pair))) is not None), None)


def _kind_of_parameter(region: Region) -> Kind | None:
    """Returns the kind of the one parameter that stands inside on both sides with other values."""
    if region.kind != "op":
        return None
    sides = [[piece for piece in pieces if _is_state(piece)] for pieces in (region.left_ops, region.right_ops)]
    if len(sides[0]) != 1 or len(sides[1]) != 1:
        return None
    left, right = sides[0][0].value, sides[1][0].value
    assert left is not None and right is not None
    if left.shape != right.shape:
        return None
    kind = _found(Case(Region(left, right, kind="parameter", agreed=region.agreed)))
    return None if kind is None else replace(kind, message=f"{kind.message} (parameter {sides[0][0].result.name})")


def _is_state(piece: Piece) -> bool:
    return piece.result.kind in ("parameter", "buffer") and piece.value is not None


def _found(case: Case) -> Kind | None:
    """Returns the first kind that explains a difference, other than NaN."""
    if case.is_plain:
        return scale(case)
    return next(filter(None, (test(case) for test in kind_tests() if test is not nan)), None)


def _pairs(region: Region) -> list[Region]:
    """Returns the region, then the one with the right computed from the left's inputs."""
    if not region.left.size or not region.right.size:
        return []
    local = region.local
    if local is None or local.shape != region.left.shape:
        return [region]
    return [region, replace(region, right=local, local=None)]
