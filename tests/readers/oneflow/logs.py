"""Makes small OneFlow logs in the spelling of 2022: one linear layer, its loss, gradients and an Adam step."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nbkit.readers.oneflow.reader import read_oneflow_log
from nbkit.trace.trace import Trace

Slots = Mapping[str, Sequence[str]]
CUDA = 'oneflow.placement(type="cuda", ranks=[0, 1])'
LOC = (
    r"Python Stack[-2]: \'train\' at \'/me/train.py\': line 4; "
    r"Python Stack[-1]: \'forward\' at \'/me/net.py\': line 12; ... 7 more"
)


def read(folder: Path, text: str | bytes) -> Trace:
    """Returns the trace of a log with this text."""
    path = folder / "run.log"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_oneflow_log(path)


def glog(message: str, thread: int = 7, second: float = 1.0, site: str = "job.cpp:9", level: str = "I") -> str:
    return f"{level}20220824 02:43:{second:09.6f} {thread:>5} {site}] {message}"


def tried(body: Sequence[str], graph: str = "Net_0", thread: int = 7) -> list[str]:
    first = ": " if any(line.startswith(("variable_conf", "input_conf")) for line in body) else ""
    head = glog(f"Lazy nn.Graph name {graph} try to add op: ", thread, site="lazy_op_interpreter.cpp:839")
    return [head, first + body[0], *body[1:], ""]


def added(name: str, graph: str = "Net_0", thread: int = 7) -> list[str]:
    return [glog(f"Lazy nn.Graph name {graph} add op : ", thread, site="lazy_op_interpreter.cpp:842"), name]


def op(name: str, conf: Sequence[str], graph: str = "Net_0", thread: int = 7, loc: str | None = None) -> list[str]:
    """Returns an op that is tried and added; `conf` are the lines of its own configuration."""
    body = [f'name: "{name}"', 'device_tag: "cuda"', "scope_symbol_id: 5"]
    body += [] if loc is None else [f'loc: "{loc}"']
    return [*tried([*body, *conf], graph, thread), *added(name, graph, thread)]


def user(kind: str, inputs: Slots, outputs: Slots, attributes: Mapping[str, str] = {}) -> list[str]:
    """Returns the configuration of a user op; slots are printed by name and their order apart, as protobuf does."""
    lines = ["user_conf {", f'  op_type_name: "{kind}"']
    for field, slots in (("input", inputs), ("output", outputs)):
        for slot in sorted(slots):
            lines += [f"  {field} {{", f'    key: "{slot}"', "    value {"]
            lines += [*(f'      s: "{tensor}"' for tensor in slots[slot]), "    }", "  }"]
    for name, value in attributes.items():
        lines += ["  attr {", f'    key: "{name}"', "    value {", f"      {value}", "    }", "  }"]
    lines += [f'  input_order: "{slot}"' for slot in inputs]
    return [*lines, *(f'  output_order: "{slot}"' for slot in outputs), "}"]


def variable(*sizes: int, extra: Sequence[str] = ()) -> list[str]:
    shape = ["  shape {", *(f"    dim: {size}" for size in sizes), "  }", "  data_type: kFloat"]
    return ["variable_conf {", '  out: "out"', *shape, *extra, '  nd_sbp: "B"', "}"]


def interface(kind: str, *sizes: int, source: str | None = None) -> list[str]:
    lines = [f"{kind}_conf {{", *([] if source is None else [f'  in: "{source}"']), '  out: "out"', "  blob_conf {"]
    lines += ["    shape {", *(f"      dim: {size}" for size in sizes), "    }", "    data_type: kFloat"]
    sbp = ["    nd_sbp {", "      sbp_parallel {", "        split_parallel {", "          axis: 0", "        }"]
    return [*lines, "    is_dynamic: false", *sbp, "      }", "    }", "  }", "}"]


def tensor(sizes: str, *rest: str) -> str:
    """Returns a tensor as Python prints it, wrapped."""
    end = "".join(f", {one}" for one in rest)
    first = f"tensor(..., placement={CUDA},\n       sbp=(oneflow.sbp.broadcast,)"
    return f"{first}, size=({sizes}), dtype=oneflow.float32{end})"


def operator(name: str, inputs: Sequence[str], outputs: Sequence[str], placement: str = CUDA) -> str:
    """Returns an OPERATOR line; arguments as "tensor|sizes" or "tensor|sizes|dtype"."""
    return f"(OPERATOR: {name}({_arguments(inputs)}) -> ({_arguments(outputs)}), placement=({placement}))"


def _arguments(arguments: Sequence[str]) -> str:
    return ", ".join(_argument(one) for one in arguments)


def _argument(argument: str) -> str:
    if argument.startswith("["):
        return f"[{_arguments(argument[1:-1].split(';'))}]"
    name, sizes, *dtype = argument.split("|")
    return f"{name}:(sbp=(B), size=({sizes}), dtype=(oneflow.{dtype[0] if dtype else 'float32'}))"


def traced(graph: str = "Net_0", thread: int = 7) -> list[list[str]]:
    """Returns the records of the ops, each whole."""
    x, weight, product = f"_{graph}_input.0.0_x/out", "model.fc.weight/out", "model.fc-matmul-0/out_0"
    attributes = {"alpha": "at_double: 0.5", "transpose_b": "at_bool: true"}
    steps: list[tuple[str, list[str], str | None]] = [
        (x[:-4], interface("input", 8, 4), None),
        (weight[:-4], variable(2, 4), None),
        ("model.fc-matmul-0", user("matmul", {"b": [weight], "a": [x]}, {"out": [product]}, attributes), LOC),
        ("reduce_sum-1", user("reduce_sum", {"in": [product]}, {"out": ["reduce_sum-1/out_0"]}), ""),
        ("ones_like-2", user("ones_like", {"like": ["reduce_sum-1/out_0"]}, {"out": ["ones_like-2/out_0"]}), ""),
        (
            "model.fc-add_n-3",
            user("add_n", {"in": ["ones_like-2/out_0", product]}, {"out": ["model.fc-add_n-3/out_0"]}),
            "",
        ),
        (f"_{graph}_output.0.0_loss", interface("output", 1, source="reduce_sum-1/out_0"), None),
    ]
    return [op(name, conf, graph, thread, loc) for name, conf, loc in steps]


def built(graph: str = "Net_0", thread: int = 7) -> list[list[str]]:
    """Returns the records while the graph is built: stages, the module tree and the traced ops."""
    head = f"(GRAPH:{graph}:Net)"
    weight = f"(PARAMETER:model.fc.weight:{tensor('2, 4', 'grad_fn=<accumulate_grad>')})"
    tree = [["(MODULE:model:MLP())"], ["(MODULE:model.fc:Linear(in_features=4, out_features=2, bias=False))"]]
    ops = traced(graph, thread)
    done = [[f"{head} building graph Done! Cost time: 6.16s.", ""]]
    return [[f"{head} start building graph."], ops[0], *tree, weight.split("\n"), *ops[1:], *done]


def listing(graph: str = "Net_0") -> list[str]:
    """Returns the compiled graph as printed."""
    x, cast = f"_{graph}_input.0.0_x", "model.fc.weight-out-cast_f2h"
    update = ["model.fc.weight|2, 4", "model.fc-add_n-3/out_0|2, 4", "System-Train-LearningRate-Scheduler_6/out|1"]
    update = ["model.fc.weight/out|2, 4", *update[1:], "model.fc.weight-m/out|2, 4"]
    below = [
        operator("model.fc.weight", [], ["out|2, 4"]),
        operator(cast, ["model.fc.weight/out|2, 4"], [f"{cast}/out_0|2, 4|float16"]),
        operator(
            "model.fc-matmul-0",
            [f"{cast}/out_0|2, 4|float16", f"{x}/out|8, 4"],
            ["model.fc-matmul-0/out_0|8, 2|float16"],
        ),
        operator(
            "model.fc-add_n-3",
            ["[ones_like-2/out_0|;model.fc-matmul-0/out_0|8, 2|float16]"],
            ["model.fc-add_n-3/out_0|2, 4"],
        ),
        operator("model.fc.weight-m", [], ["out|2, 4"]),
        operator("model.fc.weight_optimizer", update, []),
    ]
    above = [
        operator(x, [], [f"{x}/out|8, 4"], 'oneflow.placement(type="cpu", ranks=[0])'),
        operator("reduce_sum-1", ["model.fc-matmul-0/out_0|8, 2|float16"], ["reduce_sum-1/out_0|"]),
        operator("ones_like-2", ["reduce_sum-1/out_0|"], ["ones_like-2/out_0|"]),
        operator(f"_{graph}_output.0.0_loss", ["reduce_sum-1/out_0|"], [f"_{graph}_output.0.0_loss/out|"]),
    ]
    parameter = f"(PARAMETER:model.fc.weight:{tensor('2, 4', 'grad_fn=<accumulate_grad>')}): ()"
    inner = ["    (MODULE:model.fc:Linear(in_features=4, out_features=2, bias=False)): (", *parameter.split("\n")]
    lines = [
        "  (CONFIG:config:GraphConfig(training=True, ))",
        "  (MODULE:model:MLP()): (",
        *inner,
        *below,
        "    )",
        "  )",
    ]
    return [f"{graph} with operators:", f"(GRAPH:{graph}:Net): (", *lines, *above, ")"]


def passes(graph: str = "Net_0", thread: int = 7) -> list[list[str]]:
    """Returns two compiler passes, the set of AMP, memory and the end of compiling."""
    name = f"{graph} %s compiling with pass pass_cnt_0-AutoMixedPrecision"
    return [
        [glog(name % "start", thread, 2.0)],
        [glog("WhiteSet include: model.fc-matmul-0,", thread, 2.1), "model.fc-add_n-3"],
        [glog(name % "finish", thread, 2.25)],
        [glog(f"Graph name: {graph} compile time: 0.5 seconds.", thread, 3.0)],
        [
            glog("", thread, 3.1),
            f" Graph name {graph} in Rank: 0, Device: 0 needs to allocate [ 12.5 MiB ] device memory. ",
            "   In general, Chunk id: 1  memory is [ 10 MiB ] with mem_block_num = 3",
            "        Unreused memory not eager var is  [ 1.5 MiB ] with mem_block_num = 2",
            "        Eager Variable Tensor total memory is [ 1 MiB ] with mem_block_num = 1",
        ],
    ]


EVENTS = [
    "[08/24 02:43:44 lb.utils.events]:  eta: 0:26:36  iteration: 19/100  consumed_samples: 160  total_loss: 9.68  "
    "time: 0.1600 s/iter  data_time: 0.0022 s/iter total_throughput: 50.00 samples/s lr: 8.00e-04  ",
    "[08/24 02:43:48 lb.utils.events]:  iteration: 39/100  consumed_samples: 320  total_loss: 5.177  lr: N/A  "
    "max_mem: 7M",
]


def records() -> list[list[str]]:
    """Returns all records of one run, each the list of its lines."""
    return [*built(), *passes(), listing(), *([line] for line in EVENTS)]


def text(parts: Sequence[Sequence[str]]) -> str:
    return "".join(f"{line}\n" for part in parts for line in part)


def same(left: Trace, right: Trace, but: Sequence[str] = ()) -> dict[str, Any]:
    """Returns the frames that differ, the columns of `but` left out; {} where none does."""
    found = {}
    for name, frame in left.frames.items():
        other = right.frames[name]
        columns = [column for column in frame.columns if column not in but]
        if not frame[columns].equals(other[columns]):
            found[name] = (len(frame), len(other))
    return found
