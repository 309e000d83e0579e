"""Bytes and FLOPs of single modules and functions, to the integer: by hand, and by a pass that runs."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

import nbkit
from bench.cost_memory import saved_by
from nbkit.capture.cost.op_costs import OpRules
from nbkit.capture.cost.traffic import Traffic


def tensor(*shape):
    return torch.randn(*shape, requires_grad=True)


def heads(backend=None):
    x = tensor(2, 4, 8, 16)

    def attention(x):
        return F.scaled_dot_product_attention(x, x, x)

    def by_math(x):
        with sdpa_kernel(SDPBackend.MATH):
            return attention(x)

    return (attention if backend is None else by_math), x


# What each saves for the backward pass, parameters and buffers left out. Inputs of modules need no gradient.
SAVED = {
    "linear": (lambda: (nn.Linear(16, 32), torch.randn(4, 16)), 256),
    "relu": (lambda: (F.relu, tensor(4, 16)), 256),
    "gelu": (lambda: (F.gelu, tensor(4, 16)), 256),
    "layer norm": (lambda: (nn.LayerNorm(16), torch.randn(4, 16)), 288),
    "softmax": (lambda: (lambda x: x.softmax(1), tensor(4, 16)), 256),
    "dropout": (lambda: (nn.Dropout(0.5), tensor(4, 16)), 256),
    "add": (lambda: (lambda x: x + 1, tensor(4, 16)), 0),
    "mul": (lambda: (lambda pair: pair[0] * pair[1], (tensor(4, 16), tensor(4, 16))), 512),
    "embedding": (lambda: (nn.Embedding(10, 4), torch.zeros(4, 7, dtype=torch.long)), 224),
    "batch norm": (lambda: (nn.BatchNorm1d(16), torch.randn(4, 16)), 384),
    "convolution": (lambda: (nn.Conv2d(3, 8, 3, padding=1), torch.randn(2, 3, 8, 8)), 1536),
    "max pool": (lambda: (lambda x: F.max_pool2d(x, 2), tensor(2, 3, 8, 8)), 2304),
    "cross entropy": (lambda: (lambda x: F.cross_entropy(x, torch.arange(4)), tensor(4, 10)), 196),
    "attention": (lambda: heads(), 8448),
    "attention, math": (lambda: heads("math"), 14336),
}


@pytest.mark.parametrize("name", SAVED)
def test_saved_bytes(name):
    make, expected = SAVED[name]
    function, x = make()
    held = function if isinstance(function, nn.Module) else nn.Module()
    assert nbkit.opcost().run(lambda: function(x)).saved["new_bytes"].sum() == expected
    assert saved_by(held, lambda: function(x)) == expected
    with torch.no_grad():
        assert not len(nbkit.opcost().run(lambda: function(x)).saved)


VIEWS = {
    "transpose": lambda x: x.transpose(0, 1),
    "split": lambda x: x.split(2),
    "chunk": lambda x: x.chunk(2),
    "unbind": lambda x: x.unbind(),
    "squeeze": lambda x: x[None].squeeze(0),
    "split_with_sizes": lambda x: torch.split_with_sizes(x, [1, 3]),
    "unfold": lambda x: x.unfold(0, 2, 1),
    "as_strided": lambda x: x.as_strided((2, 2), (1, 2)),
    "view of another dtype": lambda x: x.detach().view(torch.int32),
    "expand": lambda x: x[:1].expand(4, 16),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_take_no_memory(name):
    x = tensor(4, 16)
    trace = nbkit.opcost().run(lambda: VIEWS[name](x))
    assert trace.storages["size_bytes"].tolist() == [x.nbytes]
    assert trace.costs[["flops", "elementwise_flops", "read_bytes", "written_bytes"]].to_numpy().sum() == 0


def test_views_of_one_memory_are_saved_once_and_whole():
    packed, other = tensor(4, 48), torch.randn(4, 16)
    trace = nbkit.opcost().run(lambda: [part * part.detach() for part in (packed * 1).split(16, 1)])
    assert trace.saved["new_bytes"].sum() == packed.nbytes == 3 * other.nbytes
    assert len(trace.saved) >= 3 and set(trace.saved["view_bytes"]) == {other.nbytes}


def test_attention_counts_its_products():
    x = tensor(8, 12, 197, 64)
    backward = {None: 2_384_424_960, "math": 1_907_539_968}
    for backend, expected in backward.items():
        function, _ = heads(backend)
        flops = nbkit.opcost().run(lambda f=function: f(x).sum().backward()).costs.groupby("phase")["flops"].sum()
        assert (flops["forward"], flops["backward"]) == (953_769_984, expected)


def test_a_formula_of_torchs_own_for_attention_changes_nothing(monkeypatch):
    from torch.utils import flop_counter

    op = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    monkeypatch.setitem(flop_counter.flop_registry, op, flop_counter.shape_wrapper(lambda *args, **kwargs: 7))
    x = tensor(8, 12, 197, 64)
    assert nbkit.opcost().run(lambda: heads()[0](x)).costs["flops"].sum() == 953_769_984


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_a_checkpoint_saves_its_input(use_reentrant):
    layers = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))
    x = tensor(32, 64)
    plain = nbkit.opcost().run(lambda: layers(x))
    kept = nbkit.opcost().run(lambda: checkpoint(layers, x, use_reentrant=use_reentrant))
    assert (plain.saved["new_bytes"].sum(), kept.saved["new_bytes"].sum()) == (73_728, 8_192)


class Outputs(nn.Module):
    """Has no parameter, and returns what it is told to."""

    def __init__(self, form):
        super().__init__()
        self.form = form

    def forward(self, x):
        return {"dict": {"out": x * 2}, "none": None, "tuple": (x * 2, x)}[self.form]


@pytest.mark.parametrize("form", ["dict", "none", "tuple"])
def test_a_model_may_return_anything_and_have_no_parameter(form):
    model = Outputs(form)
    row = nbkit.opcost().run(lambda: model(torch.ones(2, 3))).module_costs.iloc[0]
    assert (row["params"], row["calls"], row["forward_flops"]) == (0, 1, 0)


def test_a_module_that_is_called_twice_and_weights_that_are_shared_count_once():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False)
            self.second.weight = self.first.weight

        def forward(self, x):
            return self.second(self.first(self.first(x)))

    model, x = Tied(), torch.ones(4, 8)
    rows = nbkit.opcost().run(lambda: model(x)).module_costs.set_index("module")
    assert rows.loc["", ["params", "forward_flops"]].tolist() == [64, 3 * 512]
    assert rows.loc["first", ["calls", "forward_flops"]].tolist() == [2, 1024]


def test_a_product_in_place_counts_as_one_that_makes_a_tensor():
    out, left, right = torch.zeros(2, 3, 5), torch.ones(2, 3, 4), torch.ones(2, 4, 5)

    def step():
        out.baddbmm_(left, right)
        out[0].addmm_(left[0], right[0])
        out[0, :, 0].addmv_(left[0], right[0, :, 0])

    costs = nbkit.opcost().run(step).costs.set_index("op")["flops"]
    names = [f"aten.{name}.default" for name in ("baddbmm_", "addmm_", "addmv_")]
    assert costs[names].tolist() == [2 * 2 * 3 * 4 * 5, 2 * 3 * 4 * 5, 2 * 3 * 4]


def test_each_saved_tensor_names_the_op_that_saves_it():
    model, x = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2, bias=False)), torch.ones(3, 4)
    trace = nbkit.opcost().run(lambda: model(x).sin().sum().backward())
    savers = trace.ops.set_index("op_id")["op"][trace.saved["saver_op_id"]]
    assert sorted(zip(savers, trace.saved["saver_module"].fillna("none"), trace.saved["shape"], strict=True)) == [
        ("aten.addmm.default", "0", "[3, 4]"),
        ("aten.mm.default", "2", "[3, 8]"),
        ("aten.mm.default", "2", "[8, 2]"),
        ("aten.sin.default", "none", "[3, 2]"),
        ("aten.tanh.default", "1", "[3, 8]"),
    ]


def of_some(x):
    return x[torch.tensor([1, 2])].sum()


def of_all_twice(x):
    y = x.exp()
    return (y * 2).sum() + (y * 3).sum()


def of_all_twice_with_a_gradient_kept(x):
    y, kept = x.exp(), []
    first, second = y * 2, y * 3
    second.grad_fn.register_hook(lambda made, _: kept.append(made[0]))
    return first.sum() + second.sum()


@pytest.mark.parametrize(("loss", "held"), [(of_some, 2), (of_all_twice, 4), (of_all_twice_with_a_gradient_kept, 5)])
def test_what_torch_adds_gradients_to_is_held_once(loss, held):
    """The tensor and its gradient; else its exponential and two gradients of that, and their sum if one is kept."""
    x = torch.ones(1000, requires_grad=True)
    memory = nbkit.opcost().run(lambda: loss(x).backward()).memory
    assert memory["allocated_bytes"].max() // x.nbytes == held
    assert memory["allocated_bytes"].iloc[-1] == x.nbytes  # the step lets go of all that it made


def test_after_an_error_of_the_model_a_second_run_gives_the_same_rows():
    from torch.nn.modules import module as global_hooks

    model, x = nn.Sequential(nn.Linear(8, 8), nn.ReLU()), torch.ones(4, 8)
    first = nbkit.opcost().run(lambda: model(x).sum().backward())
    hooks = dict(global_hooks._global_forward_hooks), dict(global_hooks._global_forward_pre_hooks)
    with pytest.raises(ZeroDivisionError):
        nbkit.opcost().run(lambda: model(x).sum() / (1 // 0))
    assert hooks == (dict(global_hooks._global_forward_hooks), dict(global_hooks._global_forward_pre_hooks))
    again = nbkit.opcost().run(lambda: model(x).sum().backward())
    columns = ["op", "module", "phase", "flops", "elementwise_flops", "read_bytes", "written_bytes"]
    assert again.costs[columns].equals(first.costs[columns])


def test_a_tensor_without_memory_of_its_own_counts_as_if_it_were_dense():
    """A sparse one has no storage; what it holds is not known of its shape."""
    sparse, dense = torch.eye(4, 8).to_sparse(), torch.ones(8, 2)
    assert Traffic().bytes_of(torch.ops.aten.mm.default, (sparse, dense), {}, sparse @ dense) == (4 * (32 + 16), 32)


def test_what_an_op_writes_and_does_not_return_counts_too():
    tensors = [torch.ones(4), torch.ones(2, 3)]
    (cost,) = nbkit.opcost().run(lambda: torch._foreach_mul_(tensors, 2.0)).costs.to_dict("records")
    assert (cost["op"], cost["read_bytes"], cost["written_bytes"]) == ("aten._foreach_mul_.Scalar", 40, 40)


def test_a_call_of_a_form_that_no_rule_knows_has_no_flops():
    x = torch.ones(2, 3)
    assert OpRules().count(torch.ops.aten.avg_pool2d.default, (x, None), {}, x) == (0, None)
