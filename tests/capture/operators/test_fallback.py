"""opfallback: a step with its ops on the CPU is the step on the CPU, to the bit; numbers of known_defects.md."""

import copy
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbkit
from nbkit import OptionError
from nbkit.capture.operators.elsewhere import Elsewhere, NotRunError
from nbkit.capture.replay import op_traits
from nbkit.capture.replay.substitutes import SUBSTITUTES
from tests.capture.identical import each_step, left_by
from tests.capture.models import MODELS, OPTIMIZERS, SHAPES, bits
from tests.support.simulated import simulated_device

FAULTY = ("mm", "addmm", "convolution", "tanh", "mul", "mul_", "sum")
FAULTS = [nbkit.Fault(f"aten.{op}", "relative_error", size=0.01) for op in FAULTY]
IDS = torch.arange(24).reshape(2, 12) % 50


@each_step
def test_every_op_on_the_cpu_gives_the_bits_of_the_bare_step(name, dtype):
    tool = nbkit.opfallback()
    assert left_by(name, dtype, tool) == left_by(name, dtype)
    assert len(tool.trace.replaced)


def trained(model, x, device, tool=None):
    """Bits of parameters and gradients after three steps of AdamW on a device, and of the generator."""
    torch.manual_seed(3)
    model, x = copy.deepcopy(model).to(device), x.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    with tool or nullcontext():
        for _ in range(3):
            optimizer.zero_grad()
            out = model(x)
            (out[0] if isinstance(out, tuple) else getattr(out, "logits", out)).float().pow(2).mean().backward()
            optimizer.step()
    kept = [tensor.detach().cpu() for p in model.parameters() for tensor in (p, p.grad)]
    return bits([*kept, torch.get_rng_state()])


@pytest.mark.parametrize("name", MODELS)
def test_a_step_on_a_faulty_device_is_that_of_the_cpu(name):
    device = simulated_device(FAULTS).torch_device
    model = MODELS[name]()
    x = torch.randn(*SHAPES[name]) if name in SHAPES else IDS
    on_cpu = trained(model, x, "cpu")
    assert trained(model, x, device) != on_cpu
    tool = nbkit.opfallback()
    assert trained(model, x, device, tool) == on_cpu
    assert set(tool.trace.replaced["phase"]) >= {"forward", "backward", "optimizer"}


SMALL = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
TRANSFORMERS = {
    "Qwen2": {**SMALL, "intermediate_size": 48, "num_key_value_heads": 2},
    "Gemma": {**SMALL, "intermediate_size": 48, "num_key_value_heads": 2, "head_dim": 8},
    "GPTNeoX": {**SMALL, "intermediate_size": 48},
    "Bloom": {"vocab_size": 64, "hidden_size": 32, "n_layer": 2, "n_head": 4},
    "Mamba": {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4},
}


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_models_of_transformers_on_a_faulty_device_are_those_of_the_cpu(name):
    transformers = pytest.importorskip("transformers")
    device = simulated_device(FAULTS).torch_device
    torch.manual_seed(0)
    model = getattr(transformers, f"{name}ForCausalLM")(getattr(transformers, f"{name}Config")(**TRANSFORMERS[name]))
    assert trained(model, IDS, device, nbkit.opfallback()) == trained(model, IDS, "cpu")


