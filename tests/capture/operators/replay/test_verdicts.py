"""What a replay says of results that differ in number, of calls that raise, and of sparse tensors and bare zeros."""

import re
from contextlib import nullcontext

import pytest
import torch

import nbkit
from tests.capture.operators.folders import captured, problems, records, rewritten


def sine():
    torch.arange(4.0).sin()


def replayed(folder, change, **options):
    return nbkit.opreplay(rewritten(folder, folder.parent / change.__name__, change), **options)


def test_another_number_of_results_and_another_end_are_told(tmp_path):
    captured(tmp_path / "calls", sine, ops="aten.sin")

    def two(_, record):
        return record | {"outputs": [*record["outputs"], None]}

    def raised(_, record):
        return record | {"raised": "RuntimeError: no"}

    trace = replayed(tmp_path / "calls", two)
    assert problems(trace) == [("aten.sin.default", "mismatch", "1 results, expected 2")]
    trace = replayed(tmp_path / "calls", raised)
    message = "it returns, and in the step it raised RuntimeError: no"
    assert problems(trace) == [("aten.sin.default", "failed", message)]
    assert (trace.meta["identical_calls"], trace.meta["mismatches"]) == (0, 1)


@pytest.mark.parametrize("bit", ["conj", "neg"])
def test_a_result_without_its_lazy_bit_is_told(tmp_path, bit):
    captured(tmp_path / "calls", lambda: torch.ones(2, dtype=torch.complex64) * 2, ops="aten.mul")

    def lazy(_, record):
        record["tensors"][record["outputs"][0]["tensor"]][bit] = True
        return record

    found = problems(replayed(tmp_path / "calls", lazy))
    assert found == [("aten.mul.Tensor", "mismatch", f"{bit} False, expected True")]


@pytest.mark.parametrize("against", ["captured", "cpu:float64"])
def test_form_is_judged_beside_values(tmp_path, against):
    captured(tmp_path / "calls", lambda: (torch.ones(2, 3).t(), torch.empty(2)), ops="aten.t, aten.empty")
    rows = nbkit.opreplay(tmp_path / "calls", against=against).diffs
    assert rows[["op", "status", "message"]].to_numpy().tolist() == [
        ["aten.t.default", "ok", "a view: form and memory are compared"],
        ["aten.empty.memory_format", "ok", "uninitialized memory: only its form is compared"],
    ]

    def shape(at, record):
        if not at:
            record["tensors"][record["outputs"][0]["tensor"]]["shape"] = [2, 3]
        return record

    found = problems(replayed(tmp_path / "calls", shape, against=against))
    assert found == [("aten.t.default", "shape", "shape [3, 2], expected [2, 3]")]


@pytest.mark.parametrize("against", ["bits", "captured"])
def test_other_integers_are_a_mismatch(tmp_path, against):
    captured(tmp_path / "calls", lambda: torch.arange(4) * 3, ops="aten.mul")

    def larger(_, record):
        return record | {"args": [record["args"][0], 4]}

    rows = replayed(tmp_path / "calls", larger, against=against).diffs
    assert rows[["status", "mismatch_count", "max_abs_error"]].to_numpy().tolist() == [["mismatch", 3, 3]]


def test_another_sign_of_a_zero_is_one_element(tmp_path):
    captured(tmp_path / "calls", lambda: torch.zeros(4) * 2.0, ops="aten.mul")

    def negative(_, record):
        return record | {"args": [record["args"][0], -2.0]}

    (row,) = replayed(tmp_path / "calls", negative).diffs.itertuples()
    assert (row.status, row.message, row.mismatch_count, row.mismatch_fraction) == ("mismatch", "other bits", 1, 0.25)
    assert row.max_abs_error == 0


def test_memory_of_its_own_in_place_of_an_arguments_is_told(tmp_path):
    captured(tmp_path / "calls", sine, ops="aten.sin")

    def alias(_, record):
        record["tensors"][record["outputs"][0]["tensor"]]["storage"] = 0
        return record

    message = "memory of its own, expected that of an argument"
    assert problems(replayed(tmp_path / "calls", alias)) == [("aten.sin.default", "mismatch", message)]


