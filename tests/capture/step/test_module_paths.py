"""Module paths as named_modules() gives them: shared, contained, several roots, methods, lists, calls, gone ones."""

import gc
import warnings

import pytest
import torch
from torch import nn

import nbkit
from tests.capture.models import aten, record


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x):
        return self.inner(x) + x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.table = nn.ModuleDict({"a": nn.Linear(2, 2)})
        self.tied = self.blocks[0].inner
        self.plain = [nn.Linear(2, 2), Block()]

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.table["a"](x)

    def generate(self, x):
        return self.blocks[1](x)

    def unregistered(self, x):
        for part in self.plain:
            x = part(x)
        return x


X = torch.ones(1, 2)


def places(trace):
    """(model, module path, call) of the linear layers that ran."""
    rows = aten(trace, "aten.addmm")
    return list(zip(rows["model"], rows["module"], rows["module_call"], strict=True))


def calls(trace):
    rows = trace.modules[trace.modules["calls"] > 0]
    return {(row.model, row.module): row.calls for row in rows.itertuples()}


def test_containers_and_shared_modules_have_their_first_path():
    net = Net()
    trace = record(lambda: (net(X), net.tied(X)))
    assert places(trace) == [
        ("Net", "blocks.0.inner", 0),
        ("Net", "blocks.1.inner", 0),
        ("Net", "table.a", 0),
        ("Net", "blocks.0.inner", 1),
    ]
    assert trace.modules["module"].tolist() == [path for path, _ in net.named_modules()]
    assert aten(trace, "aten.add")["module"].tolist() == ["blocks.0", "blocks.1"]


def test_modules_frame_describes_the_tree():
    model = Tied()
    trace = record(lambda: model(X))
    rows = trace.modules.set_index("module")
    assert rows["type"].to_dict() == {"": "Tied", "a": "Linear", "b": "Linear", "norm": "BatchNorm1d"}
    assert rows["params"].to_dict() == {"": 6 + 2 + 4, "a": 6, "b": 6, "norm": 4}  # b shares a's weight
    assert rows["trainable_params"][""] == 12 - 2
    assert rows["param_bytes"]["a"] == 24
    assert rows["buffer_bytes"].to_dict() == {"": 24, "a": 0, "b": 0, "norm": 24}
    assert rows["parent"].fillna("-").to_dict() == {"": "-", "a": "", "b": "", "norm": ""}
    assert rows["depth"].tolist() == [0, 1, 1, 1]


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.norm = nn.Linear(2, 2), nn.Linear(2, 2), nn.BatchNorm1d(2)
        self.b.weight = self.a.weight
        self.b.bias.requires_grad = False
        self.eval()

    def forward(self, x):
        return self.norm(self.b(self.a(x)))


def test_several_models_of_a_class_are_numbered():
    first, second, other = Block(), Block(), nn.Linear(2, 2)
    trace = record(lambda: (first(X), second(X), other(X), first(X)))
    assert places(trace) == [("Block", "inner", 0), ("Block#2", "inner", 0), ("Linear", "", 0), ("Block", "inner", 1)]
    assert calls(trace)["Block", ""] == 2


def test_a_module_made_inside_the_recording():
    def step():
        made = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        return made(X)

    assert places(record(step)) == [("Sequential", "0", 0), ("Sequential", "1", 0)]


def test_a_method_belongs_to_its_model():
    net = Net()
    trace = record(lambda: net.generate(X))
    assert places(trace) == [("Net", "blocks.1.inner", 0)]
    assert calls(trace) == {("Net", "blocks.1"): 1, ("Net", "blocks.1.inner"): 1}


def test_a_part_called_directly_belongs_to_its_model():
    net = Net()
    assert places(record(lambda: net.blocks[1].inner(X))) == [("Net", "blocks.1.inner", 0)]


def test_a_part_with_a_name_of_its_own_is_a_root():
    net = Net()
    part = net.blocks[1]
    assert places(record(lambda: part(X))) == [("Block", "inner", 0)]


def test_modules_in_a_plain_list_are_roots_of_their_own():
    net = Net()
    trace = record(lambda: net.unregistered(X))
    assert places(trace) == [("Linear", "", 0), ("Block", "inner", 0)]


