"""Right kernels are never called wrong: whole training steps of every model in float32, bfloat16 and float64."""

import pytest
import torch
import torch.nn.functional as F

from nbkit.capture.diff import pair
from tests.capture.diff.planted import compared, with_fault, wrong
from tests.capture.models import MODELS, OPTIMIZERS, SHAPES, loss_of

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float64": torch.float64}


def steps(name, dtype, optimizer="adamw"):
    model = MODELS[name]().to(dtype)
    updates = OPTIMIZERS[optimizer](model.parameters())

    def run():
        for _ in range(2):
            updates.zero_grad()
            loss = loss_of(model, name) if name in ("rwkv4", "llama") else loss_in(model, name, dtype)
            loss.backward()
            updates.step()

    return run


def loss_in(model, name, dtype):
    return F.cross_entropy(model(torch.randn(*SHAPES[name], dtype=dtype)), torch.randint(0, 3, (5,)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("model", MODELS)
def test_a_clean_step_has_no_mismatch(model, dtype):
    """Defect B23: correct float32 and bfloat16 gradients are not called wrong."""
    trace = compared(steps(model, DTYPES[dtype]))
    assert wrong(trace).empty
    assert set(trace.diffs["phase"]) >= {"forward", "backward", "optimizer"}
    assert trace.diffs["noise_ratio"].max() <= 8
    assert trace.meta["compared_ops"] > 50


def test_a_running_sum_in_float32_is_right_and_without_growth_called_wrong(monkeypatch):
    """Products added one after the other round each partial sum."""

    def running(func, args, out):
        total = torch.zeros_like(out)
        for left, right in zip(args[0].mT, args[1], strict=True):
            total += left[:, None] * right
        return total

    x, y = torch.rand(64, 4096), torch.rand(4096, 64)
    assert wrong(with_fault(lambda: x @ y, "aten.mm.default", running)).empty
    monkeypatch.setattr(pair, "growth", lambda *sizes: 1.0)
    assert len(wrong(with_fault(lambda: x @ y, "aten.mm.default", running))) == 1


def test_every_aten_op_is_compared_or_counted(monkeypatch):
    monkeypatch.setenv("NBKIT_RECORDER", "python")
    trace = compared(steps("mlp", torch.float32))
    compared_ops = set(trace.diffs["op_id"])
    counts = {reason: n for reason, n in trace.meta["skipped"].items() if reason.startswith("not compared: ")}
    left_out = sum(n for reason, n in counts.items() if "statistics" not in reason and "metadata ops (" not in reason)
    assert len(compared_ops) + left_out == (trace.ops["level"] == "aten").sum()
    # torch's observer does not report the detach() of what autograd saves, which its mode sees: a view, not compared.
    monkeypatch.delenv("NBKIT_RECORDER")
    assert len(set(compared(steps("mlp", torch.float32)).diffs["op_id"])) == len(compared_ops)
