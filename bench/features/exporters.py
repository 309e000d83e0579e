"""Features of the side-by-side comparison of exporters, each held against onnxruntime, torch or numpy alone."""

import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import torch

import nbkit
from bench.features.registry import feature
from nbkit.command_line.main import main as command_line

LETTERS = "four letters that sum up a tensor: numbers of each side and their errors are there instead, as letters hide"
LETTERS += " differences and show some that are none"


class Block(torch.nn.Module):
    """Attention, norm and a feed-forward part, small."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.qkv, self.out = torch.nn.Linear(16, 48), torch.nn.Linear(16, 16)
        self.norm, self.up, self.down = torch.nn.LayerNorm(16), torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        x = x + self.out(torch.softmax(q @ k.transpose(-1, -2) / 4 + mask, -1) @ v)
        return x + self.down(torch.nn.functional.gelu(self.up(x)))


def given() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return {"x": torch.randn(2, 5, 16, generator=generator), "mask": torch.randn(2, 5, 5, generator=generator)}


def exported(path: Path, names: list[str], *, optimize: bool = True) -> dict[str, np.ndarray]:
    """Exports the block with these names of its inputs; returns what onnxruntime takes."""
    program = torch.onnx.export(
        Block().eval(), tuple(given().values()), dynamo=True, verbose=False, optimize=optimize, input_names=names
    )
    program.save(path)
    return dict(zip(names, (tensor.numpy() for tensor in given().values()), strict=True))


def run(path: Path, feeds: dict[str, np.ndarray], names: list[str] | None = None) -> list[np.ndarray]:
    import onnxruntime

    return onnxruntime.InferenceSession(path).run(names, feeds)


def main(words: list[str]) -> int:
    """Runs `python -m nbkit` and returns its status, without what it prints."""
    with redirect_stdout(StringIO()):
        return command_line(words)


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def rows_with_both(trace: nbkit.Trace) -> Any:
    return trace.alignment[trace.alignment["left_id"].notna() & trace.alignment["right_id"].notna()]


@feature(
    "exporters", "eager against exported ONNX and what onnxruntime makes of it", 'opalign(m, "onnx"), "onnxruntime"'
)
def eager_against_onnx() -> None:
    """Opalign says that they agree, and so does onnxruntime alone, of the same file."""
    for way in ("onnx", "onnxruntime"):
        with folder() as graphs:
            trace = nbkit.opalign(Block().eval(), way, inputs=given(), dump=graphs)
            assert trace.meta["first_divergence"] is None and len(rows_with_both(trace)) > 20
            (out,) = run(graphs / "model.onnx", dict(np.load(graphs / "model.npz")))
            np.testing.assert_allclose(out, Block().eval()(**given()).detach().numpy(), atol=1e-5)


@feature("exporters", "eager against torch.export and torch.compile", 'opalign(m, "export"), "compile"')
def eager_against_torch() -> None:
    for way in ("export", "compile"):
        trace = nbkit.opalign(Block().eval(), way, inputs=given())
        assert trace.meta["first_divergence"] is None and trace.meta["counts"]["="] > 20
    program = torch.export.export(Block().eval(), (), given())
    torch.testing.assert_close(program.module()(**given()), Block().eval()(**given()))


@feature(
    "exporters", "ONNX of two exporters, inputs of other names, in a terminal and a cell", "`nbkit align`, `%opalign`"
)
def other_names() -> None:
    """The pairs of inputs that are told hold the same bits; given to the wrong place the model gives something else."""
    with folder() as where:
        left, right = where / "a.onnx", where / "b.onnx"
        feeds, other = exported(left, ["x", "mask"]), exported(right, ["input0", "input1"], optimize=False)
        np.savez(where / "x.npz", **feeds)
        assert main(["align", str(left), str(right), "--inputs", str(where / "x.npz")]) == 0
        np.savez(where / "y.npz", **{**other, "input0": other["input0"] + 1})
        assert main(["align", str(left), str(right), "--inputs", str(where / "x.npz"),
                     "--right-inputs", str(where / "y.npz")]) == 1  # fmt: skip
        trace = nbkit.opalign(left, right, inputs=feeds)
        assert "x to input0, mask to input1" in trace.meta["notes"][0]
        np.testing.assert_allclose(*(run(path, fed)[0] for path, fed in ((left, feeds), (right, other))), atol=1e-5)
        from IPython.testing.globalipapp import start_ipython

        shell = start_ipython()
        shell.run_line_magic("load_ext", "nbkit")
        shell.push({"d": feeds})
        shell.run_line_magic("opalign", f"-q '{left}' '{right}' --inputs d -o found")
        assert shell.user_ns["found"].meta["counts"] == trace.meta["counts"]


@feature("exporters", "matching inputs found; two of one form in another order are told", "opalign(a, b, inputs=)")
def matching_inputs() -> None:
    """X - y: only in one of the two orders does numpy give what the models give."""
    from onnx import TensorProto, helper

    def difference(first: str, second: str, listed: list[str]) -> Any:
        infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in listed]
        out = helper.make_tensor_value_info("out", TensorProto.FLOAT, [3])
        graph = helper.make_graph([helper.make_node("Sub", [first, second], ["out"])], "g", infos, [out])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)

    feeds = {"x": np.float32([1, 2, 3]), "y": np.float32([4, 4, 9])}
    trace = nbkit.opalign(difference("x", "y", ["x", "y"]), difference("a", "b", ["b", "a"]), inputs=feeds)
    told = dict(re.findall(r"(\w) to (\w)", trace.meta["doubts"][0].partition(". So")[0]))
    assert told == {"x": "a", "y": "b"} and trace.meta["first_divergence"] is None
    assert not np.array_equal(feeds["x"] - feeds["y"], feeds["y"] - feeds["x"])


@feature("exporters", "inputs and initializers are told apart", "frame `results`, kinds")
def kinds() -> None:
    import onnx

    with folder() as where:
        feeds = exported(where / "a.onnx", ["x", "mask"])
        trace = nbkit.opalign(where / "a.onnx", where / "a.onnx", inputs=feeds)
        graph = onnx.load(where / "a.onnx").graph
        left = trace.frames["results"].query("side == 'left'")
        assert set(left.query("kind == 'input'")["name"]) == {value.name for value in graph.input}
        leaves = left["kind"].isin(["parameter", "buffer", "constant"]).sum()
        assert leaves == len(graph.initializer) + sum(node.op_type == "Constant" for node in graph.node)


@feature(
    "exporters",
    "text side by side with = ~ - +",
    "side_by_side_text, `%opalign --pairs`, `nbkit align --pairs`",
    LETTERS,
)
def side_by_side() -> None:
    """Each line has the mark of its row, and the largest absolute error of the two values that onnxruntime gives."""
    import onnx

    with folder() as where:
        feeds = exported(where / "a.onnx", ["x", "mask"], optimize=False)
        model = onnx.load(where / "a.onnx")
        for tensor in model.graph.initializer:
            if tensor.name == "down.bias":
                tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor) + 0.5, tensor.name))
        onnx.save(model, where / "b.onnx")
        trace = nbkit.opalign(where / "a.onnx", where / "b.onnx", inputs=feeds)
        lines = nbkit.side_by_side_text(trace, 120).splitlines()
        assert Counter(line.split()[1] for line in lines) == Counter(
            {k: v for k, v in trace.meta["counts"].items() if v}
        )
        (line,) = [line for line in lines if "OUTPUT" in line]
        outs = [run(where / name, feeds)[0] for name in ("a.onnx", "b.onnx")]
        assert (
            line.split()[1] == "~"
            and abs(float(re.search(r"a=(\S+)", line)[1]) - np.abs(outs[0] - outs[1]).max()) < 1e-4
        )


@feature("exporters", "alignment and its discrepancies", "frame `alignment`")
def discrepancies() -> None:
    """Each pair of ops of two ONNX files: both run with every result as an output, by onnxruntime alone."""
    import onnx

    with folder() as where:
        feeds = exported(where / "a.onnx", ["x", "mask"], optimize=False)
        other = exported(where / "b.onnx", ["x", "mask"])
        trace = nbkit.opalign(where / "a.onnx", where / "b.onnx", inputs=feeds)
        values = []
        for name, fed in (("a.onnx", feeds), ("b.onnx", other)):
            model = onnx.load(where / name)
            known = [out for node in model.graph.node for out in node.output if out]
            outs = {value.name for value in model.graph.output}
            model.graph.output.extend(onnx.ValueInfoProto(name=out) for out in known if out not in outs)
            onnx.save(model, where / f"all_{name}")
            values.append(dict(zip(known, run(where / f"all_{name}", fed, known), strict=True)))
        same = rows_with_both(trace).query("relation == 'same'").to_dict("records")
        pairs = [row for row in same if row["name"] in values[0] and row["right_name"] in values[1]]
        assert len(pairs) > 10
        for row in pairs:
            left, right = (
                values[side][row[name]].astype(np.float64) for side, name in enumerate(("name", "right_name"))
            )
            assert abs(np.abs(left.ravel() - right.ravel()).max() - row["max_abs_error"]) < 1e-5


@feature("exporters", "where it begins", 'meta["first_divergence"], exit status')
def where_it_begins() -> None:
    """A weight x 1.01 in one of two files: it is named, with 1.01 where a scale explains it."""
    import onnx

    with folder() as where:
        feeds = exported(where / "a.onnx", ["x", "mask"], optimize=False)
        model = onnx.load(where / "a.onnx")
        (tensor,) = [one for one in model.graph.initializer if one.name == "out.weight"]
        tensor.CopyFrom(
            onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor) * np.float32(1.01), tensor.name)
        )
        onnx.save(model, where / "b.onnx")
        first = nbkit.opalign(where / "a.onnx", where / "b.onnx", inputs=feeds).meta["first_divergence"]
        assert "out.weight" in json.dumps(first) and "1.01" in json.dumps(first)
        np.savez(where / "x.npz", **feeds)
        assert main(["align", str(where / "a.onnx"), str(where / "b.onnx"), "--inputs", str(where / "x.npz")]) == 1


@feature("exporters", "backward against export, compile, ONNX and onnxruntime", "opalign(m, ..., backward=True)")
def backward() -> None:
    """The ONNX model that is dumped gives autograd's gradients when onnxruntime runs it alone."""
    block = Block()
    block(**given()).mean().backward()
    for way in ("export", "compile", "onnx", "onnxruntime"):
        with folder() as graphs:
            trace = nbkit.opalign(Block(), way, inputs=given(), backward=True, dump=graphs)
            assert trace.meta["first_divergence"] is None
            outputs = set(trace.frames["results"].query("is_output and side == 'right'")["name"])
            names = [f"grad of {name}" for name, _ in block.named_parameters()]
            assert outputs.issuperset(names)
            if way.startswith("onnx"):
                found = run(graphs / "model.onnx", dict(np.load(graphs / "model.npz")), names)
                for (name, leaf), gradient in zip(block.named_parameters(), found, strict=True):
                    np.testing.assert_allclose(gradient, leaf.grad.numpy(), atol=1e-5, err_msg=name)