def test_models_in_a_plain_list_of_the_cell():
    models = [nn.Linear(2, 2), nn.Linear(2, 2)]
    assert places(record(lambda: [model(X) for model in models])) == [("Linear", "", 0), ("Linear#2", "", 0)]


def test_a_module_that_was_wrapped_after_its_model_had_run():
    net = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2)))

    def step():
        net[0](X)
        net[1] = nn.Sequential(net[1], nn.Linear(2, 2))
        net(X)

    trace = record(step)
    assert [path for _, path, _ in places(trace)] == ["0", "0", "1.0.0", "1.1"]
    assert {model for model, _, _ in places(trace)} == {"Sequential"}


def test_a_model_deleted_before_the_end_keeps_what_ran():
    def step():
        for _ in range(3):
            Block()(X)
        gc.collect()

    trace = record(step)
    assert places(trace) == [("Block", "inner", 0), ("Block#2", "inner", 0), ("Block#3", "inner", 0)]
    assert calls(trace)["Block#3", "inner"] == 1


def test_an_exception_in_a_forward_that_is_caught_ends_the_module():
    class Fails(nn.Module):
        def forward(self, x):
            x + 1
            raise ValueError("no")

    fails, block = Fails(), Block()

    def step():
        with pytest.raises(ValueError, match="no"):
            fails(X)
        X + 2
        block(X)

    trace = record(step)
    assert trace.complete
    assert aten(trace)["module"].fillna("outside").tolist() == ["", "outside", "inner", "inner", ""]


def test_recursion_and_calls_in_a_loop_are_counted():
    layer = nn.Linear(2, 2)
    trace = record(lambda: [layer(X) for _ in range(4)])
    assert aten(trace, "aten.addmm")["module_call"].tolist() == [0, 1, 2, 3]
    assert trace.modules["calls"].tolist() == [4]


def test_backward_ops_belong_to_the_call_of_their_forward_op():
    layer = nn.Linear(2, 2)
    trace = record(lambda: layer(layer(X)).sum().backward())
    products = aten(trace, "aten.mm")
    assert set(products["module"]) == {""}
    assert products["module_call"].tolist() == [1, 1, 0]


def test_a_forward_called_around_the_module_call_has_no_module():
    layer = nn.Linear(2, 2)
    trace = record(lambda: layer.forward(X))
    assert aten(trace)["module"].isna().tolist() == [True, True]
    assert len(trace.modules) == 0


def test_a_script_module_and_a_lazy_module_pass():
    lazy = nn.LazyLinear(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        scripted = torch.jit.trace(nn.Linear(2, 2), X)
    trace = record(lambda: (lazy(X), scripted(X)))
    assert trace.complete
    assert len(aten(trace, "aten.addmm")) + len(aten(trace, "aten.linear")) == 2


def test_hooks_of_modules_run_once_and_in_order():
    layer, seen = nn.Linear(2, 2), []
    layer.register_forward_pre_hook(lambda *_: seen.append("before"))
    layer.register_forward_hook(lambda *_: seen.append("after"))
    with nbkit.optrace():
        layer(X)
    assert seen == ["before", "after"]


def test_parameters_have_their_path_and_tied_ones_the_first():
    net = Net()
    trace = record(lambda: net(X))
    names = trace.tensors["name"].dropna().unique().tolist()
    assert sorted(names) == sorted(
        f"{layer}.{kind}" for layer in ("blocks.0.inner", "blocks.1.inner", "table.a") for kind in ("weight", "bias")
    )


def test_a_module_that_cannot_be_asked_for_its_modules_runs_and_is_counted():
    class Closed(nn.Module):
        def named_modules(self, *args, **kwargs):
            raise RuntimeError("closed")

        def forward(self, x):
            return x * 2

    model, made = Closed(), []
    trace = record(lambda: made.append(model(torch.ones(2))))
    assert made[0].tolist() == [2, 2]
    assert trace.meta["skipped"]["module calls not described: Closed (RuntimeError)"] == 1
    assert len(aten(trace, "aten.mul")) == 1
