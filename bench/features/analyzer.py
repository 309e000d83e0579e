"""Features of the Colossal-AI Analyzer."""

import json

import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.fx import symbolic_trace
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

import nbkit
from bench.features.registry import DATA, feature
from sample_models.llama import Llama, LlamaConfig
from sample_models.vit import VIT_B_16, VIT_TINY, ViT

TOOL = "analyzer"
COLUMNS = {name: f"{name}_bytes" for name in ("accumulate", "incremental", "output", "temp", "param", "backward")}
COLUMNS |= {"fwd": "forward_flops", "bwd": "backward_flops"}


def _mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))


def _products(function: object, *args: object) -> int:
    with FlopCounterMode(display=False) as counter:
        function(*args)  # type: ignore[operator]
    return int(counter.get_total_flops())


@feature(TOOL, "table of ViT-B/16, 170 rows", '`nbkit.cost_table(model, x, convention="analyzer")`')
def table() -> None:
    """Its 1,360 numbers are those that the Analyzer published."""
    rows = json.loads((DATA / "vit_b16_symbolic_rows.json").read_text())["reference"]
    with torch.device("meta"):
        model = ViT(VIT_B_16)
    made = nbkit.cost_table(model.to_empty(device="cpu"), torch.empty(8, 3, 224, 224), convention="analyzer")
    numbers = [(row[name], of[column]) for row, of in zip(rows, made.to_dict("records"), strict=True)
               for name, column in COLUMNS.items()]  # fmt: skip
    assert len(numbers) == 1_360 and all(published == ours for published, ours in numbers)
    assert [(row["op"], row["name"]) for row in rows] == [*zip(made["op_kind"], made["name"], strict=True)]


@feature(TOOL, "printed summary", "`nbkit.cost_table_text(table)`")
def text() -> None:
    model, x = _mlp(), torch.ones(2, 8)
    lines = nbkit.cost_table_text(nbkit.cost_table(model, x)).splitlines()
    nodes = [str(node.name) for node in symbolic_trace(model).graph.nodes]
    assert [line.split()[1] for line in lines[6:]] == nodes


@feature(TOOL, "shape, dtype and device of each node", "`table[['shape', 'dtype', 'device']]`")
def described() -> None:
    """They are those of the tensors that the modules return in a run."""
    model, x, seen = _mlp(), torch.ones(2, 8), []
    for module in model:
        module.register_forward_hook(
            lambda _, args, out: seen.append((str(list(out.shape)), str(out.dtype)[6:], "cpu"))
        )
    model(x)
    made = nbkit.cost_table(model, x)
    wanted = made[made["op_kind"] == "call_module"][["shape", "dtype", "device"]].itertuples(index=False, name=None)
    assert [*wanted] == seen[:3]


@feature(TOOL, "FLOPs of other models", "`nbkit.cost_table(model, x)`")
def other_models() -> None:
    model, x = ViT(VIT_TINY), torch.randn(2, 3, 32, 32)
    made = nbkit.cost_table(model, x, attention="math")
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        assert made["forward_flops"].sum() == _products(model, x)


@feature(TOOL, "a model larger than the machine, without values", "`with nbkit.opcost():`")
def on_shapes() -> None:
    """A layer of LLaMA's 7B: the products of its weights and of attention, by formula."""
    tokens, width, inner, words = 2_048, 4_096, 11_008, 32_000
    trace = nbkit.opcost().run(
        lambda: Llama(LlamaConfig(num_hidden_layers=1))(torch.zeros(1, tokens, dtype=torch.long))
    )
    weights = 4 * width**2 + 3 * width * inner + words * width
    assert trace.costs["flops"].sum() == 2 * tokens * weights + 4 * tokens**2 * width


@feature(
    TOOL, '`.cuda()`, `.to("cuda")` and `device="cuda"` without CUDA', "`with nbkit.opcost():`, `nbkit.cost_table`"
)
def absent_device() -> None:
    """Both passes have the FLOPs of a run on the CPU, and all that they hold is on cuda."""
    model, x = _mlp(), torch.randn(2, 8)

    def step() -> None:
        moved = _mlp().cuda()
        moved(torch.ones(2, 8, device="cuda").to("cuda")).sum().backward()
        assert all(each.is_cuda and each.grad is not None and each.grad.is_cuda for each in moved.parameters())

    trace = nbkit.opcost().run(step)
    assert trace.costs["flops"].sum() == _products(lambda: model(x).sum().backward())
    parameters = sum(each.nbytes for each in model.parameters())
    held = trace.storages[trace.storages["device"] == "cuda:0"]
    assert held[held["kind"] == "gradient"]["size_bytes"].sum() == parameters


