"""Tests kinds inside attention: the one that a side computes, with one thing changed, gives the other side's result."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

import numpy as np

from nbkit.analysis.align.kinds.case import Case, Floats, norm, number_text, shifts
from nbkit.analysis.align.kinds.inside.attention import Attention, Bools, Named, attentions
from nbkit.analysis.align.kinds.inside.fused import fused
from nbkit.analysis.align.kinds.orders import block_keys, first_equal
from nbkit.analysis.align.kinds.rotary.base import BASES, base_of, frequencies, powers, step_frequencies
from nbkit.analysis.align.kinds.rotary.turns import LAYOUTS, Complexes, fitted, turned, widths
from nbkit.analysis.align.region import Kind

Variant = tuple[str, str, Floats]  # kind, message with {here} and {there}, result
MOST_SHIFT = 3
# Steps to a factor of scores, their width for a derivative, and what is no factor.
FITTING, STEP, READ = 12, 1e-5, 1e-3


def attention_kind(case: Case) -> Kind | None:
    """Tests each change of the attention that one side computes step by step."""
    if not case.is_same_shape or case.is_weight or (case.is_finite and not case.is_clear):
        return None
    for here in case.sides:
        for attention, own, other in chain(attentions(case, here), fused(case, here)):
            for name, message, result in chain(_variants(attention), _fitted(attention, other)):
                # A row that is wholly masked may hold anything.
                rows = np.isfinite(result).all(-1) & np.isfinite(other).all(-1)
                kind = case.fits(name, message, result[rows], other[rows], own[rows])
                if kind is not None and rows.mean() > 0.5:
                    return replace(kind, message=message.format(here=here.name, there=here.other))
    return None


def _variants(attention: Attention) -> Iterator[Variant]:
    yield from _other_masks(attention)
    yield from _factors(attention)
    if attention.query is not None and attention.key is not None:
        yield from _rotary(attention, attention.query, attention.key)
        yield from _repeats(attention, attention.query, attention.key)
        yield from _exchanges(attention, attention.query, attention.key)


def _other_masks(attention: Attention) -> Iterator[Variant]:
    scores, masked = attention.scores, attention.masked
    if not masked.any() or not _is_known_everywhere(attention):
        return
    for shift in shifts(MOST_SHIFT):
        text = f"The mask of the {{there}} one is that of the {{here}} one, shifted by {shift} along the diagonal."
        yield "mask_shifted", text, attention.result(scores, _shifted(masked, shift))
    text = "The {there} one masks what the {here} one does not, and the reverse."
    yield "mask_inverted", text, attention.result(scores, ~masked)
    text = "The {there} one masks nothing of what the {here} one masks, as if it had no mask."
    yield "missing_mask", text, attention.result(scores, np.zeros_like(masked))


def _is_known_everywhere(attention: Attention) -> bool:
    return bool((attention.scores[attention.masked] > -100).all())


def _shifted(masked: Bools, shift: int) -> Bools:
    """Returns a mask moved along its rows; what comes in is as what stands at that end, the last one masked."""
    moved = np.roll(masked, shift, axis=-1)
    if shift > 0:
        moved[..., :shift] = masked[..., :1]
    else:
        moved[..., shift:] = masked[..., -1:] | masked.any(-1, keepdims=True) | (shift < 0)
    return moved


def _factors(attention: Attention) -> Iterator[Variant]:
    width = attention.query.value.shape[-1] if attention.query is not None else 0
    if not width and attention.values is not None:
        width = attention.values.value.shape[-1]
    readings = [(2.0, ""), (0.5, "")]
    if width:
        forms = ((width**-0.5, "1/sqrt({})"), (width**0.5, "sqrt({})"), (1 / width, "1/{}"), (float(width), "{}"))
        readings = [*((value, ", " + text.format(width)) for value, text in forms), *readings]
    for factor, reading in readings:
        text = f"The scores of the {{there}} one are {number_text(factor)} times those of the {{here}} one{reading}."
        yield "scale", text, attention.result(factor * attention.scores, attention.masked)


def _fitted(attention: Attention, other: Floats) -> Iterator[Variant]:
    """Yields the scores times the factor that fits the other side's result best, by Gauss-Newton steps."""
    factor = 1.0
    for _ in range(FITTING):
        made, beside = (attention.result(one * factor * attention.scores, attention.masked) for one in (1, 1 + STEP))
        slope, rest = (
            np.nan_to_num(one, posinf=0, neginf=0) for one in ((beside - made) / (STEP * factor), other - made)
        )
        factor = float(np.clip(factor + np.vdot(slope, rest) / max(norm(slope) ** 2, 1e-300), factor / 2, factor * 2))
    if abs(factor - 1) > READ:
        text = f"The scores of the {{there}} one are {factor:.4g} times those of the {{here}} one"
        if attention.query is not None:
            text += f": scaled by {attention.factor * factor:.4g}, not {attention.factor:.4g}"
        yield "scale", f"{text}.", attention.result(factor * attention.scores, attention.masked)


