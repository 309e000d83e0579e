"""Has torch's bisector find a fault that inductor plants in itself, and says where there is nothing to bisect."""

import shutil

import pytest
import torch

import nbkit


def test_a_step_that_compiles_nothing_is_told_so():
    compiled = torch.compile(torch.sin, backend="eager")
    trace = nbkit.opbisect(lambda: compiled(torch.ones(2)), lambda value: False, by="disable compile")
    assert trace.meta["verdict"].startswith("Nothing was found: the step does not call torch.compile.")
    assert trace.findings["rule"].tolist() == ["no_culprit"]


def test_a_fault_outside_the_compiler_is_told_from_one_inside():
    def step():
        return torch.compile(torch.sin, backend="eager")(torch.ones(2))

    trace = nbkit.opbisect(step, lambda value: False, by="disable compile")
    assert trace.meta["verdict"] == "The step fails also when torch.compile hands every op to torch as it is."
    assert trace.trials["stage"].tolist() == ["nothing", "eager"]


@pytest.mark.parametrize(
    ("answers", "verdict", "culprits"),
    [
        ([False, True, False], "The step fails from aot_eager of torch.compile on.", ["aot_eager"]),
        pytest.param(
            [False],
            "The step passes with each backend of torch.compile: its result differs from run to run.",
            [],
            marks=pytest.mark.full,  # imports inductor, for seconds
        ),
    ],
    ids=["one fails", "none fails"],
)
def test_the_verdict_names_the_backend_that_fails(answers, verdict, culprits):
    remaining = iter(answers)

    def step():
        # What it returns is not called: inductor would take seconds.
        if not callable(torch.compile(torch.sin, backend="eager")):
            raise TypeError

    trace = nbkit.opbisect(step, lambda _: next(remaining, True), by="disable compile")
    assert trace.meta["verdict"] == verdict
    assert [one["op"] for one in trace.meta["culprits"]] == culprits


@pytest.mark.full  # inductor compiles C++ a dozen times
@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler")
def test_a_lowering_of_inductor_at_fault_is_found():
    from torch._inductor import config

    def step():
        x = torch.arange(8.0)
        with config.patch({"cpp.inject_relu_bug_TESTING_ONLY": "accuracy", "fx_graph_cache": False}):
            return torch.compile(lambda x: (x.sin() - 0.5).relu())(x) - (x.sin() - 0.5).relu()

    trace = nbkit.opbisect(step, lambda difference: difference.abs().max() < 1e-5, by="disable compile")
    assert [one["op"] for one in trace.meta["culprits"]] == ["inductor: lowerings"]
    assert trace.meta["verdict"] == "The step fails from inductor: lowerings of torch.compile on: relu."