def test_what_is_written_and_not_returned_is_judged_by_rounding(tmp_path):
    x, y = torch.arange(3.0), torch.arange(4.0)
    captured(tmp_path / "calls", lambda: torch._foreach_add_([x, y], 1.0), ops="aten._foreach_add_")

    def more(_, record):
        return record | {"args": [record["args"][0], 2.0]}

    for against in ("bits", "captured"):
        assert problems(nbkit.opreplay(tmp_path / "calls", against=against)) == []
    rows = replayed(tmp_path / "calls", more, against="captured").diffs
    rows = rows[rows["role"] == "input"]
    assert rows[["position", "status", "max_abs_error"]].to_numpy().tolist() == [[0, "mismatch", 1], [1, "mismatch", 1]]


def test_random_draws_are_left_to_the_bits(tmp_path):
    captured(tmp_path / "calls", lambda: torch.empty(4).uniform_(), ops="aten.uniform_")
    assert nbkit.opreplay(tmp_path / "calls").meta["identical_calls"] == 1
    message = "a reference draws other random numbers; against='bits' compares them"
    found = problems(nbkit.opreplay(tmp_path / "calls", against="cpu:float64"))
    assert found == [("aten.uniform_.default", "skipped", message)]


def test_a_view_that_begins_elsewhere_is_told(tmp_path):
    captured(tmp_path / "calls", lambda: torch.arange(5.0)[2:], ops="aten.slice")

    def earlier(_, record):
        record["tensors"][record["outputs"][0]["tensor"]]["offset"] = 1
        return record

    found = problems(replayed(tmp_path / "calls", earlier))
    assert found == [("aten.slice.Tensor", "mismatch", "storage offset 2, expected 1")]


def test_a_call_that_returns_nothing_has_a_row_that_says_so(tmp_path):
    captured(tmp_path / "calls", lambda: torch.empty(0, 3).unbind(), ops="aten.unbind")
    trace = nbkit.opreplay(tmp_path / "calls")
    assert trace.diffs[["status", "message"]].to_numpy().tolist() == [["ok", "it returns nothing"]]
    assert trace.meta["identical_calls"] == 1


def test_sparse_tensors_are_compared_to_the_bit(tmp_path):
    sparse = torch.sparse_coo_tensor([[0, 2], [1, 0]], [1.0, 2.0], (3, 3), check_invariants=True).coalesce()
    compressed = torch.tensor([[0.0, 1.0], [2.0, 0.0]]).to_sparse_csr()
    captured(tmp_path / "calls", lambda: (sparse.mul(3.0), compressed.mul(3.0)), ops="aten.mul")
    for against in ("bits", "captured", "cpu:float64"):
        trace = nbkit.opreplay(tmp_path / "calls", against=against)
        assert (trace.meta["identical_calls"], trace.diffs["status"].tolist()) == (2, ["ok", "ok"])

    def factor(_, record):
        return record | {"args": [record["args"][0], 4.0]}

    def uncoalesced(at, record):
        if at == 0:
            record["tensors"][record["outputs"][0]["tensor"]]["is_coalesced"] = False
        return record

    found = ("aten.mul.Tensor", "mismatch", "other bits")
    trace = replayed(tmp_path / "calls", factor)
    assert problems(trace) == [found, found]
    assert trace.diffs["max_abs_error"].tolist() == [2.0, 2.0]
    assert problems(replayed(tmp_path / "calls", uncoalesced)) == [found]


def test_zeros_without_memory_are_captured_and_compared(tmp_path):
    def step():
        torch._efficientzerotensor((3,))
        torch._efficientzerotensor((2,), dtype=torch.complex64)

    captured(tmp_path / "calls", step)
    assert [one["tensors"][0].get("zeros") for one in records(tmp_path / "calls")] == ["cpu", "cpu"]
    trace = nbkit.opreplay(tmp_path / "calls")
    assert (trace.meta["identical_calls"], trace.diffs["status"].tolist()) == (2, ["ok", "ok"])


