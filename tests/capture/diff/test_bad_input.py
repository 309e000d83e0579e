"""Bad input and interrupts: what cannot be compared is a row and one sentence, and nothing else is lost."""

import os
import signal

import numpy as np
import pytest
import torch
from torch._C import _len_torch_function_stack
from torch.library import _scoped_library
from torch.utils._python_dispatch import _len_torch_dispatch_stack

import nbkit
from nbkit.capture.diff import judge
from tests.capture.diff.planted import compared
from tests.capture.models import train_step

X = torch.linspace(-1, 1, 64).reshape(8, 8)


def three():
    """Three ops, so that it can be seen that the rows of the others are there."""
    return (X @ X).exp().sum()


def run(op, args, kwargs):
    return op(*args, **kwargs)


def only_for_exp(change):
    """A reference function that is right but for exp."""
    return lambda op, args, kwargs: (change if "exp" in str(op) else lambda out: out)(run(op, args, kwargs))


def statuses(trace):
    return trace.diffs["status"].tolist()


WRONG_RESULTS = {
    "None": (lambda out: None, "shape", "1 tensor, expected 0"),
    "a number": (lambda out: 3.0, "shape", "1 tensor, expected 0"),
    "an array": (lambda out: out.numpy(), "shape", "1 tensor, expected 0"),
    "two tensors": (lambda out: (out, out), "shape", "1 tensor, expected 2"),
    "another shape": (lambda out: out[:4], "shape", "shape [8, 8], expected [4, 8]"),
    "integers": (lambda out: out.int(), "dtype", "dtype float32, expected int32"),
    "a wider dtype": (lambda out: out.double(), "dtype", "dtype float32, expected float64"),
    "no values": (lambda out: out.to("meta"), "failed", "could not be compared (NotImplementedError: Cannot copy"),
}


@pytest.mark.parametrize("case", WRONG_RESULTS)
def test_a_function_that_gives_something_else_is_a_row(case):
    """Defects B26 and B41: other counts, shapes and dtypes are rows with the reason."""
    change, status, message = WRONG_RESULTS[case]
    trace = compared(three, reference=only_for_exp(change))
    assert statuses(trace) == ["ok", status, "ok"]
    assert trace.diffs["message"][1].startswith(message)
    assert (trace.complete, trace.meta["mismatches"]) == (True, 1)


@pytest.mark.parametrize(
    "change", [lambda out: out.requires_grad_(), lambda out: out.to_sparse(), lambda out: out.t().t()]
)
def test_a_function_may_give_its_tensor_in_another_form(change):
    assert statuses(compared(three, reference=only_for_exp(change))) == ["ok"] * 3


def test_a_function_that_raises_leaves_the_other_rows():
    def raising(out):
        raise ValueError("no exp here")

    trace = compared(three, reference=only_for_exp(raising))
    assert statuses(trace) == ["ok", "failed", "ok"]
    assert trace.diffs["message"][1] == "could not be compared (ValueError: no exp here)"
    assert trace.meta["skipped"] == {"not compared: could not be compared: aten.exp.default": 1}
    assert "could not be compared: aten.exp.default" in trace.summary()


def test_a_function_that_writes_to_its_inputs_changes_neither_step_nor_verdict():
    """Its result is off by so much that the op is run again from the same inputs, perturbed."""
    before = X.clone()

    def writing(op, args, kwargs):
        out = run(op, args, kwargs).clone()
        for one in args:
            one.zero_() if isinstance(one, torch.Tensor) else None
        return out * (1 + 1e-6)

    outs = []
    trace = compared(lambda: outs.append(X @ X), reference=writing)
    fine = compared(lambda: X @ X, reference=lambda op, args, kwargs: run(op, args, kwargs) * (1 + 1e-6))
    assert torch.equal(X, before) and torch.equal(outs[0], before @ before)
    assert trace.diffs["noise_ratio"].tolist() == fine.diffs["noise_ratio"].tolist()


GIVES_UP = {
    "before the reference": (
        1,
        NotImplementedError("not here"),
        "skipped",
        "the reference has no kernel for it (not here)",
    ),
    "when run again": (2, MemoryError("full"), "failed", "could not be compared (MemoryError: full)"),
}


@pytest.mark.parametrize("case", GIVES_UP)
def test_an_op_that_the_reference_cannot_run_or_run_again_is_a_row(case):
    """Its float32 result is off, so that it is run again with its inputs perturbed."""
    runs, error, status, message = GIVES_UP[case]
    done = []

    def tired(x):
        if len(done) == runs:
            raise error
        done.append(1)
        return x.exp() * (1.001 if x.dtype is torch.float32 else 1)

    with _scoped_library("nbkit_tired", "DEF") as library:
        library.define("exp(Tensor x) -> Tensor")
        library.impl("exp", tired, "CPU")
        trace = compared(lambda: (X.sin(), torch.ops.nbkit_tired.exp(X), X.cos()))
    assert statuses(trace) == ["ok", status, "ok"]
    assert trace.diffs["message"][1] == message
    counted = {"not compared: the reference has no kernel for it: nbkit_tired.exp.default": 1}
    assert trace.meta["skipped"] == (counted if status == "skipped" else {})


