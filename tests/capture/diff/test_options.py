"""Options of opdiff: references, tolerances, filters, samples and bounds; mistakes are refused before anything runs."""

import pytest
import torch
import torch.nn.functional as F

import nbkit
from nbkit import OptionError, PatternError
from tests.capture.diff.planted import compared, only, scaled, with_fault, wrong
from tests.capture.models import train_step

X = torch.linspace(-1, 1, 64).reshape(8, 8)


def product():
    return X @ X


def test_a_float32_reference_is_compared_in_float32():
    trace = compared(product, reference="cpu:float32")
    assert (only(trace)["max_abs_error"], trace.meta["reference"]) == (0.0, "cpu:float32")
    assert only(compared(product))["max_abs_error"] > 0


def test_a_function_is_given_the_call_as_it_is():
    seen = []

    def reference(op, args, kwargs):
        seen.append((str(op), args[0].dtype, args[0] is X, torch.equal(args[0], X)))
        return op(*args, **kwargs) + 1

    row = only(compared(product, reference=reference))
    assert seen == [("aten.mm.default", torch.float32, False, True)]
    assert (row["status"], row["max_abs_error"]) == ("mismatch", pytest.approx(1.0))


def test_a_function_that_raises_is_a_row_and_nothing_else():
    def reference(op, args, kwargs):
        raise ValueError("no such op")

    row = only(compared(product, reference=reference))
    assert (row["status"], row["message"]) == ("failed", "could not be compared (ValueError: no such op)")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"reference": "cuda:77"}, "reference='cuda:77' cannot be used"),
        ({"reference": "gpu"}, "give a device that is here and a precision"),
        ({"reference": 3}, "is neither text such as 'cpu:float64' nor a function"),
        ({"phases": "bakward"}, "phases='bakward' is not known; did you mean 'backward'"),
        ({"phases": ""}, "names no phase"),
        ({"sample": 0}, "sample=0 is neither a whole number"),
        ({"sample": 1.5}, "sample=1.5 is neither a whole number"),
        ({"sample": "2"}, "sample='2' is neither a whole number"),
        ({"max_bytes": 0}, "max_bytes must be a number of bytes above 0, got 0; give one, or None for no limit"),
        ({"max_bytes": "1G"}, "max_bytes must be a number of bytes above 0, got '1G'"),
        ({"threshold": 0}, "threshold must be a number above 0, got 0; give one, such as 8"),
        ({"threshold": "8"}, "threshold must be a number above 0, got '8'"),
        ({"tolerances": {"aten.mm": 1}}, "two numbers from 0 up"),
        (
            {"tolerances": (1e-3, 1e-3)},
            r"tolerances must be a dictionary, got \(0.001, 0.001\); give such as {'float16'",
        ),
        ({"against": 3}, "against=3 is neither a trace nor text; give a device"),
    ],
)
def test_a_wrong_option_is_refused_in_one_sentence(options, text):
    """Defect B47."""
    with pytest.raises(OptionError, match=text):
        nbkit.opdiff(**options)


def test_a_choice_of_nothing_is_noted_as_a_pattern_that_fits_nothing_is():
    def notes(**options):
        trace = compared(product, **options)
        assert trace.diffs.empty
        return trace.meta["notes"]

    assert notes(ops="") == ["ops='' names no op: nothing was chosen."]
    assert notes(modules=[]) == ["modules=[] names no module: nothing was chosen."]
    assert notes(ops="mmm") == ["ops='mmm' fits no op that ran."]


def test_a_bad_pattern_is_refused_before_anything_runs():
    with pytest.raises(PatternError):
        nbkit.opdiff(ops="re:(")


def test_a_tolerance_for_an_op_decides_a_really_traced_linear():
    """Defect B24: the override changes the verdict, and the row says which one it was."""
    step, op = lambda: F.linear(X, X, X[0]), "aten.addmm.default"
    assert only(with_fault(step, op, scaled, ops="addmm"))["status"] == "mismatch"
    row = only(with_fault(step, op, scaled, ops="addmm", tolerances={"addmm": (1e-3, 1e-3)}))
    assert (row["status"], row["atol"], row["rtol"]) == ("ok", 1e-3, 1e-3)
    assert only(compared(step, ops="addmm", tolerances={("addmm", "float32"): (0, 0)}))["status"] == "mismatch"
    assert only(compared(step, ops="addmm", tolerances={("addmm", "bfloat16"): (0, 0)}))["status"] == "ok"


