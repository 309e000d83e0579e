"""Right modules are never called wrong, whatever they are made of; each compared call has its rows."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.library import _scoped_library

from nbkit.capture.diff.modules.reference_thread import ReferenceThread
from nbkit.capture.diff.modules.run import ForwardCall, ModuleCall, frozen
from nbkit.capture.replay.reference import Reference
from tests.capture.diff.planted import compared, wrong
from tests.capture.diff.test_clean_steps import DTYPES, steps
from tests.capture.models import MODELS


@pytest.mark.parametrize("modules", [None, "*"], ids=["leaves", "all"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("model", MODELS)
def test_a_clean_step_has_no_mismatch(model, dtype, modules):
    trace = compared(steps(model, DTYPES[dtype]), level="module", modules=modules)
    assert wrong(trace).empty and not (trace.diffs["status"] == "skipped").any()
    assert set(trace.diffs["phase"]) == {"forward", "backward"}
    assert trace.meta["mismatches"] == 0 and trace.meta["compared_modules"] > 5


class Cancels(nn.Module):
    """Loses five digits of its input in float32, as rounding has to: no change of the input alone shows it."""

    def forward(self, x):
        return (x + 1e6) - 1e6


def test_what_rounding_between_the_ops_of_a_module_does_is_allowed(monkeypatch):
    model, x = Cancels(), torch.rand(16)
    row = compared(lambda: model(x), level="module").diffs.iloc[0]
    assert (row["status"], row["max_abs_error"] > 1e-3) == ("ok", True)
    monkeypatch.setattr(ModuleCall, "_eps", lambda call: 0.0)
    assert compared(lambda: model(x), level="module").diffs["status"].tolist() == ["mismatch"]


def change_of(module, x, device):
    """What rounding between the ops of a module on such a device may change of its result."""
    thread, copies = ReferenceThread(), replace(frozen(module, (x,), {}, torch.float64, False), devices={device})
    with thread:
        change = ForwardCall(Reference("cpu:float64"), thread, "module", copies).conditioning(2, 2.0**-23)[0]
    thread.close()
    return float(change.max())


@pytest.fixture
def allow_tf32():
    """Allows TF32 to the products of one library, or to none."""
    flags = {"matmul": torch.backends.cuda.matmul, "cudnn": torch.backends.cudnn}
    before = {name: flag.allow_tf32 for name, flag in flags.items()}

    def allow(library):
        for name, flag in flags.items():
            flag.allow_tf32 = name == library

    yield allow
    for name, flag in flags.items():
        flag.allow_tf32 = before[name]


def test_products_and_convolutions_on_cuda_may_have_the_ten_bits_that_torch_allows_them(allow_tf32):
    """No device is needed: the kind of it and torch's flags are asked for."""
    modules = {"matmul": (nn.Linear(8, 8), torch.rand(8, 8)), "cudnn": (nn.Conv1d(4, 4, 3), torch.rand(2, 4, 8))}
    for name, call in {**modules, "neither": (nn.Tanh(), torch.rand(8))}.items():
        usual = change_of(*call, "cpu")
        for allowed in ("matmul", "cudnn", "neither"):
            allow_tf32(allowed)
            coarser = 2.0**13 if name == allowed != "neither" else 1.0  # 23 bits, of which 10 are left
            assert change_of(*call, "cuda") == pytest.approx(coarser * usual, rel=0.1)


TABLE = torch.linspace(-1, 1, 64).view(8, 8).to(torch.bfloat16)


class OfOthers(nn.Module):
    """Computes in the dtype of a table that it neither holds nor is given, and cancels in it."""

    def forward(self, ids):
        return (F.embedding(ids, TABLE) + 100) - 100


def test_a_module_is_judged_by_the_dtype_that_it_returns():
    row = compared(lambda: OfOthers()(torch.arange(8)), level="module").diffs.iloc[0]
    assert (row["dtype"], row["status"], row["max_abs_error"] > 0.1) == ("bfloat16", "ok", True)


class Running(nn.Module):
    """Adds up one number after the other, in the dtype of its input."""

    def forward(self, x):
        return torch.ops.nbkit_clean.added_up(x)


