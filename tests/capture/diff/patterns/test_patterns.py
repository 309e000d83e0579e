"""What a wrong result looks like, with figures: the evidence, the sentence, and what is too little to tell."""

import json

import pytest
import torch
import torch.nn.functional as F

from nbkit.capture.diff import judge
from nbkit.numerics.difference_patterns import pattern_text
from tests.capture.diff.planted import compared, only, with_fault, wrong

GENERATOR = torch.Generator().manual_seed(5)
A, B = torch.randn(24, 64, generator=GENERATOR), torch.randn(64, 24, generator=GENERATOR)
X = torch.randn(4, 6, 8, generator=GENERATOR)
ORDER = torch.randperm(24, generator=GENERATOR)


def row_of(change, *, x=A, y=B, op="aten.mm.default"):
    """The row of a product whose result `change` makes another one."""
    step = (lambda: x @ y) if op == "aten.mm.default" else (lambda: x + y)
    return only(with_fault(step, op, lambda func, args, out: change(out).to(out.dtype).contiguous()))


def evidence_of(row):
    return json.loads(row["pattern_evidence"])


def block(bounds, value):
    def change(out):
        out = out.clone()
        part = out[tuple(slice(*bound) for bound in bounds)]
        part.copy_(part * 2 + 1 if value is None else torch.full_like(part, value))
        return out

    return change


def in_memory(out):
    out = out.clone()
    out.view(-1)[100:] += 3
    return out


