"""Features of ditorch's operator tools: capture, compare, fall back, cast, measure times."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from safetensors.numpy import load_file
from torch import Tensor

import nbkit
from bench.features.registry import feature

TOOL = "ditorch"
ROOT = Path(__file__).parents[2]
SCRIPT = """\
import torch
x = torch.arange(12.0).reshape(3, 4).requires_grad_()
def train_step():
    (x * 2).sort(dim=1, descending=True).values.square().sum().backward()
train_step()
"""


@contextmanager
def folder() -> Iterator[Path]:
    """Gives a new folder for captured calls."""
    with tempfile.TemporaryDirectory() as path:
        yield Path(path) / "calls"


def leaf(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)).requires_grad_()


def sorted_step(x: Tensor) -> Tensor:
    """Returns the result of sort in a step with a backward pass; its gradient is twice itself."""
    result = (x * 2).sort(dim=1).values
    result.square().sum().backward()
    return result.detach()


def records_of(path: Path) -> list[dict[str, object]]:
    """Reads the records of a folder by the layout that its documentation tells."""
    lines = (path / "calls.jsonl").read_text().splitlines()
    return [json.loads(line)["call"] for line in lines]


def nbkit_words(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs `python` with these words in a process of its own."""
    places = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, env=places)


@feature(
    TOOL,
    "vendor devices under CUDA names",
    "`nbkit.SimulatedDevice`",
    lacks="`import ditorch` renames devices of vendors; nbkit records on any device of torch, under its own name",
)
def devices() -> None:
    """Ops on a device that is not the CPU are recorded with that device's name."""
    device = nbkit.SimulatedDevice()
    with nbkit.optrace() as trace:
        y = torch.ones(3, device=device.torch_device) + 1
    assert str(y.device) in set(trace.ops["device"])


@feature(TOOL, "`with OpCapture()`", "`with nbkit.opcapture(folder):`")
def captures() -> None:
    """The values in the files are those that the step computed."""
    x = leaf(3, 4)
    with folder() as path:
        with nbkit.opcapture(path):
            product = x @ x.T
        files = [*path.glob("values-*.safetensors")]
        stored = [array for file in files for array in load_file(file).values()]
        expected = product.detach().numpy().tobytes()
        assert any(array.tobytes() == expected for array in stored)


@feature(TOOL, "`start()`, `stop()` of each tool", "`recorder.start()`, `recorder.stop()`")
def starts() -> None:
    """Calls outside of the two are in no trace; every verb has them."""
    x = torch.ones(3)
    made = (
        nbkit.optrace,
        nbkit.opdiff,
        nbkit.opcheck,
        nbkit.opfallback,
        nbkit.opstable,
        lambda: nbkit.opcast("float64"),
    )
    for make in (*made, nbkit.opaudit, nbkit.optime, nbkit.opdoctor):
        recorder = make()
        x.cos()
        recorder.start()
        x.exp()
        with patch("builtins.print"):
            x.sin()
        trace = recorder.stop()
        x.tan()
        ran = [op.split(".")[1] for op in trace.ops.query("level == 'aten'")["op"]]
        assert ran == ["exp", "sin"], (trace.meta["verb"], ran)


@feature(TOOL, "inputs and outputs of forward and backward", "`opcapture`, `call_of`")
def both_passes() -> None:
    """The gradient that a backward call passes on is the one that autograd gives."""
    x = leaf(3, 4)
    with folder() as path:
        with nbkit.opcapture(path) as trace:
            x.sigmoid().sum().backward()
        backward = trace.captures.query("op == 'aten.sigmoid_backward.default'")["record"].iloc[0]
        gradient = nbkit.call_of(path, backward).results[0].actual
    value = torch.sigmoid(x.detach())
    assert torch.allclose(gradient, value * (1 - value)) and torch.equal(gradient, x.grad)