def test_a_long_sum_in_a_module_may_be_as_wrong_as_one_after_the_other_makes_it():
    thirds, added = torch.full((4096,), 1 / 3), lambda x: torch.tensor(np.add.accumulate(x.numpy())[-1])
    with _scoped_library("nbkit_clean", "DEF") as library:
        library.define("added_up(Tensor x) -> Tensor")
        library.impl("added_up", added, "CPU")
        row = compared(lambda: Running()(thirds), level="module").diffs.iloc[0]
    assert (row["status"], row["max_rel_error"] > 5e-6) == ("ok", True)


def test_each_module_has_rows_for_results_and_gradients_per_argument():
    """B39: gradients belong to arguments, in whatever order autograd lists them; `contiguous()` has its own."""
    model, x = nn.Sequential(nn.Linear(4, 3), nn.Tanh()), torch.randn(2, 4, requires_grad=True)
    diffs = compared(lambda: model(x).sum().backward(), level="module").diffs
    rows = [tuple(row) for row in diffs[["op", "module", "phase", "role", "position", "shape"]].to_numpy().tolist()]
    assert sorted(rows) == sorted(
        [
            ("Linear", "0", "forward", "output", 0, "[2, 3]"),
            ("Tanh", "1", "forward", "output", 0, "[2, 3]"),
            ("Tanh", "1", "backward", "input_gradient", 0, "[2, 3]"),
            ("Linear", "0", "backward", "input_gradient", 0, "[2, 4]"),
            ("Linear", "0", "backward", "parameter_gradient", 0, "[3, 4]"),
            ("Linear", "0", "backward", "parameter_gradient", 1, "[3]"),
        ]
    )
    messages = diffs[diffs["role"] == "parameter_gradient"].set_index("position")["message"]
    assert messages.to_dict() == {0: "gradient of weight", 1: "gradient of bias"}


def test_an_op_of_the_row_is_the_first_of_the_call():
    model, x = nn.Sequential(nn.Linear(4, 4), nn.Tanh()), torch.randn(2, 4)
    trace = compared(lambda: model(x).sum().backward(), level="module", modules="*")
    ops, diffs = trace.ops, trace.diffs
    first = {(row.op, row.phase): row.op_id for row in diffs.itertuples()}
    assert first["Linear", "forward"] == first["Sequential", "forward"]
    assert ops["op"][first["Linear", "forward"]] == "torch.nn.functional.linear"
    assert first["Tanh", "backward"] == first["Sequential", "backward"]
    assert ops[["module", "phase"]].loc[first["Tanh", "backward"]].tolist() == ["1", "backward"]


class Everything(nn.Module):
    """Layers that write to buffers, parameters and inputs, have several results, or compute with others' parameters."""

    def __init__(self):
        super().__init__()
        self.embedding, self.lstm = nn.Embedding(20, 8, max_norm=1.0), nn.LSTM(8, 8, 2, bidirectional=True)
        self.attention, self.relu, self.norm = nn.MultiheadAttention(16, 2), nn.ReLU(inplace=True), nn.BatchNorm1d(16)
        self.head, self.loss, self.same = nn.Linear(16, 5), nn.CrossEntropyLoss(), nn.Identity()

    def forward(self, ids, targets):
        x, _ = self.lstm(self.embedding(ids))
        x = self.relu(self.attention(x, x, x)[0] * 1.0)
        x = self.same(self.norm(x.transpose(1, 2)).transpose(1, 2))
        return self.loss(self.head(x).flatten(0, 1), targets.flatten())


def test_layers_of_every_kind():
    model, ids, targets = Everything(), torch.randint(0, 20, (4, 3)), torch.randint(0, 5, (4, 3))
    trace = compared(lambda: model(ids, targets).backward(), level="module")
    assert wrong(trace).empty
    assert set(trace.diffs["module"]) == {"embedding", "lstm", "attention", "relu", "norm", "head", "loss"}
    buffers = trace.diffs[trace.diffs["role"] == "buffer"]
    assert buffers["message"].tolist() == ["running_mean", "running_var", "num_batches_tracked"]
    assert trace.meta["skipped"]["not compared: modules that run no op"] == 1


