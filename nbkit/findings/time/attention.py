"""Finds attention that is written by hand: a product, softmax, and a product, where one fused op would do."""

import numpy as np

from nbkit.findings.finding import Finding, rule
from nbkit.findings.time.cases import AttentionCase, Place, saving
from nbkit.findings.time.step import Flags, Ints, TimedStep
from nbkit.ops.families import BATCHED_PRODUCTS, DROPOUTS, SOFTMAX, family

LEAST_SHARE = 0.1
PRODUCTS = family("BATCHED_PRODUCTS matmul einsum")
# What stands between the scores and the softmax, and between that and the values, in attention: scale, mask, casts,
# dropout, views, and what makes a mask.
BETWEEN = family("FORMS PARTS ARITHMETIC MASKED_FILLS TRIANGLES COMPARISONS CONSTANTS RANGES DROPOUTS LOGIC tensor")
MOST_BETWEEN = 16
MASKS = family("MASKED_FILLS ADDS baddbmm")
ADVICE = (
    "Use torch.nn.functional.scaled_dot_product_attention (with is_causal=True or attn_mask), which does not write the "
    'scores to memory; in transformers attn_implementation="sdpa".'
)


@rule("hint", rank=70)
def attention(step: TimedStep) -> list[Finding]:
    """Batched product, softmax, batched product in one call of a module, with only scale, mask, casts, dropout and
    views between; 10 % of the step.
    """
    rows = step.main_ops[step.in_phase("forward")[step.main_ops]]
    product, between = _batched_products(step)[rows], step.named(*BETWEEN)[rows]
    found: list[Ints] = []
    for at in np.flatnonzero(step.named(*SOFTMAX)[rows]).tolist():
        first, last = _nearest(product, between, at, -1), _nearest(product, between, at, 1)
        if first is not None and last is not None and _is_in_one_module(step, rows[first], rows[at], rows[last]):
            found.append(rows[first : last + 1])
    if not found:
        return []
    ops = np.concatenate(found)
    time_us = float(step.total_us[ops].sum()) + step.backward_us(step.below(ops))
    if not step.is_much(time_us, LEAST_SHARE):
        return []
    gain = saving(step.measure, [(_case(step, one), float(step.total_us[one].sum())) for one in found])
    if (saved := step.saved(gain, time_us)) is None:
        return []
    # The call as a whole stands at its softmax.
    softmax = np.array([one[step.named(*SOFTMAX)[one]][0] for one in found])
    calls = "1 attention is" if len(found) == 1 else f"{len(found):,} calls of attention are"
    backward = ", with the backward pass" if step.has_backward else ""
    parts = "single ops (product, softmax, product)"
    message = f"{calls} made of {parts}, which take {step.share(time_us)}{backward}{saved}"
    finding = attention.finding(message, ADVICE, effect_us=time_us, evidence={"ops": len(ops)})
    return [step.finding(finding, softmax)]


def _batched_products(step: TimedStep) -> Flags:
    """Returns which ops are a product of two batches of matrices: the scores of attention, not a linear layer."""
    return np.asarray(step.holding(step.named(*BATCHED_PRODUCTS)) & step.named(*PRODUCTS))


def _case(step: TimedStep, ops: Ints) -> AttentionCase | None:
    """Returns the sizes of one attention; null where they are not known, or its products are written otherwise."""
    batched = np.flatnonzero(step.named(*BATCHED_PRODUCTS))
    # What an op calls stands behind it, before the next one.
    first, last = (step.inputs(batched[np.searchsorted(batched, product)]) for product in (ops[0], ops[-1]))
    if first is None or last is None or first.dtypes[-1] is None:
        return None
    query, key, weights, value = *first.shapes[-2:], *last.shapes[-2:]
    if weights != (*query[:-1], key[-1]) or value[:-1] != (key[0], key[-1]):
        return None
    named = {step.kinds[code] for code in step.codes[ops]}
    return AttentionCase(
        heads=query[0],
        queries=query[1],
        keys=key[2],
        width=query[2],
        value_width=value[2],
        is_masked=not named.isdisjoint(MASKS),
        has_dropout=not named.isdisjoint(DROPOUTS),
        place=Place(first.dtypes[-1], first.device, step.has_backward),
    )


def _nearest(product: Flags, between: Flags, at: int, way: int) -> int | None:
    """Returns where the next product is, if nothing but what attention has stands before it."""
    for place in range(at + way, at + way * (MOST_BETWEEN + 1), way):
        if not 0 <= place < len(product):
            return None
        if product[place]:
            return place
        if not between[place]:
            return None
    return None


def _is_in_one_module(step: TimedStep, first: int, softmax: int, last: int) -> bool:
    """Returns whether both products are of one call of a module; the softmax may be in a module of its own below it."""
    model, module, call = (step.ops[name].to_numpy(object) for name in ("model", "module", "module_call"))
    if not isinstance(module[first], str) or (model[first], module[first]) != (model[last], module[last]):
        return False
    return bool(call[first] == call[last] and str(module[softmax]).startswith(module[first]))