@feature("exporters", "every graph dumped, its inputs stored", 'opalign(..., dump="folder")')
def dumped() -> None:
    """A forward graph of torch.compile has the placeholders whose values lie beside it; the program runs again."""
    with folder() as graphs:
        nbkit.opalign(Block(), "compile", inputs=given(), backward=True, dump=graphs)
        for name in ("graph 0", "graph 0 backward"):
            text, arrays = (graphs / f"{name}.txt").read_text(), np.load(graphs / f"{name}.npz")
            heading = text.partition("def forward(")[2].partition("):")[0]
            assert set(arrays.files) == set(re.findall(r'(\w+): "\w+\[', heading))
    with folder() as graphs:
        nbkit.opalign(Block(), "export", inputs=given(), dump=graphs)
        again = torch.export.load(graphs / "model.pt2").module()
        fed = {name: torch.from_numpy(array) for name, array in np.load(graphs / "model.npz").items()}
        torch.testing.assert_close(again(**fed), Block()(**given()))


@feature(
    "exporters",
    "float16 and bfloat16",
    "a model of that dtype",
    "bfloat16: onnxruntime has no kernels for it on the CPU",
)
def narrow() -> None:
    """float16 agrees; of bfloat16 the op is named that has no kernel."""
    half = {name: tensor.half() for name, tensor in given().items()}
    assert nbkit.opalign(Block().half(), "onnx", inputs=half).meta["first_divergence"] is None
    narrow = {name: tensor.bfloat16() for name, tensor in given().items()}
    try:
        said = nbkit.opalign(Block().bfloat16(), "onnx", inputs=narrow).meta["error"]
    except nbkit.OptionError as error:
        said = str(error)
    assert "there is no kernel for it on the CPU in this dtype" in str(said), said