def test_a_module_that_is_called_twice_has_the_gradients_of_each_call():
    """B17, and autocast's shared cast of a weight: each call has what it gives, not the sum."""
    model, x = nn.Linear(4, 4), torch.randn(3, 4)

    def step():
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(model(x)).float().sum()
        loss.backward()

    trace = compared(step, level="module")
    assert wrong(trace).empty
    assert (trace.diffs["message"] == "gradient of weight").sum() == 2


def test_what_enters_a_call_elsewhere_than_at_its_outputs_is_counted():
    class Leaks(nn.Module):
        def forward(self, x):
            self.inner = torch.tanh(x)
            return self.inner * 2

    class Reads(nn.Module):
        def __init__(self):
            super().__init__()
            self.leaks, self.layer = Leaks(), nn.Linear(4, 4)

        def forward(self, x):
            return self.layer(self.leaks(x)) + self.leaks.inner

    model, x = Reads(), torch.randn(3, 4, requires_grad=True)
    trace = compared(lambda: model(x).sum().backward(), level="module")
    assert wrong(trace).empty and set(trace.diffs["module"]) == {"leaks", "layer"}
    reason = "not compared: backward passes that enter the call of a module elsewhere than at its outputs"
    assert trace.meta["skipped"][reason] == 1


def test_a_second_backward_pass_is_counted():
    model, x = nn.Tanh(), torch.randn(3, 4, requires_grad=True)

    def step():
        (gradient,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        gradient.square().sum().backward()

    trace = compared(step, level="module")
    assert wrong(trace).empty and len(trace.diffs) == 2
    assert trace.meta["skipped"]["not compared: second backward passes (create_graph=True)"] == 1


def test_outputs_of_which_some_are_not_used():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.other = nn.Parameter(torch.randn(4)), nn.Parameter(torch.randn(4))

        def forward(self, x):
            y = x * self.weight
            return {"used": y, "both": y + 1.0, "unused": x * self.other}

    model, x = Two(), torch.randn(3, 4, requires_grad=True)

    def step():
        out = model(x)
        (out["used"].sum() + out["both"].square().sum()).backward()

    trace = compared(step, level="module")
    assert wrong(trace).empty
    gradients = trace.diffs[trace.diffs["phase"] == "backward"]
    assert sorted(gradients["role"]) == ["input_gradient", "parameter_gradient"]


def test_two_passes_back_through_an_output_beside_one_that_is_not_used_are_told_apart():
    class Two(nn.Linear):
        def forward(self, x):
            return super().forward(x), x * self.bias

    model, x = Two(4, 4), torch.randn(3, 4, requires_grad=True)

    def step():
        used, _ = model(x)
        used.sum().backward(retain_graph=True)
        used.sum().backward()

    diffs = compared(step, level="module", phases="backward").diffs
    assert diffs["status"].tolist() == ["ok"] * 6
    assert (diffs["message"] == "gradient of weight").sum() == (diffs["message"] == "gradient of bias").sum() == 2


def test_a_model_of_transformers():
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=64, num_key_value_heads=2, **sizes)).train()
    ids = torch.randint(0, 64, (2, 7))
    for modules, types in ((None, {"Linear", "LlamaRMSNorm", "Embedding"}), ("*", {"LlamaAttention", "LlamaModel"})):
        trace = compared(lambda: model(input_ids=ids, labels=ids).loss.backward(), level="module", modules=modules)
        assert wrong(trace).empty and types <= set(trace.diffs["op"])


def test_a_module_is_judged_by_the_rounding_of_the_dtype_that_it_is_given_though_it_returns_another():
    class Cancels(nn.Module):
        def forward(self, x):
            return ((x + 100.0) - 100.0).float()

    x = torch.linspace(0.1, 0.9, 16, dtype=torch.bfloat16)
    assert (Cancels()(x) - x.float()).abs().max() > 0.1
    assert compared(lambda: Cancels()(x), level="module").diffs["status"].tolist() == ["ok"]


def test_reference_in_float32_where_a_module_knows_no_other():
    class OnlyFloat32(nn.Module):
        def forward(self, x):
            if x.dtype is not torch.float32:
                raise TypeError("float32 is wanted")
            return F.silu(x)

    row = compared(lambda: OnlyFloat32()(torch.randn(4)), level="module").diffs.iloc[0]
    assert row["status"] == "ok"
    assert row["message"] == "compared in float32: it does not run in float64 (float32 is wanted)"
