"""A fault inside a region is named although only the result of a fused op on the other side shows it."""

from dataclasses import replace

import numpy as np
import pytest

from nbkit.analysis.align.kinds.find import kind_of
from tests.analysis.align.kinds.regions import angles, causal, masked, noisy, piece, randn, region, rotated, softmax

Q, K, V = (randn(2, 4, 16, 8, seed=seed) for seed in (1, 2, 3))
GROUPED = randn(2, 2, 16, 8, seed=4), randn(2, 2, 16, 8, seed=5)


def attend(q=Q, k=K, v=V, scale=8**-0.5, mask=None, base=1e4, layout="half-split", repeat=np.repeat):
    """Returns the result of attention with rotary embeddings, and all that was made on the way."""
    mask = causal(16) if mask is None else mask
    turned = [rotated(one, angles(16, 8, base), layout) for one in (q, k)]
    if k.shape[1] < 4:
        turned[1], v = (
            repeat(one, 2, axis=1) if repeat is np.repeat else np.tile(one, (1, 2, 1, 1)) for one in (turned[1], v)
        )
    scores = turned[0] @ turned[1].swapaxes(-1, -2) * np.float32(scale)
    low = masked(scores, mask)
    steps = {"qr": turned[0], "kr": turned[1], "vr": v, "scores": scores, "low": low, "p": softmax(low)}
    out = (steps["p"] @ v).swapaxes(1, 2).reshape(2, 16, 32)
    return out, [piece(name, value) for name, value in steps.items()]


def strict():
    mask = causal(16, shift=-1)
    mask[0, 0] = False
    return mask


FAULTS = {
    "scale": ({"scale": 0.125}, "0.353553 times"),
    "mask_shifted": ({"mask": causal(16, shift=1)}, "shifted by 1"),
    "mask_shifted: strict": ({"mask": strict()}, "shifted by -1"),
    "missing_mask": ({"mask": np.zeros((16, 16), bool)}, "The right one masks nothing of what"),
    "rotary_base": ({"base": 5e5}, "500,000 on the right"),
    "rotary_layout": ({"layout": "interleaved"}, "interleaved on the right"),
    "swapped_operands: q, k": ({"q": K, "k": Q}, "in the place of"),
    "swapped_operands: v": ({"v": K}, "k where the left one takes v"),
}


def faulty(changes, k=K, v=V):
    left, steps = attend(k=k, v=v)
    right, _ = attend(**{"k": k, "v": v, **changes})
    return region(left, right, [piece("q", Q), piece("k", k), piece("v", v)], left_ops=steps)


@pytest.mark.parametrize("name", FAULTS)
def test_fault_in_attention_is_named(name):
    changes, words = FAULTS[name]
    kind = kind_of(noisy(faulty(changes)))
    assert kind is not None
    assert kind.name == name.partition(":")[0]
    assert words in kind.message


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_named_where_the_left_is_fused(name):
    one = faulty(FAULTS[name][0])
    turned = replace(one, left=one.right, right=one.left, left_ops=one.right_ops, right_ops=one.left_ops)
    kind = kind_of(noisy(turned))
    assert kind is not None
    assert kind.name == name.partition(":")[0]


def test_two_bases_of_which_one_is_nearly_the_usual_one_are_not_called_the_same():
    (left, steps), (right, _) = attend(base=1.02e4), attend(base=1e4)
    assert kind_of(region(left, right, [piece("q", Q), piece("k", K), piece("v", V)], left_ops=steps)) is None


def test_order_of_repeated_heads_is_named():
    k, v = GROUPED
    kind = kind_of(faulty({"repeat": np.tile}, k, v))
    assert kind is not None
    assert kind.name == "repeated_heads"
    assert "2 key and value heads" in kind.message


@pytest.mark.parametrize("seed", range(5))
def test_unrelated_attention_has_no_kind(seed):
    assert kind_of(faulty({"q": randn(2, 4, 16, 8, seed=20 + seed)})) is None
    assert kind_of(faulty({"v": randn(2, 4, 16, 8, seed=20 + seed)})) is None
    assert kind_of(noisy(faulty({}), 1e-3, seed)) is None


FUSED = {
    "mask_shifted": {"mask": causal(16, shift=1)},
    "mask_inverted": {"mask": ~causal(16)},
    "missing_mask": {"mask": np.zeros((16, 16), bool)},
    "scale": {"scale": 0.125},
    "swapped_operands": {"q": K, "k": Q},
}


@pytest.mark.parametrize("name", FUSED)
@pytest.mark.parametrize("layout", ["heads first", "heads merged"])
def test_fault_is_named_where_both_are_fused(name, layout):
    changes = FUSED[name]
    results = []
    for steps in ({"q": Q, "k": K, "v": V}, {"q": Q, "k": K, "v": V, **changes}):
        mask = steps.pop("mask", causal(16))
        scores = steps["q"] @ steps["k"].swapaxes(-1, -2) * np.float32(steps.pop("scale", 8**-0.5))
        results.append(softmax(masked(scores, mask)) @ steps["v"])
    if layout == "heads merged":
        results = [one.swapaxes(1, 2).reshape(2, 16, 32) for one in results]
    kind = kind_of(region(*results, [piece("q", Q), piece("k", K), piece("v", V)]))
    assert kind is not None
    assert kind.name == name.partition(":")[0], kind.message