def test_a_comparison_that_raises_is_a_row(monkeypatch):
    """Small tensors wait to be measured together, and the last of them until the step is over."""
    monkeypatch.setenv("NBKIT_RECORDER", "python")

    def full(*args):
        raise MemoryError("Unable to allocate 9 GiB")

    monkeypatch.setattr(judge, "measure", full)
    trace = compared(three)
    assert statuses(trace) == ["failed"] * 3
    assert trace.diffs["message"][2] == "could not be compared (MemoryError: Unable to allocate 9 GiB)"


def test_a_tensor_too_large_leaves_the_other_rows_and_one_sentence():
    large = torch.randn(100, 100)
    trace = compared(lambda: (X.exp(), large.exp(), X.sin()), max_bytes=10_000)
    assert statuses(trace) == ["ok", "skipped", "ok"]
    assert trace.diffs["message"][1] == "its inputs take 80000 bytes on the reference; max_bytes is 10000"
    reason = "not compared: ops whose inputs take more than max_bytes=10000 on the reference"
    assert trace.meta["skipped"] == {reason: 1}
    assert f"skipped 1: {reason}" in trace.summary()


PATTERNS = {
    "ops": ({"ops": "aten.nn, aten.exp"}, "ops='aten.nn' fits no op that ran."),
    "exclude_ops": ({"exclude_ops": "exq"}, "exclude_ops='exq' fits no op that ran."),
    "modules": ({"modules": "blocks.0"}, "modules='blocks.0' fits no module that ran."),
    "exclude_modules": ({"exclude_modules": "re:b.*"}, "exclude_modules='re:b.*' fits no module that ran."),
    "tolerances": ({"tolerances": {"aten.nn": (0, 0)}}, "The tolerance for 'aten.nn' met no op."),
    "dtype": ({"tolerances": {"bfloat16": (0, 0)}}, "The tolerance for 'bfloat16' met no op."),
    "both": (
        {"tolerances": {("exp", "float16"): (0, 0), "default": (1, 1)}},
        "The tolerance for ('exp', 'float16') met no op.",
    ),
}


@pytest.mark.parametrize("case", PATTERNS)
def test_a_pattern_that_matches_nothing_is_said_in_one_sentence(case):
    options, sentence = PATTERNS[case]
    trace = compared(three, **options)
    assert trace.meta["notes"] == [sentence]
    assert sentence in trace.summary().splitlines()


def test_patterns_that_match_are_not_spoken_of():
    trace = compared(train_step("llama"), ops="silu,*soft*,mm", modules="model.layers", exclude_modules="re:.*mlp")
    assert not any("fits no" in note for note in trace.meta["notes"])


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("verb", [nbkit.opdiff, nbkit.opcheck])
def test_an_exception_in_the_step_keeps_what_there_is(verb, kind):
    """Defect B19."""
    with pytest.raises(kind, match="stop"), verb() as trace:
        torch.zeros(2).log()
        raise kind("stop")
    assert (trace.complete, trace.meta["error"]["type"]) == (False, kind.__name__)
    assert "aten.log.default" in set(trace.ops["op"])
    frame = trace.diffs if verb is nbkit.opdiff else trace.findings
    assert frame["op"].iloc[-1] == "aten.log.default"


@pytest.mark.parametrize("verb", [nbkit.opdiff, nbkit.opcheck])
def test_ctrl_c_leaves_no_mode_on(verb):
    with pytest.raises(KeyboardInterrupt), verb() as trace:
        X.exp()
        for _ in range(1000):  # it is noticed between two of Python's instructions, in the step or in what watches it
            os.kill(os.getpid(), signal.SIGINT)
            X.sin()
    assert (_len_torch_dispatch_stack(), _len_torch_function_stack()) == (0, 0)
    assert torch.is_grad_enabled() and not trace.complete
    assert "aten.exp.default" in set(trace.ops["op"])


def test_ctrl_c_inside_a_reference_leaves_no_mode_on():
    def interrupted(out):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), nbkit.opdiff(reference=only_for_exp(interrupted)) as trace:
        three()
    assert (_len_torch_dispatch_stack(), _len_torch_function_stack()) == (0, 0)
    assert torch.is_grad_enabled() and not trace.complete
    assert trace.diffs[["op", "status"]].to_numpy().tolist() == [["aten.mm.default", "ok"]]
    assert trace.ops["op"].iloc[-1] == "aten.exp.default"


def test_a_numpy_seed_or_generator_of_the_user_is_left_alone():
    """Perturbed runs draw from a generator of their own (defect B7)."""
    np.random.seed(5)
    before = np.random.get_state()[1].tolist()
    torch_before = torch.get_rng_state()
    trace = compared(lambda: X @ X, threshold=1e-9)
    assert trace.diffs["status"].tolist() == ["mismatch"]  # it has been run again
    assert np.random.get_state()[1].tolist() == before
    assert torch.equal(torch.get_rng_state(), torch_before)
