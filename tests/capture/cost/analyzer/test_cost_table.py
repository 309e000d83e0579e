"""The table's sums are those of the step, in training and without gradients, and the model stays as it was."""

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.overrides import _get_current_function_mode_stack
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

import nbkit
from nbkit.schema import NODE_COSTS
from sample_models.llama import LLAMA_TINY, Llama, LlamaConfig
from sample_models.rwkv4 import RWKV4, RWKV4_TINY
from sample_models.vit import VIT_B_16, VIT_TINY, ViT


def ids():
    return torch.zeros(2, 8, dtype=torch.long)


STEPS = {
    "llama": lambda: (Llama(LLAMA_TINY), ids()),
    "rwkv4": lambda: (RWKV4(RWKV4_TINY), ids()),
    "vit": lambda: (ViT(VIT_TINY), torch.randn(2, 3, 32, 32)),
    "gru": lambda: (nn.Sequential(nn.GRU(4, 8, batch_first=True)), torch.randn(2, 3, 4)),
    "bare": lambda: (nn.ReLU(), torch.randn(2, 3)),
}


@pytest.mark.parametrize("name", STEPS)
def test_sums_are_those_of_the_step(name):
    model, x = STEPS[name]()
    table = NODE_COSTS.check(nbkit.cost_table(model, x))

    def step():
        out = model(x)
        out = out if isinstance(out, torch.Tensor) else out[0]
        if out.requires_grad:
            out.sum().backward()

    trace = nbkit.opcost().run(step)
    of_backward = trace.ops.set_index("op_id")["phase"][trace.costs["op_id"]].to_numpy() == "backward"
    assert table["forward_flops"].sum() == trace.costs["flops"][~of_backward].sum()
    assert table["backward_flops"].sum() == trace.costs["flops"][of_backward].sum()
    # The sum, too, saves nothing.
    assert table["accumulate_bytes"].iloc[-1] == trace.saved["new_bytes"].sum()
    assert table["accumulate_bytes"].is_monotonic_increasing
    assert not table["name"].str.startswith("prim").any() and table["name"].is_unique


def test_flops_are_those_that_torch_counts_in_a_step_that_runs():
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5))
    x = torch.randn(2, 2, 8, 8, requires_grad=True)
    table = nbkit.cost_table(model, x)
    with FlopCounterMode(display=False) as counter:
        out = model(x)
    assert table["forward_flops"].sum() == counter.get_total_flops()
    with FlopCounterMode(display=False) as counter:
        out.sum().backward()
    assert table["backward_flops"].sum() == counter.get_total_flops()


class Siblings(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.h = (nn.Linear(8, 8, bias=False) for _ in range(3))

    def forward(self, x, y):
        return self.h(self.a(x) + self.b(y))


def test_siblings_get_their_own_backward_flops():
    model = Siblings()
    table = nbkit.cost_table(model, torch.ones(4, 8), torch.ones(4, 8)).set_index("name")
    both = table["forward_flops"] + table["backward_flops"]
    assert both[["a", "b", "h"]].tolist() == [1024, 1024, 1536] and both.sum() == 3584
    trace = nbkit.opcost().run(lambda: model(torch.ones(4, 8), torch.ones(4, 8)).sum().backward())
    modules = trace.module_costs.set_index("module")
    both = modules["forward_flops"] + modules["backward_flops"]
    assert both[["a", "b", "h", ""]].tolist() == [1024, 1024, 1536, 3584]


class Checkpointed(nn.Module):
    def __init__(self, use_reentrant):
        super().__init__()
        self.layers, self.use_reentrant = (
            nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)),
            use_reentrant,
        )

    def forward(self, x):
        return checkpoint(self.layers, x, use_reentrant=self.use_reentrant)


@pytest.mark.parametrize(("use_reentrant", "total"), [(False, 7_340_032), (True, 8_388_608)])
def test_what_a_checkpoint_computes_again_is_in_a_row(use_reentrant, total):
    table = nbkit.cost_table(Checkpointed(use_reentrant), torch.randn(32, 64, requires_grad=True))
    assert table["forward_flops"].sum() + table["backward_flops"].sum() == total
    assert table["accumulate_bytes"].iloc[-1] == 8_192


