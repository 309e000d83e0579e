"""What opcost says of a step equals what the step does when it runs, and the step's real tensors stay as they were."""

import gc
import weakref

import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import nbkit
from bench.cost_memory import allocated, held_by
from sample_models.llama import LLAMA_7B, LLAMA_TINY, Llama

OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "adamw": lambda parameters: torch.optim.AdamW(parameters),
    "adamw, foreach": lambda parameters: torch.optim.AdamW(parameters, foreach=True),
    "adafactor": lambda parameters: torch.optim.Adafactor(parameters),
}


def mlp():
    return nn.Sequential(
        nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)
    )


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.head = nn.GRU(32, 16, batch_first=True), nn.Linear(16, 10)

    def forward(self, x):
        return self.head(self.gru(x.view(len(x), 4, 8).repeat(1, 1, 4))[0][:, -1])


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(2, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.second, self.head = nn.Conv2d(8, 8, 3, padding=1), nn.Linear(128, 10)

    def forward(self, x):
        x = F.relu(self.norm(self.first(x.view(-1, 2, 4, 4))))
        return self.head((x + self.second(x)).flatten(1))


KINDS = {"mlp": mlp, "recurrent": Recurrent, "convolutional": Convolutional}


def training(kind, optimizer):
    torch.manual_seed(0)
    model, x, y = KINDS[kind](), torch.randn(16, 32), torch.arange(16) % 10
    optimizer = OPTIMIZERS[optimizer](model.parameters())

    def step():
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    return model, optimizer, (x, y), step


def saved_for_real(model, forward):
    """Returns the bytes of the memories that autograd saves, parameters and buffers left out."""
    own = {tensor.untyped_storage().data_ptr() for tensor in (*model.parameters(), *model.buffers())}
    held = {}

    def pack(tensor):
        held.setdefault(tensor.untyped_storage().data_ptr(), tensor.untyped_storage())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        _ = forward()
    return sum(storage.nbytes() for pointer, storage in held.items() if pointer not in own)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_the_peak_is_that_of_a_step_that_runs(kind, optimizer):
    model, stepper, inputs, step = training(kind, optimizer)
    step()
    stepper.zero_grad()
    trace = nbkit.opcost().run(step)
    held = held_by(model, stepper) + sum(tensor.nbytes for tensor in inputs)
    # A number that torch makes a tensor of has 8 bytes at most.
    assert abs(trace.memory["allocated_bytes"].max() - held - allocated(step, trace.costs["op"])) <= 8


@pytest.mark.parametrize("runs", [1, 3], ids=["one pass", "gradients of three passes"])
def test_gradients_are_summed_in_place_as_a_step_without_a_mode_does(runs):
    x, model = torch.randn(512, 64), nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64, bias=False))

    def step():
        model.zero_grad()
        for _ in range(runs):
            y = model(x.view(8, 64, 64))
            (F.linear(y.tanh(), model[2].weight) * y + y * 3).sum().backward()

    trace = nbkit.opcost().run(step)
    held = sum(parameter.nbytes for parameter in model.parameters()) + x.nbytes
    assert abs(trace.memory["allocated_bytes"].max() - held - allocated(step, trace.costs["op"])) <= 8


@pytest.mark.parametrize("kind", KINDS)
def test_saved_bytes_are_those_of_a_forward_pass_that_runs(kind):
    model, _, (x, _), _ = training(kind, "sgd")
    trace = nbkit.opcost().run(lambda: model(x))
    assert trace.saved["new_bytes"].sum() == saved_for_real(model, lambda: model(x)) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_flops_are_those_that_torch_counts_in_a_step_that_runs(kind):
    model, _, _, step = training(kind, "sgd")
    with FlopCounterMode(display=False) as counter:
        step()
    trace = nbkit.opcost().run(step)
    assert trace.costs["flops"].sum() == counter.get_total_flops()
    assert trace.meta["unknown_flops"] == {}
    root = trace.module_costs.iloc[0]
    assert root["forward_flops"] + root["backward_flops"] == counter.get_total_flops()
    assert root["params"] == sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("kind", KINDS)