def _rotary(attention: Attention, query: Named, key: Named) -> Iterator[Variant]:
    """Yields queries and keys that are turned in the other layout, by other bases, or not alike."""
    for layout in LAYOUTS:
        for width in widths(query.value.shape[-1]):
            first, second = (_unturned(one, attention.pool, layout, width) for one in (query, key))
            if first is None or second is None:
                continue
            other = LAYOUTS[1 - LAYOUTS.index(layout)]
            both = [turned(one.value, steps, other, 2) for one, steps in (first, second)]
            text = f"The rotary embedding is {layout} on the {{here}}, {other} on the {{there}}."
            yield "rotary_layout", text, attention.result(attention.product(both[0], both[1]), attention.masked)
            yield from _bases(attention, first, second, layout, width)
            return


def _bases(
    attention: Attention, first: tuple[Named, Complexes], second: tuple[Named, Complexes], layout: str, width: int
) -> Iterator[Variant]:
    solved = base_of(step_frequencies(second[1])) if len(second[1]) > 1 else None
    if solved is None:
        return
    distances = [(abs(float(np.log(one / solved))), one) for one in BASES]
    own = min(distances)[1] if min(distances)[0] < 0.05 else solved
    for base in BASES:
        if base == own:
            continue
        inverse = frequencies(base, width // 2)
        both = [turned(one.value, powers(inverse, steps), layout, 2) for one, steps in (first, second)]
        text = f"The rotary base is {number_text(own)} on the {{here}}, {number_text(base)} on the {{there}}."
        yield "rotary_base", text, attention.result(attention.product(both[0], both[1]), attention.masked)


def _unturned(one: Named, pool: list[Named], layout: str, width: int) -> tuple[Named, Complexes] | None:
    """Returns the value that was turned, and by what."""
    for other in pool:
        if other.value.shape == one.value.shape and norm(other.value - one.value) > 1e-3 * norm(one.value):
            steps = fitted(other.value, one.value, layout, width, 2, 1e-2)
            if steps is not None:
                return other, steps
    return None


def _repeats(attention: Attention, query: Named, key: Named) -> Iterator[Variant]:
    """Yields keys and values whose heads are repeated all together rather than one by one, and the reverse."""
    if attention.values is None:
        return
    heads = key.value.shape[1]
    source = first_equal(block_keys(key.value[0].reshape(heads, -1), heads))
    distinct = np.unique(source)
    times = heads // len(distinct)
    if len(distinct) in (1, heads) or len(distinct) * times != heads:
        return
    orders = (np.repeat(distinct, times), "one by one"), (np.tile(distinct, times), "all together")
    for order, how in orders:
        if not np.array_equal(order, source):
            text = f"The {{there}} one repeats its {len(distinct)} key and value heads {how}, the {{here}} one not so."
            scores = attention.product(query.value, key.value[:, order])
            values = attention.values.value[:, order]
            yield "repeated_heads", text, attention.result(scores, attention.masked, values)


def _exchanges(attention: Attention, query: Named, key: Named) -> Iterator[Variant]:
    """Yields two of queries, keys and values in the place of each other."""
    if query.value.shape == key.value.shape:
        text = f"The {{there}} one takes {query.name} and {key.name} in the place of each other."
        scores = attention.product(key.value, query.value)
        yield "swapped_operands", text, attention.result(scores, attention.masked)
    values = attention.values
    if values is None or values.value.shape != key.value.shape:
        return
    text = f"The {{there}} one takes {key.name} and {values.name} in the place of each other."
    scores = attention.product(query.value, values.value)
    yield "swapped_operands", text, attention.result(scores, attention.masked, key.value)
    for other in attention.pool:
        if other.value.shape == values.value.shape and other.name != values.name:
            text = f"The {{there}} one takes {other.name} where the {{here}} one takes {values.name}."
            yield "swapped_operands", text, attention.result(attention.scores, attention.masked, other.value)