@pytest.fixture
def fused(monkeypatch):
    """An op of a device alone: wrong, transposed in memory, with notes for a backward op. What stands in is right."""
    own = set()

    def kernel(x):
        if x.data_ptr() not in own:
            raise NotImplementedError("no kernel on the CPU")
        return (x.mT * 3).contiguous().mT, x + 1

    with torch.library._scoped_library("nbkit_test", "FRAGMENT") as place:
        place.define("fused_with_notes(Tensor x) -> (Tensor, Tensor)")
        place.impl("fused_with_notes", kernel, "CPU")
        monkeypatch.setitem(op_traits.VALUES, "fused_with_notes", 1)
        monkeypatch.setitem(SUBSTITUTES, "fused_with_notes", lambda arguments: (arguments["x"] * 2 + 1,))

        def run(x):
            own.add(x.data_ptr())
            return torch.ops.nbkit_test.fused_with_notes(x)

        yield run
        op_traits.traits_of.cache_clear()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_values_of_a_fused_op_are_those_of_what_stands_in_and_its_notes_its_own(fused, dtype):
    x = torch.randn(4, 3).to(dtype)
    with nbkit.opfallback() as trace:
        out, notes = fused(x)
    assert torch.equal(out, (x.float() * 2 + 1).to(dtype)) and torch.equal(notes, x + 1)
    assert out.dtype == dtype and out.stride() == (1, 4)
    row = trace.replaced.iloc[0]
    assert row["op"] == "nbkit_test.fused_with_notes.default"
    # Each step of what stands in would round.
    assert (row["message"] == "in float32: no kernel on the CPU") if dtype == torch.bfloat16 else row.isna()["message"]


def test_attention_with_dropout_stays_on_the_device():
    """What stands in draws nothing; the backward op does not draw either, but has to know what its forward op drew."""
    call = SimpleNamespace(
        traits=op_traits.traits_of(torch.ops.aten._scaled_dot_product_efficient_attention_backward.default),
        args=(*[torch.ones(1, 1, 2, 2)] * 4, None, torch.ones(1, 1, 2, 2), *[torch.ones(1, 1, 2)] * 3, 0.5, [True] * 4),
        kwargs={}, has_gradients=False, tensors=list,
    )  # fmt: skip
    with pytest.raises(NotRunError):
        Elsewhere(torch.device("cpu"), {}).run(call)
    call.args = (*call.args[:9], 0.0, call.args[10])
    assert len(Elsewhere(torch.device("cpu"), {}).run(call)[0]) == 4


def test_only_what_is_chosen_runs_on_the_cpu():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
    x = torch.ones(2, 4)
    with nbkit.opfallback(ops="addmm", calls=1) as trace:
        model(x)
    assert trace.replaced[["op", "module", "phase", "call", "ran"]].to_numpy().tolist() == [
        ["aten.addmm.default", "2", "forward", 1, "cpu"]
    ]
    with nbkit.opfallback(modules="2", phases="backward") as trace:
        model(x).sum().backward()
    assert set(trace.replaced["module"]) == {"2"} and set(trace.replaced["phase"]) == {"backward"}
    assert trace.meta["skipped"]["not replaced: other phases"] > 0


def test_an_api_call_brings_the_forward_ops_below_it():
    with nbkit.opfallback(ops="linear,softmax", exclude_ops="t") as trace:
        F.linear(torch.ones(2, 4), torch.ones(3, 4), torch.ones(3)).softmax(-1).exp()
    assert trace.replaced["op"].tolist() == ["aten.addmm.default", "aten._softmax.default"]


def test_in_place_effects_come_back():
    """B2: x.add_(1), x[0] = 5, out=x; AdamW after three steps."""
    device = simulated_device().torch_device
    x = torch.ones(3, device=device)
    with nbkit.opfallback():
        x.add_(1)
        x[0] = 5
        torch.exp(x, out=x)
        short = torch.ones(1, device=device)
        torch.add(torch.arange(4.0, device=device), 1, out=short.resize_(0))
    assert x.cpu().tolist() == torch.tensor([5.0, 2.0, 2.0]).exp().tolist()
    assert short.cpu().tolist() == [1, 2, 3, 4]


def test_tensors_that_share_memory_still_do():
    device = simulated_device().torch_device
    for where in ("cpu", device):
        x = torch.arange(12.0, device=where).reshape(3, 4)
        row, column = x[1], x[:, 1]
        with nbkit.opfallback():
            row.mul_(10)
            x[0].add_(x[2])
            column.copy_(torch.zeros(3, device=where))
            torch._foreach_add_([x[0], x[1]], 1.0)
        assert x.cpu().tolist() == [[9, 1, 13, 15], [41, 1, 61, 71], [8, 0, 10, 11]]
        assert row._base is column._base is x._base