@feature("exporters", "the opset that is asked for", "opalign(..., opset=)")
def opset() -> None:
    import onnx

    for version in (18, 20):
        with folder() as graphs:
            nbkit.opalign(Block(), "onnx", inputs=given(), opset=version, dump=graphs)
            found = {one.domain: one.version for one in onnx.load(graphs / "model.onnx").opset_import}
            assert found[""] == version


@feature(
    "exporters",
    "op counts as a chart",
    "plot_op_counts",
    "of an alignment results are counted, so that an op with several counts once for each; it says so",
)
def op_counts() -> None:
    import onnx

    with folder() as where:
        feeds, other = (
            exported(where / "a.onnx", ["x", "mask"], optimize=False),
            exported(where / "b.onnx", ["x", "mask"]),
        )
        trace = nbkit.opalign(where / "a.onnx", where / "b.onnx", inputs=feeds, right_inputs=other)
        for bars, name in zip(nbkit.plot_op_counts(trace, 99).data, ("a.onnx", "b.onnx"), strict=True):
            nodes = [node for node in onnx.load(where / name).graph.node if node.op_type != "Constant"]
            counts = Counter(node.op_type for node in nodes for output in node.output if output)
            assert {op: count for op, count in zip(bars.y, bars.x, strict=True) if count} == dict(counts)