@feature(
    TOOL,
    "only one op, with its gradients (`OP_CAPTURE_LIST=torch.Tensor.sort`)",
    '`ops="torch.Tensor.sort", backward=True`',
)
def chosen_with_backward() -> None:
    """grad_outputs and grad_inputs of sort are in the folder, worked out by scatter; no call of another op is."""
    x = leaf(3, 4)
    with folder() as path:
        with nbkit.opcapture(path, ops="torch.Tensor.sort", backward=True) as trace:
            result = sorted_step(x)
        calls = [nbkit.call_of(path, record) for record in trace.captures["record"]]
    assert not {str(call.op).split(".")[1] for call in calls} - {"sort", "zeros", "scatter_", "new_zeros", "scatter"}
    arguments = [value for value in calls[-1].args if isinstance(value, Tensor)]
    assert any(torch.equal(value, 2 * result) for value in arguments if value.is_floating_point())
    index = torch.sort(x.detach() * 2, dim=1).indices
    assert torch.equal(calls[-1].results[0].actual, torch.zeros(3, 4).scatter(1, index, 2 * result))


@feature(TOOL, "all but some ops", "`exclude_ops=`")
def excluded() -> None:
    x = torch.ones(3)
    with folder() as path:
        with nbkit.opcapture(path, exclude_ops="torch.Tensor.add,torch.Tensor.sub"):
            x.add(1), x.sub(1), x.mul(2)
        assert [record["op"] for record in records_of(path)] == ["aten.mul.Tensor"]


@feature(TOOL, "environment variables for all lists", "`NBKIT_OPS`, `NBKIT_EXCLUDE_OPS`, `NBKIT_OPCAPTURE_OPS`, ...")
def environment() -> None:
    """A script with a recorder in it is run as it is, in a process of its own."""
    script = SCRIPT.replace(
        "\ntrain_step()", "\nimport sys, nbkit\nwith nbkit.opcapture(sys.argv[1]):\n    train_step()"
    )
    with folder() as path:
        options = {"NBKIT_OPS": "torch.Tensor.sort", "NBKIT_BACKWARD": "1"}
        done = nbkit_words("-c", script, str(path), **options)
        assert done.returncode == 0, done.stderr
        names = [str(record["op"]).split(".")[1] for record in records_of(path)]
        assert names[0] == "sort" and set(names) <= {"sort", "zeros", "scatter_", "new_zeros", "scatter"}, names
        assert len(names) == 3


@feature(TOOL, "a folder of each capture, files to load", "`nbkit.load(folder)`, `call_of`, `calls-1`")
def folders() -> None:
    """A second capture loses nothing of the first; both are read by the documented layout."""
    x = torch.arange(3.0)
    with folder() as path:
        for function in (torch.exp, torch.sin):
            with nbkit.opcapture(path):
                function(x)
        found = {each.name: [record["op"] for record in records_of(each)] for each in path.parent.iterdir()}
        assert found == {"calls-1": ["aten.exp.default"], "calls": ["aten.sin.default"]}
        record = nbkit.load(path).captures["record"].iloc[0]
        assert torch.equal(nbkit.call_of(path, record).results[0].actual, x.sin())


@feature(TOOL, "`skip ... on ...` lines", '`meta["skipped"]`')
def skipped() -> None:
    x = torch.ones(3)
    with folder() as path, nbkit.opcapture(path, ops="exp") as trace:
        x.exp(), x.sin(), x.cos()
    assert trace.meta["skipped"]["not captured: ops that the filters leave out"] == 2


@feature(TOOL, "training code untouched", "`nbkit run --verb opcapture`")
def untouched() -> None:
    with folder() as path:
        (path.parent / "train.py").write_text(SCRIPT)
        words = ("--verb", "opcapture", "--folder", str(path), "-o", str(path.parent / "t"), "--step", "train_step")
        done = nbkit_words("-m", "nbkit", "run", "-q", *words, str(path.parent / "train.py"))
        assert done.returncode == 0, done.stderr
        assert {"aten.sort.default", "aten.scatter_.src"} <= {str(record["op"]) for record in records_of(path)}