def test_what_is_written_through_two_tensors_is_written_twice_and_counted_as_bare():
    counts = []
    for tool in (nullcontext(), nbkit.opfallback()):
        x = torch.zeros(4)
        with tool:
            torch._foreach_add_([x, x[:2]], 1.0)
        assert x.tolist() == [2, 2, 1, 1]
        counts.append(x._version)
    assert counts[0] == counts[1] > 0


def test_an_op_that_returns_its_argument_still_does():
    with torch.inference_mode():  # else autograd sees to it
        x = torch.ones(2)
        with nbkit.opfallback() as trace:
            assert torch.ops.aten.neg_.default(x) is x
    assert (trace.replaced["op"].tolist(), x.tolist()) == (["aten.neg_.default"], [-1, -1])


def test_results_that_are_named_tuples_stay_so():
    """B6: x.sort().values."""
    with nbkit.opfallback():
        assert torch.tensor([3.0, 1.0, 2.0]).sort().values.tolist() == [1, 2, 3]
        assert torch.linalg.svd(torch.eye(2)).S.tolist() == [1, 1]


def test_strides_and_devices_are_those_of_the_op():
    device = simulated_device().torch_device
    image = torch.rand(2, 3, 4, 4, device=device).to(memory_format=torch.channels_last)
    weight = torch.rand(5, 3, 3, 3, device=device)
    with nbkit.opfallback():
        out = F.conv2d(image, weight)
    assert out.device == device and out.stride() == F.conv2d(image.cpu(), weight.cpu()).stride()


def test_a_recurrent_layer_keeps_what_its_backward_pass_needs():
    layer, x = nn.LSTM(3, 4, bidirectional=True), torch.randn(5, 2, 3)
    with nbkit.opfallback():
        layer(x)[0].sum().backward()
    own = bits(p.grad for p in layer.parameters())
    layer.zero_grad()
    layer(x)[0].sum().backward()
    assert own == bits(p.grad for p in layer.parameters())


@pytest.mark.parametrize("verb", [nbkit.opdiff, nbkit.opfallback])
def test_in_inference_mode_ops_that_are_made_of_others_are_those(verb):
    """Autograd takes them apart, and is left out there."""
    layer, x = nn.Linear(3, 3), torch.ones(4, 3)
    with torch.inference_mode():
        bare = layer(x).relu_().reshape(2, 6).softmax(-1)
        with verb() as trace:
            out = layer(x).relu_().reshape(2, 6).softmax(-1)
    assert torch.equal(out, bare)
    frame = trace.frames["diffs" if verb is nbkit.opdiff else "replaced"]
    assert frame["op"].tolist() == ["aten.addmm.default", "aten.relu_.default", "aten._softmax.default"]
    assert trace.ops["op"][frame["op_id"]].tolist() == frame["op"].tolist()


@pytest.mark.parametrize("options", [{}, {"ops": "linear,addmm"}])
def test_fused_layers_stay_fused(options):
    layer, x = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), torch.randn(2, 3, 8)
    with torch.no_grad():
        bare = layer(x)
        with nbkit.opfallback(**options) as trace:
            out = layer(x)
    assert torch.equal(out, bare)
    assert "aten._transformer_encoder_layer_fwd.default" in set(trace.ops["op"])


def test_opdiff_inside_sees_what_the_step_gets_and_outside_is_refused():
    device = simulated_device([nbkit.Fault("aten.exp", "relative_error", size=0.1)]).torch_device
    x = torch.ones(3, device=device)
    with nbkit.opfallback(), nbkit.opdiff() as trace:
        x.exp()
    assert trace.diffs["status"].tolist() == ["ok"]
    with nbkit.opdiff(), pytest.raises(OptionError, match="Put opdiff inside opfallback"), nbkit.opfallback():
        pass


@pytest.fixture
def picky():
    """An op that has no kernel for half types where nbkit runs it, as a CPU that lacks one."""
    library = torch.library.Library("nbkit_picky", "DEF")
    library.define("double(Tensor x) -> Tensor")
    own = []

    def double(x):
        if x.dtype in (torch.float16, torch.bfloat16) and x.data_ptr() not in own:
            raise NotImplementedError("\"double\" not implemented for 'Half'")
        return x * 2

    library.impl("double", double, "CPU")
    library.impl("double", lambda x: _Double.apply(x), "AutogradCPU")
    yield own
    library._destroy()