# Name, change, sentence, part of the evidence.
CHANGES = {
    "scaled": (lambda out: out * 1.25, "is 1.25 x the reference", {"factor": 1.25, "factor_spread": [1.25, 1.25]}),
    "offset": (lambda out: out - 0.5, "is the reference - 0.5", {"offset": -0.5}),
    "negated": (torch.neg, "is the reference with the other sign", {}),
    "zero": (torch.zeros_like, "is zero throughout", {}),
    "nan": (lambda out: out * float("nan"), "is NaN throughout", {}),
    "constant": (lambda out: torch.full_like(out, 3.0), "has the same value throughout", {}),
    "transposed": (torch.t, "is the reference with axes 0 and 1 transposed", {"axes": [0, 1], "is_reshaped": False}),
    "shifted": (
        lambda out: out.roll(-1, 0),
        "is the reference shifted by -1 along axis 0, its end wrapped around",
        {"axis": 0, "shift": -1, "is_wrapped": True},
    ),
    "shifted in memory": (
        lambda out: out.reshape(-1).roll(1).reshape(out.shape),
        "is the reference shifted by 1 in memory, its end wrapped around",
        {"axis": None},
    ),
    "shifted far": (
        lambda out: out.roll(5, 0),
        "is the reference shifted by 5 along axis 0, its end wrapped around",
        {"shift": 5},
    ),
    "permuted": (
        lambda out: out[ORDER],
        "is the reference with the slices along axis 0 in another order",
        {"axis": 0, "order": ORDER[:16].tolist()},
    ),
    "repeated": (lambda out: out[:, 2:3].expand(24, 24), "is slice 2 along axis 1, repeated", {"axis": 1}),
    "beyond": (
        block([(5, 24), (0, 24)], None),
        "is right up to index 4 of axis 0, and wrong after it",
        {"axis": 0, "index": 5, "content": "wrong", "element_fraction": 0.791667},
    ),
    "beyond in memory": (
        in_memory,
        "is right up to element 99 in memory, and wrong after it",
        {"axis": None, "index": 100},
    ),
    "rows": (
        block([(3, 11, 4), (0, 24)], 0.0),
        "is right except at indices 3 and 7 of axis 0, which are zero",
        {"axis": 0, "indices": [3, 7], "count": 2, "content": "zero"},
    ),
    "rows of NaN": (
        block([(3, 4), (0, 24)], float("nan")),
        "is right except at index 3 of axis 0, which is NaN",
        {"content": "NaN"},
    ),
    "block": (
        block([(8, 16), (0, 8)], 0.0),
        "is right except in the block [8:16, 0:8], which is zero",
        {"bounds": [[8, 16], [0, 8]], "element_fraction": 0.111111},
    ),
    "elements": (
        block([(3, 4), (9, 10)], None),
        "is right except for 1 element at [3, 9]",
        {"indices": [[3, 9]], "count": 1},
    ),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("name", CHANGES)
def test_a_pattern_has_its_sentence_and_evidence(name, dtype):
    change, sentence, evidence = CHANGES[name]
    row = row_of(change, x=A.to(dtype), y=B.to(dtype))
    found = evidence_of(row)
    assert row["pattern"] == name.split()[0]
    if dtype is torch.float32:
        assert pattern_text(row["pattern"], found) == sentence
        assert row["message"].startswith(f"the result {sentence}; ")
        assert {key: found[key] for key in evidence} == evidence
    assert found["explained_fraction"] >= 0.9
    assert found["residual_noise_ratio"] <= 4


def test_elements_in_any_order_are_told_in_float32():
    places = torch.randperm(576, generator=torch.Generator().manual_seed(2))
    row = row_of(lambda out: out.reshape(-1)[places].reshape(24, 24))
    assert row["pattern"] == "reordered"


def test_zeros_from_an_element_on_are_told_though_right_elements_are_zero_too():
    def change(out):
        out = out.clone()
        out.view(-1)[10:] = 0
        return out

    row = row_of(change, x=A.relu(), y=0, op="aten.add.Tensor")
    first = next(at for at, value in enumerate(A.relu().view(-1).tolist()) if at >= 10 and value)
    found = evidence_of(row)
    assert (row["pattern"], found["axis"], found["index"], found["content"]) == ("beyond", None, first, "zero")


def test_memory_that_is_read_in_the_other_order_is_transposed():
    row = row_of(lambda out: out.t().reshape(24, 16), y=B[:, :16].contiguous())
    assert (row["pattern"], evidence_of(row)["is_reshaped"]) == ("transposed", True)


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
@pytest.mark.parametrize("op", ["exp", "native_layer_norm", "mm"])
def test_inputs_of_fewer_bits_are_told_by_their_format(op, name):
    step = {"exp": X.exp, "native_layer_norm": lambda: F.layer_norm(X, (8,)), "mm": lambda: A @ B}[op]

    def change(func, args, out):
        return func(*(one.to(getattr(torch, name)).float() if isinstance(one, torch.Tensor) else one for one in args))

    row = wrong(with_fault(step, f"aten.{op}.default", change)).iloc[0]
    assert row["pattern"] == "rounded_inputs"
    # TF32 has as many bits as float16; of products it is tried first.
    formats = {"bfloat16": ("bfloat16",), "float16": ("TF32 or float16", "TF32")}[name]
    assert evidence_of(row)["format"] in formats
    assert row["status"] == ("reduced" if op == "mm" else "mismatch")


def test_indices_among_the_inputs_stay_as_they_are_where_the_others_have_fewer_bits():
    places = torch.arange(24) // 3

    def change(func, args, out):
        zeros, dim, index, source = args
        return func(zeros, dim, index, source.bfloat16().float())

    trace = with_fault(lambda: torch.zeros(8, 64).index_add(0, places, A), "aten.index_add.default", change)
    (_, row), *others = wrong(trace).iterrows()
    assert not others
    assert (row["pattern"], evidence_of(row)["format"]) == ("rounded_inputs", "bfloat16")


def layer_norm(*eps):
    """What opdiff finds wrong in a layer_norm of as many parts as there are values of eps, in place of 1e-5."""

    def change(func, args, out):
        parts = [func(part, *args[1:4], one) for part, one in zip(args[0].chunk(len(eps)), eps, strict=True)]
        return tuple(map(torch.cat, zip(*parts, strict=True)))

    return with_fault(lambda: F.layer_norm(X, (8,)), "aten.native_layer_norm.default", change)


@pytest.mark.parametrize("eps", [1e-3, 0.25, 0.0])
def test_an_eps_that_explains_all_rows_is_told(eps):
    trace = layer_norm(eps)
    found = [(row["position"], row["pattern"], evidence_of(row)["eps"]) for _, row in wrong(trace).iterrows()]
    assert found == [(0, "other_eps", eps), (2, "other_eps", eps)]
    assert f"output 1 is right: each is as with eps={eps:g} instead of 1e-05" in trace.brief()


def test_rows_of_several_eps_are_not_told_as_one():
    assert "other_eps" not in wrong(layer_norm(1e-3, 5e-3))["pattern"].tolist()


def test_of_large_results_factors_and_constants_are_told(monkeypatch):
    monkeypatch.setattr(judge, "LARGEST", 100)
    changes = {"scaled": lambda out: out * 1.25, "offset": lambda out: out - 0.5, "zero": torch.zeros_like}
    assert {name: row_of(change)["pattern"] for name, change in changes.items()} == {name: name for name in changes}


def test_the_result_in_fewer_bits_is_rounded_or_cut():
    row = row_of(lambda out: out.bfloat16())
    assert (row["pattern"], evidence_of(row)["format"], evidence_of(row)["rounding"]) == (
        "rounded_result", "bfloat16", "nearest"
    )  # fmt: skip
    row = row_of(lambda out: (out.view(torch.int32) & -(1 << 9)).view(torch.float32))
    assert (row["pattern"], evidence_of(row)["bits"], evidence_of(row)["rounding"]) == ("rounded_result", 14, "cut")


def test_other_tensors_of_the_call_are_told():
    x = torch.randn(40, generator=torch.Generator().manual_seed(3))
    before = x.clone()
    unwritten = with_fault(lambda: x.add_(1), "aten.add_.Tensor", lambda func, args, out: out.copy_(before))
    assert only(unwritten)["pattern"] == "unchanged"
    copied = only(with_fault(lambda: x.exp(), "aten.exp.default", lambda func, args, out: args[0].clone()))
    assert (copied["pattern"], evidence_of(copied)["input"]) == ("copied_input", 0)
    swapped = wrong(
        with_fault(lambda: torch.var_mean(A, 1), "aten.var_mean.correction", lambda func, args, out: out[::-1])
    )
    assert swapped["pattern"].tolist() == ["other_result"] * 2


def test_integers_are_told_too():
    whole = torch.arange(108).reshape(12, 9) ** 2
    patterns = {
        "offset": lambda out: out + 1,
        "shifted": lambda out: out.roll(1, 0),
        "zero": torch.zeros_like,
        "elements": block([(3, 4), (2, 3)], 7),
    }
    found = {name: row_of(change, x=whole, y=1, op="aten.add.Tensor")["pattern"] for name, change in patterns.items()}
    assert found == {name: name for name in patterns}


@pytest.mark.parametrize(
    "change",
    [lambda out: out * 2, lambda out: out + 3, lambda out: out * 0 + out.mean()],
    ids=["factor", "offset", "mean"],
)
def test_a_few_numbers_or_equal_ones_have_no_factor(change):
    single = only(with_fault(lambda: A.sum(), "aten.sum.default", lambda func, args, out: change(out) + 1))
    assert single["status"] == "mismatch"
    assert not isinstance(single["pattern"], str)
    equal = row_of(change, x=torch.full((9, 9), 2.0), y=1, op="aten.add.Tensor")
    assert not isinstance(equal["pattern"], str)


@pytest.mark.parametrize("share", [1e-4, 1e-2, 0.3, 1.0])
@pytest.mark.parametrize("shape", [(24, 24), (2, 3), (5, 1)], ids=str)
def test_noise_has_no_pattern(share, shape):
    noise = torch.randn(shape, generator=torch.Generator().manual_seed(9))
    row = row_of(lambda out: out + share * out.norm() * noise, x=A[: shape[0]], y=B[:, : shape[1]].contiguous())
    assert row["status"] == "mismatch"
    assert not isinstance(row["pattern"], str)


def test_what_is_right_has_no_pattern():
    trace = compared(lambda: F.layer_norm((A @ B).softmax(-1), (24,)))
    assert trace.diffs["pattern"].isna().all()
    assert trace.diffs["pattern_evidence"].isna().all()