@feature(TOOL, "shapes across devices", "`with nbkit.opcost():`")
def mixed_devices() -> None:
    try:
        with nbkit.opcost():
            nn.Linear(2, 2, device="cuda")(torch.ones(2))
    except RuntimeError as error:
        assert "at least two devices" in str(error)
    else:
        raise AssertionError("a mix of devices was not refused")


class Branching(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum() if x.dim() == 3 else x @ x.T


@feature(TOOL, "control flow by shape", "own Python code runs")
def control_flow() -> None:
    for x in (torch.ones(2, 2, 2), torch.ones(3, 4)):
        assert nbkit.cost_table(Branching(), x)["forward_flops"].sum() == _products(Branching(), x)


@feature(TOOL, "what a checkpoint computes again", "`nbkit.cost_table`, `nbkit.opcost`")
def checkpoints() -> None:
    layers, x = _mlp(), torch.ones(2, 8, requires_grad=True)

    def step() -> None:
        checkpoint(layers, x, use_reentrant=False).sum().backward()

    counted = nbkit.opcost().run(step).costs["flops"].sum()
    assert counted == _products(step) > _products(lambda: layers(x).sum().backward())


@feature(TOOL, "what is saved for the backward pass", "`trace.saved`")
def saved() -> None:
    """The bytes are those of the memories that torch's own hooks see, parameters left out."""
    model, x, held = _mlp(), torch.randn(2, 8), {}
    own = {each.untyped_storage().data_ptr() for each in model.parameters()}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        memory = tensor.untyped_storage()
        if memory.data_ptr() not in own:
            held[memory.data_ptr()] = memory.nbytes()
        return tensor

    trace = nbkit.opcost().run(lambda: model(x))
    with saved_tensors_hooks(pack, lambda tensor: tensor):
        out = model(x)  # it keeps the memories, so that no two have one address
    assert out.requires_grad and trace.saved["new_bytes"].sum() == sum(held.values())


@feature(
    TOOL,
    "rules of one's own for FLOPs and shapes",
    "`register_flop_formula`, `register_shape_formula`",
    lacks="rules are for registered ops; a Python function runs, and its ops are counted themselves",
)
def own_rules() -> None:
    library = torch.library.Library("analyzed", "DEF")
    library.define("taken(Tensor x) -> Tensor")
    nbkit.register_shape_formula("analyzed.taken")(lambda x: x.new_empty(len(x), 7))
    nbkit.register_flop_formula("analyzed.taken")(lambda shape: 40 * shape[0])
    shapes: list[tuple[int, ...]] = []
    trace = nbkit.opcost().run(lambda: shapes.append(tuple(torch.ops.analyzed.taken(torch.ones(3, 2)).shape)))
    assert trace.costs["flops"].sum() == 120 and shapes == [(3, 7)]


@feature(
    TOOL,
    "code that checkpoints the chosen modules",
    "`nbkit.what_if(step, checkpoint=).checkpoint_code`, of `fits` too",
)
def checkpoint_text() -> None:
    """The step with that code has the FLOPs that were predicted, and the gradients of the one without."""
    model, x = nn.Sequential(_mlp(), nn.Linear(4, 8), _mlp()), torch.randn(4, 8)

    def step() -> None:
        model(x).pow(2).mean().backward()

    asked = nbkit.what_if(step, checkpoint=["0", "2"])
    step()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    names: dict[str, object] = {}
    exec(asked.checkpoint_code, names)
    names["checkpoint_modules"](model)  # type: ignore[operator]
    rows = asked.difference.set_index("measure")["changed"]
    assert _products(step) == rows["forward_flops"] + rows["backward_flops"]
    assert all(torch.equal(one, parameter.grad) for one, parameter in zip(gradients, model.parameters(), strict=True))