class _Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        with torch._C._AutoDispatchBelowAutograd():
            return torch.ops.nbkit_picky.double(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


def test_a_dtype_without_a_kernel_runs_in_float32_and_comes_back(picky):
    """B5: dtype and graph are those of the op."""
    x = torch.ones(3, dtype=torch.float16, requires_grad=True)
    picky.append(x.data_ptr())
    with nbkit.opfallback(ops="nbkit_picky.double") as trace:
        out = torch.ops.nbkit_picky.double(x)
    out.sum().backward()
    assert (out.dtype, out.tolist(), x.grad.tolist()) == (torch.float16, [2, 2, 2], [2, 2, 2])
    assert trace.replaced["message"].tolist() == ["in float32: \"double\" not implemented for 'Half'"]


def test_an_op_that_cannot_run_there_runs_where_it_is():
    x = torch.ones(3, requires_grad=True)
    with nbkit.opfallback(ops="mm") as trace, pytest.raises(RuntimeError, match="must have same dtype|shapes cannot"):
        torch.mm(torch.ones(2, 3), torch.ones(2, 3))
    assert not len(trace.replaced) and x.grad is None
    assert trace.meta["skipped"]["not replaced: aten.mm.default does not run there"] == 1


def test_calls_of_tensor_subclasses_are_left_alone():
    class Own(torch.Tensor):
        pass

    with nbkit.opfallback(ops="exp") as trace:
        torch.zeros(2).as_subclass(Own).exp()
    assert (len(trace.replaced), trace.meta["skipped"]["not replaced: tensor subclasses"]) == (0, 1)


@pytest.mark.parametrize("calls", ["a", "1:2:3", "", -1, [None], 1.5])
def test_numbers_of_calls_that_are_none_are_refused(calls):
    with pytest.raises(OptionError, match="names no calls"):
        nbkit.opfallback(calls=calls)


@pytest.mark.parametrize(
    ("calls", "expected"), [("0", [0]), ("1:3", [1, 2]), ([0, 3], [0, 3]), ("2:", [2, 3]), (":1", [0])]
)
def test_calls_are_counted_from_0(calls, expected):
    with nbkit.opfallback(ops="exp", calls=calls) as trace:
        for _ in range(4):
            torch.ones(2).exp()
    assert trace.replaced["call"].tolist() == expected


def test_nothing_is_left_behind():
    before = torch.overrides._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()
    with pytest.raises(KeyError), nbkit.opfallback(ops="linear"):
        raise KeyError
    assert (torch.overrides._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()) == before


def test_parameters_of_every_optimizer_are_right_after_three_steps():
    for make in OPTIMIZERS.values():
        weights = []
        for tool in (nullcontext(), nbkit.opfallback(phases="optimizer")):
            torch.manual_seed(0)
            model = nn.Linear(3, 2)
            optimizer = make(model.parameters())
            with tool:
                for _ in range(3):
                    optimizer.zero_grad()
                    model(torch.ones(4, 3)).pow(2).sum().backward()
                    optimizer.step()
            weights.append(bits(model.parameters()))
        assert weights[0] == weights[1]


def test_progress_says_how_many_calls_were_replaced():
    tool = nbkit.opfallback(ops="mm")
    (observer,) = tool.observers
    assert observer.progress() == "0 calls replaced"
    with tool:
        torch.ones(2, 3) @ torch.ones(3, 2)
    assert observer.progress() == "1 call replaced"


def test_tensors_of_a_subclass_stay_where_they_are():
    class Named(torch.Tensor):
        pass

    x = torch.ones(2, 2).as_subclass(Named)
    with nbkit.opfallback(ops="mm") as trace:
        made = x.mm(x)
    assert type(made) is Named and made.tolist() == [[2, 2], [2, 2]]
    assert not len(trace.replaced) and trace.meta["skipped"]["not replaced: tensor subclasses"] == 1