def fused(q=Q, k=K, v=V, scale=8**-0.5, mask=None, bias=0.0):
    """Returns the result of attention of queries and keys as they are, and all that was made on the way."""
    scores = q @ k.swapaxes(-1, -2) * np.float32(scale) + np.float32(bias)
    low = scores if mask is None else masked(scores, mask)
    p = softmax(low)
    return p @ v, [piece("scores", scores), piece("low", low), piece("p", p)]


UNMASKED = {
    "scale": ({"scale": 0.125}, "0.353553 times"),
    "swapped_operands: q, k": ({"q": K, "k": Q}, "takes q and k in the place of each other"),
    "swapped_operands: k, v": ({"k": V, "v": K}, "takes k and v in the place of each other"),
    "swapped_operands: v": ({"v": K}, "takes k where the left one takes v"),
}


@pytest.mark.parametrize("name", UNMASKED)
def test_fault_is_named_where_both_are_fused_and_have_no_mask(name):
    changes, words = UNMASKED[name]
    kind = kind_of(region(fused()[0], fused(**changes)[0], [piece("q", Q), piece("k", K), piece("v", V)]))
    assert kind is not None
    assert kind.name == name.partition(":")[0]
    assert words in kind.message


def test_another_mask_is_named_where_scores_are_more_than_a_product():
    bias = -np.abs(np.arange(16)[:, None] - np.arange(16)) / np.array([2, 4, 8, 16])[:, None, None]  # as of ALiBi
    (left, steps), (right, _) = (fused(mask=causal(16, shift=shift), bias=bias) for shift in (0, 1))
    kind = kind_of(noisy(region(left, right, [piece("q", Q), piece("k", K), piece("v", V)], left_ops=steps)))
    assert kind is not None
    assert kind.name == "mask_shifted"
    assert "shifted by 1" in kind.message


def test_a_factor_of_scores_that_are_no_product_is_read_from_the_width_of_the_values():
    scores = 4 * randn(2, 4, 16, 16, seed=9)
    steps = [piece("scores", scores), piece("p", softmax(scores))]
    right = softmax(scores * 8**-0.5) @ V
    kind = kind_of(region(steps[1].value @ V, right, [piece("v", V)], left_ops=steps))
    assert kind is not None and kind.name == "scale"
    assert "0.353553 times those of the left one, 1/sqrt(8)." in kind.message


@pytest.mark.parametrize(
    ("changes", "name", "words"),
    [
        ({"scale": 0.125}, "scale", "0.353553 times those of the left one"),
        ({"q": K, "k": Q}, "swapped_operands", "takes q and k in the place of each other"),
    ],
)
def test_fault_is_named_in_probabilities_themselves(changes, name, words):
    left, right = (fused(mask=causal(16), **each)[1][-1].value for each in ({}, changes))
    kind = kind_of(region(left, right, [piece("q", Q), piece("k", K)], left_ops=fused(mask=causal(16))[1][:-1]))
    assert kind is not None and kind.name == name
    assert words in kind.message


def test_values_of_merged_heads_are_told_beside_those_of_other_shapes():
    (left, steps), (right, _) = fused(), fused(scale=0.125)
    merged = V.swapaxes(1, 2).reshape(2, 16, 32)
    inputs = [piece("other", randn(2, 3, 5)), piece("q", Q), piece("k", K), piece("v", merged)]
    kind = kind_of(region(left, right, inputs, left_ops=steps))
    assert kind is not None and kind.name == "scale"
    assert "0.353553 times those of the left one" in kind.message


def padding():
    """The last keys of a causal mask shown to no row."""
    hidden = causal(16)
    hidden[:, 11:] = True
    return hidden


@pytest.mark.parametrize(
    "given", [np.where(padding(), -1e9, 0.0).astype(np.float32), ~padding()], ids=["added", "kept rows"]
)
def test_fault_is_named_where_both_are_fused_with_a_mask_that_is_known(given):
    results = [softmax(masked(Q @ K.swapaxes(-1, -2) * np.float32(scale), padding())) @ V for scale in (8**-0.5, 0.125)]
    inputs = [piece("q", Q), piece("k", K), piece("v", V)]
    kind = kind_of(region(*results, [*inputs, piece("mask", given[None, None])]))
    assert kind is not None and kind.name == "scale"
    assert kind_of(region(*results, inputs)) is None


def test_heads_in_another_order_are_named_in_large_tensors():
    """Their slices are told apart by a sample of their elements."""
    large, order = randn(2, 6, 128, 64), [0, 2, 1, 3, 5, 4]
    kind = kind_of(region(large, large[:, order]))
    assert kind is not None and kind.name == "permuted_heads"
    assert "6 heads in the order 0, 2, 1, 3, 5, 4" in kind.message