@feature(TOOL, "`OpAutoCompare`, max_diff per op", "`nbkit.opdiff`")
def compared() -> None:
    """The largest difference is that of torch's own float64 result."""
    x = leaf(64, 64).detach()
    with nbkit.opdiff(ops="aten.mm") as trace:
        product = x @ x
    expected = (product.double() - x.double() @ x.double()).abs().max().item()
    assert np.isclose(trace.diffs["max_abs_error"].iloc[0], expected, rtol=1e-9)
    assert trace.diffs["status"].tolist() == ["ok"]


@feature(TOOL, "a wrong kernel is found", "`opdiff` on a device with a planted fault")
def wrong_kernel() -> None:
    device = nbkit.SimulatedDevice([nbkit.Fault("aten.exp", "relative_error", size=0.01)])
    x = leaf(8, 8).detach().to(device.torch_device)
    with nbkit.opdiff() as trace:
        x.exp().sin()
    wrong = trace.diffs.query("status == 'mismatch'")
    assert wrong["op"].tolist() == ["aten.exp.default"]
    assert 0.005 < wrong["max_rel_error"].iloc[0] < 0.02


@feature(TOOL, "several outputs (0th, 1th)", "`diffs.position`")
def outputs() -> None:
    x = leaf(3, 4).detach()
    with nbkit.opdiff() as trace:
        torch.sort(x)
    assert trace.diffs["position"].tolist() == [0, 1]


@feature(
    TOOL,
    "`item`, `__index__`, `tolist` compared",
    "`nbkit.opdiff`",
    lacks="tolist reads memory without an op, so there is none to compare",
)
def numbers() -> None:
    """A kernel that answers wrong once, and right when it is asked again, is a mismatch; items are right."""
    x, answers = leaf(3).detach(), iter([False, True])
    library = torch.library.Library("aten", "IMPL")
    library.impl("equal", lambda left, right: next(answers), "CPU", allow_override=True)
    try:
        with nbkit.opdiff() as trace:
            x[1].item(), [1, 2, 3][torch.tensor(2)]
            torch.equal(x, x)
    finally:
        library._destroy()
    compared = trace.diffs[trace.diffs["dtype"].isna()]
    assert [op.split(".")[1] for op in compared["op"]] == ["_local_scalar_dense", "_local_scalar_dense", "equal"]
    assert compared["status"].tolist() == ["ok", "ok", "mismatch"]


@feature(TOOL, "shapes, strides, dtype, device of a call", "frame `tensors`")
def described() -> None:
    x = leaf(3, 4).detach().t()
    with nbkit.optrace() as trace:
        y = x.exp()
    rows = trace.tensors.set_index("role")
    for role, tensor in (("input", x), ("output", y)):
        row = rows.loc[role]
        assert (json.loads(row["shape"]), json.loads(row["stride"])) == ([*tensor.shape], [*tensor.stride()])
        assert (f"torch.{row['dtype']}", row["device"]) == (str(tensor.dtype), str(tensor.device))


@feature(TOOL, '"Inconsistent dtypes"', "`diffs.status`, `diffs.message`")
def other_dtype() -> None:
    """A result of another dtype than the reference's is a verdict of its own, which names both."""
    x = leaf(3, 4).detach()
    with nbkit.opdiff(ops="exp", reference=lambda op, args, kwargs: op(*args, **kwargs).double()) as trace:
        dtype = x.exp().dtype
    (row,) = trace.diffs.to_dict("records")
    assert row["status"] == "dtype" and str(dtype).removeprefix("torch.") in row["message"]
    assert "float64" in row["message"]


@feature(TOOL, "requires_grad of a failing op", "frame `tensors`")
def failing_op() -> None:
    """What autograd records of each input of the op that raises is as it is."""
    x, fixed = leaf(3, 4), torch.ones(3, 5)
    with suppress(RuntimeError), nbkit.optrace() as trace:
        torch.ops.aten.mm.default(x, fixed)
    rows = trace.tensors[trace.tensors["op_id"] == int(trace.ops.query("status == 'raised'")["op_id"].iloc[-1])]
    assert rows["requires_grad"].tolist() == [x.requires_grad, fixed.requires_grad]
    assert [json.loads(shape) for shape in rows["shape"]] == [[3, 4], [3, 5]]