def test_of_equal_results_what_is_not_finite_is_counted(tmp_path):
    values = torch.tensor([float("nan"), float("inf"), -float("inf"), 1.0])
    captured(tmp_path / "calls", lambda: (values.neg(), torch.arange(3).neg(), values.to(torch.float8_e5m2).clone()))
    rows = nbkit.opreplay(tmp_path / "calls", ops="aten.neg, aten.clone").diffs
    counts = ["actual_nan_count", "expected_nan_count", "actual_inf_count", "expected_inf_count", "max_abs_error"]
    assert rows["status"].tolist() == ["ok", "ok", "ok"]
    assert rows[counts].to_numpy().tolist()[:2] == [[1, 1, 2, 2, 0], [0, 0, 0, 0, 0]]
    assert rows[["mismatch_count", "mismatch_fraction", "cosine_similarity"]].to_numpy().tolist() == [[0, 0, 1]] * 3


def test_a_reference_that_raises_leaves_the_call_unjudged(tmp_path):
    def absent(op, args, kwargs):
        raise ValueError("not on this machine")

    captured(tmp_path / "calls", sine, ops="aten.sin")
    trace = nbkit.opreplay(tmp_path / "calls", against=absent)
    message = "could not be compared (ValueError: not on this machine)"
    assert problems(trace) == [("aten.sin.default", "skipped", message)]
    assert (trace.meta["identical_calls"], trace.meta["mismatches"]) == (1, 0)


@pytest.fixture
def once():
    """Two ops: one whose kernel takes one call until `once.clear()`, and one that makes bits of bytes."""
    library, calls = torch.library.Library("nbkit_once", "DEF"), list[int]()
    library.define("double(Tensor x) -> Tensor")
    library.define("bits(Tensor x, int more) -> Tensor")
    library.impl("bits", lambda x, more: (x + more).view(torch.bits8), "CompositeExplicitAutograd")

    def double(x):
        calls.append(1)
        if len(calls) > 1:
            raise NotImplementedError("no kernel")
        return x * 2

    library.impl("double", double, "CompositeExplicitAutograd")
    yield calls
    library._destroy()


def test_an_op_that_the_reference_lacks_is_told(tmp_path, once):
    captured(tmp_path / "calls", lambda: torch.ops.nbkit_once.double(torch.ones(3)), ops="nbkit_once.*")
    once.clear()
    trace = nbkit.opreplay(tmp_path / "calls", libraries="nbkit_once", against="cpu:float64")
    message = "the reference has no kernel for it (no kernel)"
    assert problems(trace) == [("nbkit_once.double.default", "skipped", message)]


def test_other_bits_of_a_dtype_without_numbers_are_told_without_a_distance(tmp_path, once):
    def other(_, record):
        return record | {"args": [record["args"][0], 2]}

    bytes_ = torch.arange(5, dtype=torch.uint8)
    captured(tmp_path / "calls", lambda: torch.ops.nbkit_once.bits(bytes_, 1), ops="nbkit_once.*")
    assert nbkit.opreplay(tmp_path / "calls", libraries="nbkit_once").meta["identical_calls"] == 1
    trace = replayed(tmp_path / "calls", other, libraries="nbkit_once")
    ((op, status, message),) = problems(trace)
    assert (op, status) == ("nbkit_once.bits.default", "mismatch")
    assert (
        re.match(r"could not be compared \((NotImplementedError|RuntimeError): ", message)
        and trace.meta["skipped"] == {}
    )


def test_progress_says_how_many_calls_have_run(tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(
        "nbkit.capture.operators.replay.opreplay.Progress",
        lambda says, done: nullcontext(told.extend([says(), says, done])),
    )
    captured(tmp_path / "calls", lambda: (torch.ones(2).exp(), torch.ones(2).sin()), ops="exp,sin")
    nbkit.opreplay(tmp_path / "calls")
    assert told[0] == "opreplay: 0 calls of 0 run again, last "
    assert told[1]() == "opreplay: 2 calls of 2 run again, last aten.sin.default"
    assert told[2]() == 1.0
