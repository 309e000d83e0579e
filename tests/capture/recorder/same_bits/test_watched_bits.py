"""The step computes the same bits under every verb as bare, and is called right: one list of steps (identical.py)."""

from functools import cache

import pytest
import torch

import nbkit
from tests.capture.identical import CASES, STEPS, each_step, left_by

WAYS = {
    "float32": lambda: nbkit.opdiff(reference="cpu:float32", sample=2),
    "function": lambda: nbkit.opdiff(reference=lambda op, args, kwargs: op(*args, **kwargs)),
    "one module": lambda: nbkit.opdiff(modules="3", threshold=1e-9),  # each op there is run many times
}
NOT_FINITE_ON_PURPOSE = {"GradScaler that skips", "warnings"}
bare = cache(left_by)


@each_step
def test_opdiff_leaves_the_step_as_it_is(name, dtype):
    """Defects B1, B2, B7, B8 and B9: values, gradients, parameters,
    optimizer state, buffers, generators, flags, versions and warnings."""
    watch = nbkit.opdiff()
    assert left_by(name, dtype, watch) == bare(name, dtype)
    diffs = watch.trace.diffs
    assert watch.trace.complete and len(diffs)
    assert set(diffs["op"][~diffs["status"].isin(["ok", "skipped"])]) == set()


@each_step
def test_opcheck_leaves_the_step_as_it_is(name, dtype):
    """The same defects and cases."""
    watch = nbkit.opcheck()
    assert left_by(name, dtype, watch) == bare(name, dtype)
    assert watch.trace.complete and watch.trace.meta["checked_tensors"] > 0
    assert watch.trace.findings.empty == (name not in NOT_FINITE_ON_PURPOSE)


@pytest.mark.parametrize(
    "name", ["mlp, adamw", "conv, sgd", "checkpoint", "autocast, two dropouts", "in-place", "warnings"]
)
@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_compare_leaves_the_step_as_it_is(name, way):
    assert left_by(name, "float32", WAYS[way]()) == bare(name, "float32")


@pytest.mark.skipif(torch.__version__ >= "2.15", reason="torch 2.15 computes it right")
def test_the_fused_sgd_of_torch_is_wrong_in_bfloat16():
    """Its own momentum, computed by hand: opdiff is right to tell of it."""
    torch.manual_seed(0)
    weight, grad, momentum = torch.randn(3, 32).bfloat16()
    expected = 0.9 * momentum.float() + grad.float()
    options = {"weight_decay": 0.0, "dampening": 0.0, "nesterov": False, "maximize": False, "is_first_step": False}
    torch._fused_sgd_([weight], [grad], [momentum], momentum=0.9, lr=0.01, **options)
    assert not (momentum.float() - expected).abs().max() <= 1  # what it reads beside them may be NaN


@pytest.mark.parametrize("change", ["value", "gradient", "generator", "warning", "flag"])
def test_the_comparison_sees_what_a_verb_could_change(change, monkeypatch):
    """One bit of a result or gradient, one draw, one warning, one flag."""

    def changed(dtype, step=STEPS["mlp, sgd"]):
        *values, state = step(dtype)
        if change in ("value", "gradient"):
            values[0 if change == "value" else 1].view(-1)[:1].view(torch.int32).add_(1)
        yield from (*values, state)
        if change == "generator":
            torch.rand(1)
        if change == "warning":
            torch.ones(1).var()
        if change == "flag":
            torch.set_autocast_dtype("cpu", torch.float16)

    unchanged = bare("mlp, sgd", "float32")
    monkeypatch.setitem(STEPS, "mlp, sgd", changed)
    before = torch.get_autocast_dtype("cpu")
    seen = left_by("mlp, sgd", "float32")
    torch.set_autocast_dtype("cpu", before)
    assert seen != unchanged


def test_the_list_has_what_the_verbs_promise():
    """Issue 4: in-place, out=, fused-qkv chunk(3), checkpointing, autocast, two dropouts, AdamW, in two dtypes."""
    names = ["in-place", "out=", "fused qkv", "fused qkv, checkpoint", "autocast", "autocast, two dropouts"]
    assert set(CASES) >= {(name, dtype) for name in [*names, "llama, adamw"] for dtype in ("float32", "bfloat16")}


@pytest.mark.parametrize("name", ["warnings", "out="])
def test_the_list_has_steps_that_warn(name):
    assert any(isinstance(one, tuple) and one[:1] == ("UserWarning",) for one in bare(name, "float32"))