def test_without_gradients_nothing_is_saved_and_attention_counts_as_in_training():
    with torch.device("meta"):
        model = ViT(VIT_B_16)
    model = model.to_empty(device="cpu").eval()
    is_fast = torch.backends.mha.get_fastpath_enabled()
    with torch.no_grad():
        table = nbkit.cost_table(model, torch.empty(8, 3, 224, 224))
    assert table["forward_flops"].sum() == 281_021_251_584
    sums = table[["accumulate_bytes", "output_bytes", "backward_flops"]].sum()
    assert sums.tolist() == [0, 0, 0] and table["temp_bytes"].sum() > 0
    assert torch.backends.mha.get_fastpath_enabled() is is_fast


def test_a_model_is_made_on_shapes():
    """Two layers of LLaMA 7B, 2 GiB of parameters: products of weights, and of attention."""
    table = nbkit.cost_table(lambda: Llama(LlamaConfig(num_hidden_layers=2)), torch.zeros(1, 2048, dtype=torch.long))
    weights = 2 * (4 * 4096**2 + 3 * 4096 * 11008) + 4096 * 32000
    attention = 2 * 2048**2 * 4096
    assert table["forward_flops"].sum() == 2 * 2048 * weights + 2 * 2 * attention
    assert table["backward_flops"].sum() == 2 * 2 * 2048 * weights + 5 * 2 * attention  # the scores once more
    assert table["param_bytes"].sum() == 4 * (weights + 4096 * 32000 + 5 * 4096)


def test_a_model_that_runs_while_it_is_made_has_the_same_table():
    """As one does that asks its first layers how wide the next is to be."""

    def made():
        layers = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten())
        with torch.no_grad():
            width = layers(torch.ones(1, 1, 4, 4)).shape[1]
        return nn.Sequential(layers, nn.Linear(width, 3))

    model, x = nn.Sequential(nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten()), nn.Linear(8, 3)), torch.ones(2, 1, 4, 4)
    assert nbkit.cost_table(made, x).equals(nbkit.cost_table(model, x))


def test_an_op_without_a_rule_makes_its_row_null():
    @torch.library.custom_op("tabled::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    twice.register_fake(torch.empty_like)

    class Custom(nn.Module):
        def forward(self, x):
            return twice(x) + 1

    with torch.no_grad():
        flops = nbkit.cost_table(Custom(), torch.ones(3))["forward_flops"]
    assert flops.isna().sum() == 1 and flops.dropna().tolist() == [0, 0, 0]


class Data(nn.Module):
    def forward(self, x):
        return x if torch.rand(1 << 16, 1 << 16).sum() > 0 else -x


def test_a_branch_on_values_ends_with_one_sentence_and_leaves_nothing_behind():
    model, x = nn.Sequential(nn.Linear(3, 3), Data()), torch.ones(2, 3)
    before = nn.Module.__call__, _get_current_function_mode_stack(), _get_current_dispatch_mode_stack()
    line = f"{Path(__file__).name}:{Data.forward.__code__.co_firstlineno + 1}"
    with pytest.raises(nbkit.CostError, match=f"aten._local_scalar_dense needs values.*in 1 at .*{line}"):
        nbkit.cost_table(model, x)
    assert before == (nn.Module.__call__, _get_current_function_mode_stack(), _get_current_dispatch_mode_stack())
    model[1] = nn.ReLU()
    assert nbkit.cost_table(model, x).equals(nbkit.cost_table(model, x))


def test_the_model_stays_as_it_was():
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    state = {name: value.clone() for name, value in model.state_dict().items()}
    random = torch.get_rng_state()
    nbkit.cost_table(model, torch.randn(8, 4, generator=torch.Generator()))
    assert all(parameter.grad is None for parameter in model.parameters())
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert torch.equal(random, torch.get_rng_state())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"convention": "analyser"}, "convention='analyser' is not known.*analyzer"),
        ({"attention": "flash"}, "attention='flash' is not known.*math"),
        ({"sizing": "views"}, "sizing='views' is not known.*view"),
        ({"layer_norm": "strided"}, "layer_norm='strided' is not known.*input strides"),
    ],
)
def test_an_unknown_option_names_the_known_ones(options, message):
    with pytest.raises(nbkit.OptionError, match=message):
        nbkit.cost_table(nn.Linear(2, 2), torch.ones(2), **options)


def test_what_is_no_model_is_refused():
    with pytest.raises(nbkit.OptionError, match="needs a torch.nn.Module or a function that makes one"):
        nbkit.cost_table(torch.ones(2))
