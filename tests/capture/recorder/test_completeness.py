"""Tests that nothing is missing: ops that a bare dispatch mode and torch.profiler see, modules, forward partners."""

from collections import Counter

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from nbkit.capture.raw.tensor_registry import TensorRegistry
from tests.capture.models import MODELS, OPTIMIZERS, aten, in_any_mode, record, recorded_ops, seen_ops, train_step


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("model", MODELS)
def test_the_recorded_ops_are_those_a_bare_dispatch_mode_sees(model, optimizer):
    step = train_step(model, optimizer)
    step()  # the first step makes the optimizer's state
    seen = seen_ops(step)
    assert in_any_mode(recorded_ops(record(step))) == in_any_mode(seen)
    assert sum(seen.values()) > 50


@pytest.mark.parametrize("model", MODELS)
def test_every_backward_op_has_its_forward_op_and_its_module(model):
    trace = record(train_step(model))
    rows = aten(trace)
    backward = rows[(rows["phase"] == "backward")]
    unlinked = backward[backward["forward_op_id"].isna()]
    # Without a partner are only the first gradient and what adds gradients up in a parameter (its module is known).
    accumulating = {"aten.detach.default", "aten.add_.Tensor", "aten.new_empty_strided.default", "aten.copy_.default"}
    assert set(unlinked["op"]) <= {"aten.ones_like.default", *accumulating}
    assert set(unlinked.loc[unlinked["module"].isna(), "op"]) == {"aten.ones_like.default"}
    partners = trace.ops.loc[backward["forward_op_id"].dropna()]
    assert set(partners["phase"]) == {"forward"}
    assert partners["module"].tolist() == backward["module"][backward["forward_op_id"].notna()].tolist()


@pytest.mark.parametrize("model", ["rwkv4", "llama", "gru", "conv"])
def test_every_forward_op_of_a_model_has_its_module(model):
    net = MODELS[model]()
    given = {"gru": torch.randn(2, 4, 3), "conv": torch.randn(2, 2, 4, 4)}.get(model, torch.randint(0, 96, (2, 4)))
    trace = record(lambda: net(given))
    assert len(aten(trace)) > 5
    assert not trace.ops["module"].isna().any()
    assert set(trace.ops["phase"]) == {"forward"}
    assert set(trace.ops["module"]) <= {path for path, _ in net.named_modules()}


def test_every_row_has_its_place():
    trace = record(train_step("llama"))
    rows = trace.ops
    assert rows["source"].notna().all()
    assert (rows["device"].dropna() == "cpu").all()
    assert rows.loc[rows["level"] == "aten", "device"].notna().all()
    assert (rows["parent_id"].dropna() < rows["op_id"][rows["parent_id"].notna()]).all()
    parents = rows.loc[rows["parent_id"].dropna()]
    assert set(parents["level"]) == {"api"}
    assert (rows["self_time_us"] >= -0.001).all()
    assert set(rows["phase"]) <= {"forward", "backward", "optimizer", "other"}
    assert set(rows["thread"]) == {0}


# What torch itself does otherwise where any dispatch mode is on, with the same bits:
UNLIKE = {
    "aten::add",  # gradients that meet are added out of place, not into the first one
    "aten::add_",
    "aten::detach",  # made in C++ for parameters' gradients and saved outputs: those events are called "detach"
    "aten::clone",  # of an in-place op's saved input: the event stands inside that of the op
    "aten::view",  # reshape views; without a mode it takes _reshape_alias
}
if torch.__version__ < "2.9":  # attention calls where() with a number, which makes it a tensor and calls where()
    UNLIKE.add("aten::scalar_tensor")


def outermost(event, names):
    """Returns whether no event around this one is an op of `names` too."""
    above = event.cpu_parent
    while above is not None:
        if above.name in names:
            return False
        above = above.cpu_parent
    return True


@pytest.mark.parametrize("model", MODELS)
def test_the_profiler_sees_the_same_ops(model):
    step = train_step(model)
    step()
    packets = Counter()
    for name, count in recorded_ops(record(step)).items():
        packets[name.replace(".", "::", 1).partition(".")[0]] += count
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        step()
    # The profiler also sees what ops call below the dispatcher: an op counts where none of ours is around it.
    events = [event for event in profiled.events() if event.name in packets and outermost(event, packets)]
    found = Counter(event.name for event in events)
    assert {name: found[name] for name in packets if name not in UNLIKE} == {
        name: count for name, count in packets.items() if name not in UNLIKE
    }
    assert found["aten::add"] + found["aten::add_"] == packets["aten::add"] + packets["aten::add_"]
    assert found.keys() == packets.keys()


def test_api_calls_stand_over_their_ops():
    net, x = nn.Linear(3, 4), torch.randn(2, 3)
    trace = record(lambda: net(x).add_(1))
    shown = [(row.level, row.op, None if row.parent_id is None else row.parent_id) for row in trace.ops.itertuples()]
    assert [(level, op) for level, op, _ in shown] == [
        ("api", "torch.nn.functional.linear"),
        ("aten", "aten.t.default"),
        ("aten", "aten.addmm.default"),
        ("api", "torch.Tensor.add_"),
        ("aten", "aten.add_.Tensor"),
    ]
    assert trace.ops["parent_id"].fillna(-1).tolist() == [-1, 0, 0, -1, 3]


def test_an_op_whose_tensors_the_recorder_fails_at_stays_without_them(monkeypatch):
    """Not even the first of several is left, which would look like the only one."""
    number = TensorRegistry.number

    def fails(registry, tensor, fresh=False):
        if tensor.shape == (7,):
            raise ArithmeticError("trouble of its own")
        return number(registry, tensor, fresh)

    monkeypatch.setattr(TensorRegistry, "number", fails)
    monkeypatch.setenv("NBKIT_RECORDER", "python")  # the other has a registry of its own
    x, y, outs = torch.ones(2), torch.ones(7), []
    trace = record(lambda: outs.extend(torch.cat([x, y]).split([2, 7])))
    assert [out.shape for out in outs] == [(2,), (7,)]
    for side in ("inputs", "outputs"):
        assert trace.meta["skipped"][f"{side} not described (ArithmeticError)"] == 1
    ops = aten(trace).set_index("op_id")["op"]
    roles = [(ops[row.op_id], row.role) for row in trace.tensors.itertuples() if row.op_id in ops]
    assert roles == [("aten.cat.default", "output"), ("aten.split_with_sizes.default", "input")]
