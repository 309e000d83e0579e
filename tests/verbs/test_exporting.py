"""opalign of a model and its export: the opset that is asked for, the graphs in a folder, the backward pass in ONNX."""

import numpy as np
import pytest
import torch

for package in ("onnx", "onnxruntime", "onnxscript"):
    pytest.importorskip(package)

import onnx  # noqa: E402
import onnxruntime  # noqa: E402

import nbkit  # noqa: E402
from nbkit.errors import OptionError  # noqa: E402


class Unused(torch.nn.Module):
    """Has a parameter that the loss is not made of, and one that is not trained."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.inner = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.Linear(8, 4))
        self.other = torch.nn.Linear(6, 2)
        self.inner[0].bias.requires_grad_(False)

    def forward(self, x: torch.Tensor, scale: float = 1.0) -> dict[str, torch.Tensor]:
        return {"logits": self.inner(x) * scale, "other": self.other(x)}


def given() -> torch.Tensor:
    return torch.linspace(-1, 1, 18).reshape(3, 6).requires_grad_()


def outputs(trace: nbkit.Trace, side: str) -> set[str]:
    return set(trace.frames["results"].query("is_output and side == @side")["name"])


def own_gradients(model: torch.nn.Module, x: torch.Tensor) -> dict[str, np.ndarray]:
    model(x)["logits"].mean().backward()
    leaves = [*model.named_parameters(), ("x", x)]
    return {f"grad of {name}": leaf.grad.numpy() for name, leaf in leaves if leaf.grad is not None}


@pytest.mark.parametrize("way", ["onnx", "onnxruntime"])
def test_the_exported_backward_pass_agrees_and_can_be_run_by_others(way, tmp_path):
    model, x = Unused(), given()
    trace = nbkit.opalign(model, way, inputs=x, backward=True, dump=tmp_path / "graphs")
    assert trace.meta["first_divergence"] is None and not trace.meta["error"]
    assert x.grad is None and all(one.grad is None for one in model.parameters())
    assert [one.requires_grad for one in model.parameters()] == [True, False, True, True, True, True]
    expected = own_gradients(model, x)
    assert {name for name in outputs(trace, "right") if name.startswith("grad of ")} == {*expected}
    session = onnxruntime.InferenceSession(tmp_path / "graphs" / "model.onnx")
    found = session.run([*expected], dict(np.load(tmp_path / "graphs" / "model.npz")))
    for (name, gradient), other in zip(expected.items(), found, strict=True):
        np.testing.assert_allclose(other, gradient, atol=1e-6, err_msg=name)


def test_a_gradient_that_is_wrong_is_found_though_the_forward_pass_agrees():
    class Halved(Unused):
        def forward(self, x: torch.Tensor, scale: float = 1.0) -> dict[str, torch.Tensor]:
            active = self.inner[1](self.inner[0](x))
            if torch.compiler.is_exporting():
                active = 0.5 * active + 0.5 * active.detach()
            return {"logits": self.inner[2](active) * scale}

    assert nbkit.opalign(Halved(), "onnx", inputs=given()).meta["first_divergence"] is None
    trace = nbkit.opalign(Halved(), "onnx", inputs=given(), backward=True)
    assert trace.alignment["phase"][trace.meta["first_divergence"]["row"]] == "backward"


def test_without_anything_to_differentiate_the_export_is_refused_in_a_sentence():
    with pytest.raises(OptionError, match="Nothing was backpropagated: no output requires a gradient"):
        nbkit.opalign(torch.nn.ReLU(), "onnx", inputs=given().detach(), backward=True)


def test_the_opset_is_that_of_the_model_that_is_run():
    assert nbkit.opalign(Unused(), "onnx", inputs=given(), opset=20).meta["right"]["opsets"]["ai.onnx"] == 20
    with pytest.raises(OptionError, match="made opset 18 of Unused: it cannot write opset 3; give another"):
        nbkit.opalign(Unused(), "onnx", inputs=given(), opset=3)


@pytest.mark.parametrize(
    ("right", "options", "message"),
    [
        ("export", {"opset": 20}, "opset=20 is that of an export; give it with the right side 'onnx' or 'onnxruntime'"),
        ("onnx", {"opset": True}, "opset must be a whole number from 1 up, got True"),
        (Unused(), {"dump": "new"}, "dump writes the graphs that the left model is turned into: give it with 'onnx'"),
        ("onnx", {"dump": 3}, "dump is of type int; give the path of a folder"),
        ("onnx", {"dump": "full"}, "dump='full' is there, and is no empty folder; give the path of a new one"),
        ("onnx", {"dump": "full/file"}, "is there, and is no empty folder"),
        ("onnx", {"dump": "full/file/below"}, "cannot be made: Not a directory"),
    ],
)
def test_what_cannot_be_exported_so_is_refused_before_anything_runs(right, options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(OptionError, match=message):
        nbkit.opalign(Unused(), right, inputs=given(), **options)


def test_a_dumped_model_can_be_aligned_with_what_onnxruntime_made_of_it(tmp_path):
    nbkit.opalign(Unused(), "onnxruntime", inputs=given(), dump=tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {"model.onnx", "model.npz", "optimized.onnx"}
    arrays = dict(np.load(tmp_path / "model.npz"))
    np.testing.assert_array_equal(arrays["x"], given().detach().numpy())
    trace = nbkit.opalign(tmp_path / "model.onnx", tmp_path / "optimized.onnx", inputs=arrays)
    assert trace.meta["first_divergence"] is None and len(trace.alignment)
    ops = [node.op_type for node in onnx.load(tmp_path / "model.onnx").graph.node]
    assert "Gelu" in ops and ops.count("Gemm") == 3


def test_the_program_of_torch_export_is_dumped_with_its_inputs(tmp_path):
    model, x = Unused(), given()
    nbkit.opalign(model, "export", inputs={"x": x, "scale": 2.0}, dump=tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {"model.pt2", "model.txt", "model.npz"}
    loaded = torch.export.load(tmp_path / "model.pt2").module()
    arrays = {name: torch.from_numpy(array) for name, array in np.load(tmp_path / "model.npz").items()}
    assert list(arrays) == ["x"]
    torch.testing.assert_close(loaded(**arrays, scale=2.0)["logits"], model(x, 2.0)["logits"])
    assert "torch.ops.aten.gelu" in (tmp_path / "model.txt").read_text()


def test_each_graph_of_torch_compile_is_dumped_forward_and_backward(tmp_path):
    nbkit.opalign(Unused(), "compile", inputs=given(), backward=True, dump=tmp_path)
    graphs = ["graph 0", "graph 0 backward"]
    assert {file.name for file in tmp_path.iterdir()} == {f"{name}.{ext}" for name in graphs for ext in ("txt", "npz")}
    forward, backward = ((tmp_path / f"{name}.txt").read_text() for name in graphs)
    assert "aten.gelu.default" in forward and "aten.gelu_backward.default" in backward
    for name, text in zip(graphs, (forward, backward), strict=True):
        with np.load(tmp_path / f"{name}.npz") as arrays:
            assert arrays.files and all(f"{key}:" in text for key in arrays.files)