@feature("exporters", "several exporters in one table", "compare_exports, `%opalign model onnx export`")
def several() -> None:
    """Three agree; of a file with another bias the table has the error that onnxruntime's output has."""
    import onnx

    with folder() as where:
        feeds = exported(where / "a.onnx", ["x", "mask"])
        model = onnx.load(where / "a.onnx")
        (tensor,) = [one for one in model.graph.initializer if one.name == "down.bias"]
        tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor) + 0.5, tensor.name))
        onnx.save(model, where / "b.onnx")
        table = nbkit.compare_exports(Block(), ["onnx", "export", "compile", where / "b.onnx"], inputs=given())
        assert table["verdict"].tolist() == ["agrees"] * 3 + ["diverges"]
        right, wrong = (run(where / name, feeds)[0].astype(np.float64) for name in ("a.onnx", "b.onnx"))
        expected = np.linalg.norm(right - wrong) / np.linalg.norm(right)
        assert abs(table["output_error"][3] - expected) < 0.01 * expected


@feature("exporters", "pictures of graphs", "report")
def pictures() -> None:
    """The page holds both graphs and opens without a network."""
    with folder() as where:
        feeds = exported(where / "a.onnx", ["x", "mask"])
        trace = nbkit.opalign(where / "a.onnx", where / "a.onnx", inputs=feeds)
        text = nbkit.opreport(trace, path=where / "page.html").read_text(encoding="utf-8")
        assert "Graphs of both" in text and not re.search(r"<(?:script|link|img)[^>]+(?:src|href)=\"http", text)


@feature(
    "exporters",
    "on CUDA",
    'opalign(m.cuda(), "export", inputs=)',
    "tried only where there is CUDA; onnxruntime runs on the CPU",
)
def on_cuda() -> None:
    if not torch.cuda.is_available():
        raise FileNotFoundError(2, "no device", "a CUDA device")
    inputs = {name: tensor.cuda() for name, tensor in given().items()}
    assert nbkit.opalign(Block().cuda(), "export", inputs=inputs).meta["first_divergence"] is None