@feature(TOOL, "inputs and outputs of a failing op on disk", "`trace.save(values='captured')`, `nbkit.script_of`")
def failing_values() -> None:
    """The script of a wrong call prints its largest error in a process of its own; inputs and outputs are in files."""
    device = nbkit.SimulatedDevice([nbkit.Fault("aten.exp", "relative_error", size=0.01)])
    x = leaf(8, 8).detach()
    with nbkit.opdiff(keep=1) as trace:
        out = x.to(device.torch_device).exp()
    op_id = int(trace.diffs.query("status == 'mismatch'")["op_id"].iloc[0])
    with folder() as path:
        saved = trace.save(path, values="captured")
        stored = [array for file in saved.glob("**/*.safetensors") for array in load_file(file).values()]
        script = Path(f"{path}.py")
        script.write_text(nbkit.script_of(nbkit.load(saved), op_id, folder=path.parent))
        said = nbkit_words(str(script)).stdout
    for values in (x, out.cpu().double(), x.double().exp()):
        assert any(array.tobytes() == values.numpy().tobytes() for array in stored)
    assert f"largest difference: {float((out.cpu().double() - x.double().exp()).abs().max()):.9g} at" in said


@feature(TOOL, "a tolerance per op", "`tolerances=`")
def tolerances() -> None:
    device = nbkit.SimulatedDevice([nbkit.Fault("aten.exp", "relative_error", size=0.01)])
    x = leaf(8, 8).detach().to(device.torch_device)
    verdicts = []
    for bounds in (None, {"aten.exp": (1e-1, 1e-1)}):
        with nbkit.opdiff(ops="exp", tolerances=bounds) as trace:
            x.exp()
        verdicts += trace.diffs["status"].tolist()
    assert verdicts == ["mismatch", "ok"]


@feature(TOOL, "comparison offline", "`opreplay(folder, device=, against=)`")
def offline() -> None:
    """A device with a fault replays what the CPU captured: the fault's op alone differs."""
    x = leaf(8, 8).detach()
    device = nbkit.SimulatedDevice([nbkit.Fault("aten.exp", "relative_error", size=0.01)])
    with folder() as path:
        with nbkit.opcapture(path):
            x.exp().sin()
        trace = nbkit.opreplay(path, device=str(device.torch_device), against="captured")
    assert trace.diffs.query("status == 'mismatch'")["op"].tolist() == ["aten.exp.default"]


@feature(TOOL, "`run_op_from_data --run_times 10`", "`nbkit replay F --repeats 10`, frame `runs`")
def run_times() -> None:
    """Each single run is kept, the first one too, and the median is that of the runs that count."""
    x = leaf(8, 8).detach()
    with folder() as path:
        with nbkit.opcapture(path):
            x.exp()
        words = ("replay", str(path), "--repeats", "10", "--warmup", "2", "--save", f"{path}-t")
        done = nbkit_words("-m", "nbkit", *words)
        assert done.returncode == 0 and f"saved to {path}-t" in done.stdout, done.stderr
        trace = nbkit.load(f"{path}-t")
    runs = trace.runs["time_us"].to_numpy()
    assert len(runs) == 12 and (runs > 0).all()
    assert np.isclose(trace.timings["median_us"].iloc[0], np.median(runs[2:]))


@feature(TOOL, "`--only_run_forward`, `--only_run_backward`", "`opreplay(phases=)`, `--phases`")
def phases() -> None:
    """The calls that run are those that torch's profiler shows in that pass."""
    x = leaf(3, 4)
    with folder() as path:
        with nbkit.opcapture(path):
            x.sigmoid().square().sum().backward()
        forward, backward = (nbkit.opreplay(path, phases=phase).replayed["op"] for phase in ("forward", "backward"))
    assert [op.split(".")[1] for op in forward] == ["sigmoid", "pow", "sum"]
    assert {"sigmoid_backward"} <= {op.split(".")[1] for op in backward} and not set(forward[:1]) & set(backward)


