"""The op at which a checkpoint ends what it computes again is marked: held against what a dispatch mode counts."""

from collections import Counter

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

import nbkit
from nbkit.capture.frames.raised import saves_what_it_takes
from tests.capture.models import aten, record

FIRST, LAST = nn.Linear(8, 16), nn.Linear(16, 4)
PARTS = {
    "product": lambda x: LAST(FIRST(x).relu()),
    "product of two": lambda x: x @ x.t(),
    "result": lambda x: FIRST(x).tanh(),
    "in place": lambda x: FIRST(x).mul_(FIRST(x)),
    "norm": lambda x: nn.functional.layer_norm(FIRST(x), (16,)),
    "nothing saved last": lambda x: FIRST(x).relu() + 1,
    "frozen": nn.Sequential(FIRST, nn.Linear(16, 4).requires_grad_(False)),
    "nested": lambda x: checkpoint(lambda x: LAST(x), FIRST(x).relu(), use_reentrant=False).relu(),
}
# Not `add`: under a mode autograd adds gradients by other calls.
SHOWN = ("mm", "addmm", "tanh", "relu", "mul_", "mul", "native_layer_norm")


class Counting(TorchDispatchMode):
    """Counts what comes below autograd: what is to run."""

    def __init__(self):
        super().__init__()
        self.ran = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.ran[str(func).split(".")[1]] += 1
        return func(*args, **(kwargs or {}))


def step_of(part):
    def step():
        checkpoint(part, torch.ones(5, 8, requires_grad=True), use_reentrant=False).sum().backward()

    return step


def ran(trace):
    rows = aten(trace)
    counts = Counter(rows.loc[rows["status"] != "not run", "op"].str.split(".").str[1])
    return {name: counts[name] for name in SHOWN if counts[name]}


@pytest.mark.parametrize("early_stop", (True, False))
@pytest.mark.parametrize("name", PARTS)
def test_what_is_not_marked_ran(name, early_stop):
    step = step_of(PARTS[name])
    with set_checkpoint_early_stop(early_stop):
        with Counting() as counting:
            step()
        traced, timed = record(step), nbkit.optime(device="cpu").run(step)
    expected = {name: counting.ran[name] for name in SHOWN if counting.ran[name]}
    assert ran(traced) == ran(timed) == expected
    assert early_stop or (traced.ops["status"].isna().all() and timed.ops["status"].isna().all())


@pytest.mark.parametrize("repeats", (0, 3))
def test_a_call_that_did_not_run_has_no_time_of_its_own_and_its_caller_has_it(repeats):
    step = step_of(PARTS["product"])
    step()
    timed = nbkit.optime(device="cpu", repeats=repeats).run(step).ops
    (stopped,) = timed[timed["status"] == "not run"].index
    assert timed.loc[stopped, "op"].startswith("aten.addmm")
    assert timed.loc[stopped, "self_time_us"] == 0
    assert timed["self_time_us"].sum() == pytest.approx(timed.loc[0, "total_time_us"])


def test_an_op_of_which_the_result_was_saved_has_run_and_has_no_result():
    timed = nbkit.optime(device="cpu").run(step_of(PARTS["result"])).ops
    raised = timed[timed["status"] == "raised"]
    assert [op.split(".")[1] for op in raised["op"]] == ["tanh"]
    assert (raised["self_time_us"] > 0).all()


def test_a_call_that_raised_in_the_step_is_marked():
    def step():
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            torch.mm(torch.ones(2, 3), torch.ones(2, 3))
        torch.mm(torch.ones(2, 3), torch.ones(3, 2))

    rows = aten(record(step))
    assert rows.loc[rows["op"] == "aten.mm.default", "status"].fillna("").tolist() == ["raised", ""]


# As tools/autograd/derivatives.yaml of torch has them.
SAVES = {"addmm.default": True, "convolution.default": True, "gelu.default": True, "mul_.Tensor": True,
         "_softmax.default": False, "sigmoid_.default": False, "native_layer_norm.default": False, "mm": True,
         "_scaled_dot_product_flash_attention_for_cpu.default": False}  # fmt: skip


@pytest.mark.parametrize("op", SAVES)
def test_what_an_op_saves_is_asked_of_torch(op):
    assert saves_what_it_takes(f"aten.{op}") == SAVES[op]
    assert not saves_what_it_takes(f"other.{op}")
