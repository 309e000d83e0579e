"""Finds what a divergence is: each kind is applied to the left's values, and one that gives the right's is named."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from nbkit.analysis.align.kinds.activations import activation
from nbkit.analysis.align.kinds.case import Case
from nbkit.analysis.align.kinds.inside.branches import branch_kind
from nbkit.analysis.align.kinds.inside.variants import attention_kind
from nbkit.analysis.align.kinds.linear import gain, missing_bias, missing_residual, scale
from nbkit.analysis.align.kinds.masks import mask_inverted, mask_shifted, missing_mask
from nbkit.analysis.align.kinds.norms.epsilon import epsilon
from nbkit.analysis.align.kinds.norms.gains import other_gain
from nbkit.analysis.align.kinds.norms.place import norm_place
from nbkit.analysis.align.kinds.not_finite import nan
from nbkit.analysis.align.kinds.operands import own_weight, swapped_operands
from nbkit.analysis.align.kinds.orders import permuted_heads, repeated_heads, transposed
from nbkit.analysis.align.kinds.rotary.base import rotary_base
from nbkit.analysis.align.kinds.rotary.layout import rotary_layout
from nbkit.analysis.align.kinds.rotary.positions import position_shifted
from nbkit.analysis.align.kinds.rounding import accumulation_dtype
from nbkit.analysis.align.kinds.weights import other_weights, untied_weight
from nbkit.analysis.align.region import Kind, Piece, Region

Test = Callable[[Case], Kind | None]
# From special to general.
KINDS: dict[str, Test] = {
    "mask_shifted": mask_shifted,
    "mask_inverted": mask_inverted,
    "missing_mask": missing_mask,
    "accumulation_dtype": accumulation_dtype,
    "epsilon": epsilon,
    "rotary_base": rotary_base,
    "rotary_layout": rotary_layout,
    "position_shifted": position_shifted,
    "repeated_heads": repeated_heads,
    "swapped_operands": swapped_operands,
    "transposed": transposed,
    "permuted_heads": permuted_heads,
    "scale": lambda case: scale(case) or gain(case),
    "missing_residual": missing_residual,
    "missing_bias": missing_bias,
    "activation": activation,
    "norm_place": norm_place,
    "untied_weight": lambda case: untied_weight(case) or own_weight(case),
    "other_weights": lambda case: other_gain(case) or other_weights(case),
    "nan": nan,
}


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
    """Returns the first kind that explains a difference, other than NaN; known vectors come before them all."""
    if case.is_plain:
        return scale(case)
    if (kind := other_gain(case)) is not None:
        return kind
    return next((kind for test in KINDS.values() if test is not nan and (kind := test(case)) is not None), None)


def _pairs(region: Region) -> list[Region]:
    """Returns the region, then the one with the right computed from the left's inputs."""
    if not region.left.size or not region.right.size:
        return []
    local = region.local
    if local is None or local.shape != region.left.shape:
        return [region]
    return [region, replace(region, right=local, local=None)]