@feature(
    TOOL,
    "`OpTimeMeasure`: forward and backward time per op, as CSV",
    "`nbkit.op_times(trace)`, `nbkit load T --frame op_times --csv F`",
)
def times() -> None:
    """API names, inputs and outputs are those of the step, and the times those of the calls in it."""
    x = leaf(3, 4)
    with nbkit.optrace() as trace:
        y = torch.nn.functional.gelu(x).to(torch.float64)
        y.sum().backward()
    with folder() as path:
        trace.save(path)
        done = nbkit_words("-m", "nbkit", "load", str(path), "--frame", "op_times", "--csv", "-")
    table = nbkit.op_times(trace)
    assert table["op"].tolist() == ["torch.nn.functional.gelu", "torch.Tensor.to", "torch.Tensor.sum"]
    assert done.stdout.splitlines()[1].split(",")[1] == "torch.nn.functional.gelu", done.stderr
    assert (table["inputs"][0], table["outputs"][1]) == ("float32[3, 4]", f"float64{[*y.shape]}")
    ops = trace.ops
    for row in table.itertuples():
        inside = ops[ops["parent_id"] == row.op_id]["op_id"]
        of_backward = ops[(ops["phase"] == "backward") & ops["forward_op_id"].isin(inside)]
        assert np.isclose(row.backward_us, of_backward["self_time_us"].sum()) and row.backward_us > 0
        assert np.isclose(row.forward_us, ops["total_time_us"][row.op_id])


@feature(TOOL, "op times on the profiler's clock", "`nbkit.optime`")
def profiler_times() -> None:
    """Self times add up to the step's, as those of torch.profiler do."""
    x = leaf(256, 256)
    with nbkit.optime() as trace:
        torch.nn.functional.gelu(x @ x).sum().backward()
    assert np.isclose(trace.ops["self_time_us"].sum(), trace.ops["total_time_us"].iloc[0], rtol=1e-6)


@feature(TOOL, "`OpFallback`: a list, all but, all", "`opfallback(ops=, exclude_ops=, backward=)`")
def falls_back() -> None:
    """With the faulty op on the CPU the step is the CPU's own; with another op alone the fault is left."""
    device = nbkit.SimulatedDevice([nbkit.Fault("aten._softmax", "relative_error", size=0.01)])
    x = leaf(3, 4).detach()
    expected, on_device = torch.softmax(x * 2, 1), x.to(device.torch_device)
    for options, is_right in (({"ops": "softmax"}, True), ({"exclude_ops": "softmax"}, False), ({}, True)):
        with nbkit.opfallback(**options):
            y = torch.softmax(on_device * 2, 1)
        assert torch.equal(y.cpu(), expected) == is_right, options


@feature(TOOL, "inputs, device and CPU output of a fallback", "`opfallback(keep=)`, `call_of`")
def both_outputs() -> None:
    """The CPU's result is that of the CPU, the device's is off by the planted fault, and the step got the CPU's."""
    device = nbkit.SimulatedDevice([nbkit.Fault("aten.exp", "relative_error", size=0.01)])
    x = leaf(3, 4).detach()
    with nbkit.opfallback(ops="exp", keep=4) as trace:
        y = x.to(device.torch_device).exp()
    (op_id,) = trace.captured
    call = nbkit.call_of(trace, op_id)
    (result,) = call.results
    assert torch.equal(call.args[0].cpu(), x) and torch.equal(y.cpu(), x.exp())
    assert torch.equal(result.expected.float(), x.exp())
    assert torch.allclose(result.actual / result.expected, torch.tensor(1.01, dtype=torch.float64), rtol=1e-3)


@feature(TOOL, "dtype cast with a map, other maps per op", '`opcast("float16->float32", ops=)`')
def casts() -> None:
    """Forward and backward of layer norm in half precision are those of the same in float32."""
    x = leaf(3, 8).detach().half().requires_grad_()
    norm = torch.nn.LayerNorm(8).half()
    with nbkit.opcast("float16->float32", ops="layer_norm", backward=True):
        y = norm(x)
        y.sum().backward()
    expected = torch.nn.functional.layer_norm(x.detach().float(), (8,), norm.weight.float(), norm.bias.float())
    assert torch.equal(y, expected.half()) and x.grad is not None and x.grad.dtype == torch.float16