def test_its_ops_are_those_that_optrace_records(kind):
    """But for the calls of aten.detach, by which autograd saves results of a step that a mode sees."""
    _, _, _, step = training(kind, "adamw")
    with nbkit.optrace(values="stats") as ran:
        step()
    _, _, _, again = training(kind, "adamw")  # the first step, too: it makes the optimizer's state
    cost = nbkit.opcost().run(again)
    of_both = [
        ops.loc[(ops["level"] == "aten") & (ops["op"] != "aten.detach.default"), ["op", "module", "phase", "source"]]
        for ops in (ran.ops, cost.ops)
    ]
    pd.testing.assert_frame_equal(*(ops.reset_index(drop=True) for ops in of_both))
    assert len(cost.ops) <= len(ran.ops)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_what_was_there_before_is_as_it_was(optimizer):
    model, stepper, inputs, step = training("convolutional", optimizer)
    step()

    def state():
        tensors = [*model.parameters(), *model.buffers(), *(p.grad for p in model.parameters()), *inputs]
        kept = [value for entry in stepper.state.values() for value in entry.values() if torch.is_tensor(value)]
        return [(id(tensor), tensor._version, tensor.clone()) for tensor in (*tensors, *kept)]

    before, random = state(), torch.get_rng_state()
    groups = [dict(group) for group in stepper.param_groups]
    nbkit.opcost().run(step)
    for (identity, version, value), (same, now, left) in zip(before, state(), strict=True):
        assert identity == same and version == now and torch.equal(value, left)
    assert torch.equal(random, torch.get_rng_state()) and groups == [dict(group) for group in stepper.param_groups]
    step()  # runs with real values again
    assert all(type(p.grad) is torch.Tensor for p in model.parameters())


def test_a_model_larger_than_the_machine_costs_what_the_closed_form_says():
    """7B parameters, 2,048 tokens, from cost_model's figures: products of weights, and of attention."""
    with nbkit.opcost() as trace:
        model = Llama(LLAMA_7B)
        model(torch.zeros(1, 2048, dtype=torch.long)).mean().backward()
    flops = trace.costs.groupby("phase")["flops"].sum()
    weights = 6_607_077_376  # all but embedding and norms
    assert flops["forward"] == 2 * 2048 * weights + 4 * 2048**2 * 4096 * 32 == 29_261_612_187_648
    assert flops["backward"] == 59_622_736_003_072
    assert trace.storages.groupby("kind")["size_bytes"].sum()["gradient"] == 4 * 6_738_415_616


def test_memory_has_a_kind_and_the_peak_is_made_up_of_them():
    _, _, _, step = training("mlp", "adamw")
    trace = nbkit.opcost().run(step)
    sizes = trace.storages.groupby("kind")["size_bytes"].sum()
    parameters = sizes["parameter"]
    assert sizes["gradient"] == parameters and sizes["optimizer state"] == 2 * parameters + 4 * 8
    held = nbkit.held_at_peak(trace.memory, trace.ops)
    assert held["held_bytes"].sum() == trace.memory["allocated_bytes"].max()


def test_a_checkpoint_saves_its_input_alone_and_computes_again():
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))
    x = torch.randn(32, 64, requires_grad=True)
    checkpoint = torch.utils.checkpoint.checkpoint

    def again():
        checkpoint(layers, x, use_reentrant=False).sum().backward()

    plain = nbkit.opcost().run(lambda: layers(x).sum().backward())
    checkpointed = nbkit.opcost().run(again)
    assert plain.saved["new_bytes"].sum() == 73_728
    assert (plain.costs["flops"].sum(), checkpointed.costs["flops"].sum()) == (6_291_456, 7_340_032)


@pytest.mark.parametrize(("x", "ops"), [((2, 3, 4), ["mul", "add"]), ((2, 3), ["sub"])])
def test_a_branch_on_shapes_is_taken(x, ops):
    def step(tensor):
        return tensor * 2 + 1 if tensor.dim() == 3 else tensor - 5

    real = torch.ones(x)
    trace = nbkit.opcost().run(lambda: step(real))
    assert [op.split(".")[1] for op in trace.costs["op"]] == ops