def test_filters_choose_rows_of_ops_and_diffs():
    trace = compared(train_step("llama"), ops="silu,linear", modules="model.layers.1.*")
    assert set(trace.diffs["op"]) == {"aten.silu.default", "aten.mm.default"}
    assert trace.diffs["module"].str.startswith("model.layers.1.").all()
    assert set(trace.diffs["op_id"]) <= set(trace.ops["op_id"])
    without = compared(train_step("llama"), exclude_ops="mm", exclude_modules="model.layers.0")
    assert "aten.mm.default" not in set(without.diffs["op"])
    assert not without.diffs["module"].str.startswith("model.layers.0", na=False).any()
    assert without.meta["skipped"]["not compared: ops that the filters leave out"] > 0


@pytest.mark.parametrize("phase", ["forward", "backward", "optimizer"])
def test_phases_are_compared_alone(phase):
    everything = compared(train_step("mlp")).diffs
    trace = compared(train_step("mlp"), phases=phase)
    assert set(trace.diffs["phase"]) == {phase}
    assert len(trace.diffs) == (everything["phase"] == phase).sum()
    assert trace.meta["skipped"]["not compared: other phases"] > 0


@pytest.mark.parametrize("sample", [3, 1 / 3])
def test_a_sample_compares_every_nth_call_of_an_op(sample):
    trace = compared(lambda: [X.exp() for _ in range(7)], sample=sample)
    assert trace.diffs["op_id"].tolist() == trace.ops["op_id"][trace.ops["level"] == "aten"].tolist()[::3]
    assert trace.meta["skipped"]["not compared: not sampled (one call of an op in 3 is)"] == 4


def test_a_tensor_too_large_is_a_row_that_says_so():
    trace = compared(lambda: torch.zeros(100).exp(), ops="exp", max_bytes=799)
    assert (only(trace)["status"], only(trace)["message"]) == (
        "skipped",
        "its inputs take 800 bytes on the reference; max_bytes is 799",
    )
    assert only(compared(lambda: torch.zeros(100).exp(), ops="exp", max_bytes=800))["status"] == "ok"


@pytest.mark.parametrize(
    ("reference", "size"), [("cpu", 900), ("cpu:float32", 500), (lambda op, args, kwargs: op(*args, **kwargs), 300)]
)
def test_the_size_of_inputs_is_that_on_the_reference(reference, size):
    """A hundred bfloat16 and as many bools, which no reference widens."""
    x, mask = torch.zeros(100, dtype=torch.bfloat16), torch.zeros(100, dtype=torch.bool)
    masked = lambda: x.masked_fill(mask, 1)  # noqa: E731
    options = {"reference": reference, "ops": "masked_fill"}
    assert only(compared(masked, max_bytes=size - 1, **options))["status"] == "skipped"
    assert only(compared(masked, max_bytes=size, **options))["status"] == "ok"


def test_an_op_without_a_float64_kernel_is_compared_in_float32_and_says_so():
    x, scales = torch.randn(16, 16), torch.rand(16)
    row = only(compared(lambda: torch._weight_int8pack_mm(x, (x * 9).to(torch.int8), scales), ops="*int8pack*"))
    assert row["status"] == "ok"
    assert row["message"].startswith("compared in float32: the reference has no float64 kernel (")


def test_inputs_that_cannot_be_copied_are_a_row():
    x = torch.randn(16, 16).to_mkldnn()
    row = only(compared(lambda: x.relu(), ops="aten.relu"))
    assert row["status"] == "skipped"
    assert row["message"].startswith("could not be compared (")


def test_a_threshold_decides():
    row = only(compared(product, threshold=1e-9))
    assert (row["status"], row["mismatch_count"] > 0) == ("mismatch", True)


def test_the_trace_so_far_is_kept_after_an_exception():
    """Defect B19."""
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"), nbkit.opdiff() as trace:
        torch.exp(X)
        X @ torch.randn(3, 3)
    assert (only_op(trace), trace.complete) == (["aten.exp.default", "aten.randn.default"], False)
    assert trace.meta["error"]["op_id"] is not None


def only_op(trace):
    return trace.diffs["op"].tolist()


def test_recordings_nest():
    """Defect B18."""
    with nbkit.optrace() as outer, nbkit.opdiff() as middle, nbkit.opdiff() as inner:
        product()
    assert [len(one.ops) for one in (outer, middle, inner)] == [2, 2, 2]
    assert wrong(middle).empty
    assert only_op(inner) == only_op(middle) == ["aten.mm.default"]


def test_the_time_of_the_reference_is_not_that_of_the_op():
    """Of the least of some times, as another process may run while an op does."""
    x = torch.randn(400, 400)
    traces = [compared(lambda: x @ x) for _ in range(5)]
    op_us = min(trace.ops["total_time_us"].max() for trace in traces)
    assert op_us < min(trace.meta["wall_us"] for trace in traces) / 2
    assert op_us < min(trace.meta["recorder_us"] for trace in traces)
