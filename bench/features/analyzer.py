"""Features of the Colossal-AI Analyzer."""

import json
from functools import partial
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.fx import symbolic_trace
from torch.fx.passes.shape_prop import ShapeProp
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


@feature(TOOL, "rules of one's own for FLOPs and shapes", "`register_flop_formula`, `register_shape_formula`")
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


@feature(TOOL, "where to checkpoint", "`nbkit.fits(step, memory)`")
def where_to_checkpoint() -> None:
    """The chosen blocks are the ones that compute least again of all sets that fit: FLOPs by hand, in a run of each."""
    blocks = [nn.Sequential(nn.Linear(16, width), nn.GELU(), nn.Linear(width, 16)) for width in (256, 96, 512)]
    model, x = nn.Sequential(*blocks), torch.randn(64, 16)
    sets = [names for count in range(4) for names in combinations("012", count)]

    def step(names: tuple[str, ...] = ()) -> None:
        y = x
        for name, block in zip("012", blocks, strict=True):
            y = checkpoint(block, y, use_reentrant=False) if name in names else block(y)
        y.sum().backward()

    def whole() -> None:
        model(x).sum().backward()

    peaks = {names: int(nbkit.opcost().run(partial(step, names)).memory["allocated_bytes"].max()) for names in sets}
    memory = (min(peaks.values()) + peaks[()]) // 2
    answer = nbkit.fits(whole, memory, checkpoint=["0", "1", "2"])
    flops = {names: _products(step, names) for names in sets if peaks[names] <= memory}
    assert flops[answer.checkpoint] == min(flops.values()) and answer.checkpoint


@feature(TOOL, "shape rules of Python functions", "`register_shape_formula(function)`")
def function_rules() -> None:
    """A function that shapes cannot run has its rule run; the products before it are those of a run, both passes."""
    layer, x = nn.Linear(8, 8), torch.randn(2, 8)
    nbkit.register_shape_formula(outside_torch)(lambda x: x.new_empty(len(x), 3))
    shapes: list[tuple[int, ...]] = []

    def step() -> None:
        result = outside_torch(layer(x))
        shapes.append(tuple(result.shape))
        result.sum().backward()

    counted = nbkit.opcost().run(step)
    assert shapes == [(2, 3)] and len(counted.meta["unknown_flops"]) == 2  # the function and its gradient
    assert counted.costs["flops"].sum() == _products(lambda: layer(x).sum().backward())
    try:
        outside_torch(x)
    except RuntimeError:
        return
    raise AssertionError("the function was not put back")


def outside_torch(x: torch.Tensor) -> torch.Tensor:
    raise RuntimeError("a kernel that needs memory")


@feature(TOOL, "bias-addition split", '`nbkit.cost_table(model, x, bias="split")`')
def bias_split() -> None:
    """It has the nodes that torch.fx traces of the same model written with products and sums, and their products."""
    table = nbkit.cost_table(nn.Sequential(nn.Linear(8, 4), nn.ReLU()), torch.ones(2, 8), bias="split")
    traced = symbolic_trace(SplitByHand())
    nodes = [node.name for node in traced.graph.nodes if node.op != "get_attr"]
    assert [*table[table["op_kind"] != "get_attr"]["name"]] == nodes
    assert table["forward_flops"].sum() == _products(traced, torch.ones(2, 8))
    assert table.set_index("name").loc["add", "forward_flops"] == 0


class SplitByHand(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 4)
        self.add_module("_1", nn.ReLU())

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002  as Sequential calls it
        return self.get_submodule("_1")(nn.functional.linear(input, self.layer.weight) + self.layer.bias)


@feature(TOOL, "the table of nodes as a widget and in a report", "`nbkit.OpTable(table)`, `nbkit.opreport(table)`")
def shown_nodes() -> None:
    """The widget answers with the nodes that torch.fx traces and their products; the page names each."""
    model, x = _mlp(), torch.ones(2, 8)
    table = nbkit.cost_table(model, x)
    answer = nbkit.OpTable(table).source.answer({"kind": "rows"})
    cells = [dict(zip(answer["columns"], row[2:], strict=True)) for row in answer["rows"]]
    nodes = [str(node.name) for node in symbolic_trace(model).graph.nodes]
    assert [cell["op"] for cell in cells] == nodes
    assert sum(cell["forward_flops"] for cell in cells) == _products(model, x)
    with TemporaryDirectory() as folder:
        page = nbkit.opreport(table, path=Path(folder) / "nodes.html").read_text()
    assert all(f">{name}<" in page for name in nodes)


@feature(TOOL, "`symbolic_trace`: a graph with shapes", "`nbkit.cost_table`, `nbkit.opgraph(program)`")
def traced_graph() -> None:
    """The nodes and shapes are those of torch.fx with its shape propagation, and the graph has the same ops."""
    model, x = _mlp(), torch.ones(2, 8)
    traced = symbolic_trace(model)
    ShapeProp(traced).propagate(x)
    shapes = [str([*node.meta["tensor_meta"].shape]) for node in traced.graph.nodes]
    assert [*nbkit.cost_table(model, x)["shape"]] == shapes
    nodes = nbkit.opgraph(torch.export.export(model, (x,))).nodes
    exported = [node.name for node in torch.export.export(model, (x,)).graph.nodes if node.op == "call_function"]
    assert [*nodes[nodes["kind"] == "op"]["name"]] == exported


@feature(
    TOOL, "communication cost", "`nbkit.what_if(step, tensor_parallel=, fully_sharded=)`, `costs.communication_bytes`"
)
def communication() -> None:
    """What ranks send is that of a ring, by hand: all-gathers in both passes, one reduce-scatter of the gradients."""
    model, x, ranks = _mlp(), torch.randn(2, 8), 4
    rows = nbkit.what_if(lambda: model(x).sum().backward(), fully_sharded=ranks).difference.set_index("measure")[
        "changed"
    ]
    sizes = [sum(each.nbytes for each in module.parameters()) for module in model]
    shares = [size * (ranks - 1) // ranks for size in sizes]
    assert rows["all_gather_bytes"] == 2 * sum(shares) and rows["reduce_scatter_bytes"] == sum(shares)


@feature(TOOL, "one record per node (MetaInfo)", "`nbkit.cost_table`, frame `node_costs`")
def records() -> None:
    """The record of a Linear has its parameters, input, output and products, by hand."""
    row = nbkit.cost_table(nn.Sequential(nn.Linear(8, 4)), torch.ones(2, 8)).set_index("name").loc["_0"]
    assert (row["param_bytes"], row["backward_bytes"], row["temp_bytes"]) == (4 * (8 * 4 + 4), 4 * 16, 4 * 8)
    assert (row["forward_flops"], row["backward_flops"]) == (2 * 2 * 8 * 4, 2 * 2 * 8 * 4)
    assert (row["shape"], row["dtype"], row["device"], row["module"]) == ("[2, 4]", "float32", "cpu", "0")