def test_a_branch_on_values_ends_with_one_sentence_and_the_trace_so_far():
    model = nn.Sequential(nn.Linear(4, 4))
    recorder = nbkit.opcost(values="bound")
    with pytest.raises(nbkit.CostError, match=r"aten._local_scalar_dense needs values.*test_opcost.py"), recorder:
        if model(torch.randn(2, 4)).sum() > 0:
            raise AssertionError("not reached")
    assert recorder.trace.meta["complete"] is False
    assert "aten.addmm.default" in recorder.trace.costs["op"].tolist()


def test_small_real_values_are_known():
    lengths, mask = torch.tensor([3, 5]), torch.ones(4, dtype=torch.bool)
    trace = nbkit.opcost().run(lambda: torch.zeros(int(lengths.max()), 2) if mask.all() else None)
    assert trace.costs["written_bytes"].max() == 5 * 2 * 4


def test_a_custom_op_needs_a_rule_for_its_shape():
    library = torch.library.Library("costly", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CPU")
    x = torch.ones(3)
    with pytest.raises(nbkit.CostError, match="costly.twice has no rule for the shape of its result"), nbkit.opcost():
        torch.ops.costly.twice(x)
    nbkit.register_shape_formula("costly.twice")(lambda x: x.new_empty(x.shape))
    trace = nbkit.opcost().run(lambda: torch.ops.costly.twice(x))
    assert trace.meta["unknown_flops"] == {"costly.twice.default": 1}
    assert trace.costs["flops"].isna().all() and trace.costs["read_bytes"].tolist() == [12]
    assert type(torch.ops.costly.twice(x)) is torch.Tensor


def test_a_model_is_cast_inside():
    with nbkit.opcost() as trace:
        model = mlp().to(torch.bfloat16)
        model(torch.randn(4, 32, dtype=torch.bfloat16)).sum().backward()
    products = trace.costs[trace.costs["flops"] > 0]
    assert set(products["dtype"]) == {"bfloat16"}


def test_all_on_the_meta_device():
    with torch.device("meta"):
        model, x = mlp(), torch.randn(4, 32)
    trace = nbkit.opcost().run(lambda: model(x).sum().backward())
    assert trace.costs["flops"].sum() == 2 * (2 * 4 * (32 * 64 + 64 * 64 + 64 * 10)) + 2 * 4 * (64 * 64 + 64 * 10)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_views_move_nothing_and_memory_that_is_freed_is_told():
    x = torch.ones(8, 8)

    def step():
        y = x.t()[1:].unsqueeze(0)
        z = y * 2
        del z
        return y.sum()

    trace = nbkit.opcost().run(step)
    moved = trace.costs.set_index("op")[["read_bytes", "written_bytes"]]
    assert moved.loc["aten.t.default"].tolist() == [0, 0]
    assert moved.loc["aten.mul.Tensor"].tolist() == [224, 224]
    (product,) = trace.storages[trace.storages["op"] == "aten.mul.Tensor"].itertuples()
    assert product.freed_op_id == product.op_id


def test_a_loss_reads_of_the_scores_the_targets_alone():
    """Their gradient is filled from their shape: 4 bytes of the loss's gradient are read, 4 of the count of targets."""
    scores, targets = torch.randn(100, 50, requires_grad=True), torch.randint(50, (100,))
    moved = nbkit.opcost().run(lambda: torch.nn.functional.cross_entropy(scores, targets).backward()).costs
    moved = moved.set_index("op")[["read_bytes", "written_bytes"]]
    assert moved.loc["aten.nll_loss_forward.default"].tolist() == [100 * 4 + 100 * 8, 8]
    assert moved.loc["aten.nll_loss_backward.default"].tolist() == [4 + 4 + 100 * 8, 100 * 50 * 4]


def test_nothing_is_kept_alive():
    models = [Llama(LLAMA_TINY)]
    anchor, recorder = weakref.ref(models[0]), nbkit.opcost()
    recorder.run(lambda: models[0](torch.zeros(1, 8, dtype=torch.long)).mean().backward())
    models.clear()
    gc.collect()
    assert anchor() is None and recorder.trace is not None


def test_run_wants_a_function():
    with pytest.raises(nbkit.OptionError, match="give it a function"):
        nbkit.opcost().run(3)