@feature(TOOL, "overflow check", "`nbkit.opcheck`")
def overflow() -> None:
    x = torch.tensor([1e30, 1.0])
    with nbkit.opcheck() as trace:
        x.square()
    assert torch.isinf(x.square()).sum() == 1
    assert trace.findings["rule"].tolist() == ["overflow"]
    assert trace.findings["message"].iloc[0].startswith("1 of 2 elements is Inf")


@feature(TOOL, "arguments and ranges", '`optrace(values="stats")`')
def ranges() -> None:
    x = leaf(3, 4).detach()
    with nbkit.optrace(values="stats") as trace:
        x.exp()
    row = trace.tensors.query("role == 'output'").iloc[0]
    y = x.exp().double()
    for name, value in (("mean", y.mean()), ("min", y.min()), ("max", y.max()), ("norm", y.norm())):
        assert np.isclose(row[name], value.item(), rtol=1e-6)
    assert np.isclose(row["std"], y.std(correction=0).item(), rtol=1e-5)


@feature(TOOL, "hooks on any function, with a condition", "`nbkit.ophook`")
def hooks() -> None:
    x = leaf(3, 4).detach()
    with nbkit.ophook("torch.Tensor.softmax", nbkit.optrace, when=lambda tensor, dim, **_: dim == 1) as hook:
        x.softmax(0), x.softmax(1), x.exp()
    assert len(hook.traces) == 1 and hook.traces[0].call == 1


@feature(TOOL, "memory and device use of a process", "`nbkit.opmonitor()`, frame `steps`; `optime(memory=True)`")
def memory() -> None:
    """The resident set of the process grows by what a step keeps, its CPU time is that of the system's clock."""
    import time

    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    kept = []
    spent, known = [], []
    with nbkit.opmonitor() as trace:
        for _ in range(4):
            begun = time.process_time()
            kept.append(torch.ones(4 << 20))
            model(torch.ones(2, 8)).sum().backward()
            optimizer.step()
            spent.append(time.process_time() - begun)
            known.append(int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    steps = trace.steps
    assert (steps["process_bytes"] - known).abs().max() < 4 << 20
    assert steps["process_bytes"].diff().iloc[1:].min() > 12 << 20
    assert (steps["cpu_us"].iloc[1:] / 1e6 - spent[1:]).abs().max() < 0.1
    with nbkit.optime(memory=True, device="cpu") as trace:
        held = torch.ones(1000, 1000)
    allocated = trace.memory["delta_bytes"]
    assert allocated[allocated > 0].sum() == held.untyped_storage().nbytes()


@feature(TOOL, "pretty tables", "`trace.summary()`, `nbkit load T --frame ops`")
def tables() -> None:
    """A frame in the terminal has a line for each row, with its op."""
    x = leaf(3, 4).detach()
    with folder() as path:
        with nbkit.optrace() as trace:
            x.exp().sin()
        trace.save(path)
        done = nbkit_words("-m", "nbkit", "load", str(path), "--frame", "ops", "--columns", "op_id,op")
    lines = [line.split() for line in done.stdout.splitlines()[1:]]
    assert [op for _, op in lines] == ["torch.Tensor.exp", "aten.exp.default", "torch.Tensor.sin", "aten.sin.default"]


@feature(TOOL, "collectives' inputs and outputs", "`opcapture`, `opreplay`")
def collectives() -> None:
    """An all_reduce of one process is captured with its values, and replays."""
    x = torch.arange(4.0)
    with folder() as path:
        store = torch.distributed.HashStore()
        torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        try:
            with nbkit.opcapture(path) as trace:
                torch.distributed.all_reduce(x)
            assert trace.captures["op"].str.contains("allreduce").any(), trace.captures["op"].tolist()
            replayed = nbkit.opreplay(path)
        finally:
            torch.distributed.destroy_process_group()
    assert replayed.meta["identical_calls"] == len(trace.captures) > 0
