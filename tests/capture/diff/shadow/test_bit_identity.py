"""The step beside a shadow, or a trace, computes what the bare one computes, to the bit: the steps of identical.py."""

import pytest

import nbkit
from tests.capture.identical import STEPS, each_step, left_by
from tests.capture.models import record
from tests.capture.recorder.same_bits.test_watched_bits import bare


@each_step
def test_a_shadow_leaves_the_step_as_it_is(name, dtype):
    watch = nbkit.opdiff(against="cpu:float64")
    assert left_by(name, dtype, watch) == bare(name, dtype)
    meta = watch.trace.meta
    assert watch.trace.complete and meta["followed_ops"] > 0
    assert meta["first_divergence"] is None


@pytest.mark.parametrize(
    "name", ["mlp, adamw", "llama, sgd", "checkpoint", "autocast, two dropouts", "in-place", "out="]
)
@pytest.mark.parametrize("other", ["cpu:float32", "cpu:bfloat16", "cpu:same"])
def test_so_does_one_in_any_precision(name, other):
    assert left_by(name, "float32", nbkit.opdiff(against=other)) == bare(name, "float32")


@pytest.mark.parametrize("name", [*STEPS])
def test_a_trace_leaves_the_step_as_it_is(name):
    other = record(lambda: left_by(name, "float32"), values="stats")
    watch = nbkit.opdiff(against=other)
    assert left_by(name, "float32", watch) == bare(name, "float32")
    assert watch.trace.complete and (watch.trace.alignment["action"] == "match").sum() > 2
    assert watch.trace.meta["first_divergence"] is None
