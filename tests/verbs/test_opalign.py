"""opalign: what its sides may be, and what it says of those that cannot be used."""

import copy
from functools import partial

import pytest
import torch

import nbkit
from nbkit.errors import NbkitError, OptionError


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.Linear(8, 4)).eval()


X = torch.linspace(-1, 1, 18).reshape(3, 6)


def test_a_model_agrees_with_its_copy():
    trace = nbkit.opalign(model(), model(), inputs=[X], name="both")
    assert trace.meta["first_divergence"] is None
    assert (trace.meta["verb"], trace.meta["name"], trace.meta["complete"]) == ("opalign", "both", True)
    assert set(trace.frames["alignment"]["mark"]) == {"="}


def test_another_activation_is_where_they_diverge():
    other = copy.deepcopy(model())
    other[1] = torch.nn.GELU(approximate="tanh")
    first = nbkit.opalign(model(), other, inputs=[X]).meta["first_divergence"]
    assert (first["kind"], first["left"]["module"], first["right"]["module"]) == ("activation", "1", "1")


@pytest.mark.filterwarnings("error::FutureWarning")
@pytest.mark.parametrize("way", ["export", "compile"])
def test_a_model_agrees_with_what_torch_makes_of_it(way):
    trace = nbkit.opalign(model(), way, inputs=[X])
    assert trace.meta["first_divergence"] is None and not trace.meta["error"]
    assert set(trace.frames["results"]["side"]) == {"left", "right"}


@pytest.mark.parametrize("way", ["onnx", "onnxruntime"])
def test_a_model_agrees_with_its_exported_one(way):
    for package in ("onnx", "onnxruntime", "onnxscript"):
        pytest.importorskip(package)
    trace = nbkit.opalign(model(), way, inputs=[X])
    assert trace.meta["first_divergence"] is None and not trace.meta["error"]


class Cache:
    """Holds tensors, as caches of keys and values do; no library has told torch.export of it."""

    def __init__(self, keys: torch.Tensor) -> None:
        self.layers = [{"keys": keys}]


class Caching(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = model()

    def forward(self, x: torch.Tensor, scale: float = 1.0) -> tuple[torch.Tensor, Cache]:
        keys = self.inner[0](x)
        return self.inner(x) * scale, Cache(keys)


@pytest.mark.parametrize("way", ["export", "onnx", "onnxruntime"])
def test_a_model_that_returns_objects_of_a_library_is_exported(way):
    for package in ("onnx", "onnxruntime", "onnxscript"):
        pytest.importorskip(package)
    caching = Caching()
    trace = nbkit.opalign(caching, way, inputs={"x": X, "scale": 2.0})
    assert trace.meta["first_divergence"] is None and not trace.meta["error"]
    assert trace.frames["results"].query("is_output").groupby("side").size().tolist() == [2, 2]
    assert "forward" not in vars(caching) and isinstance(caching(X)[1], Cache)


def test_a_loss_is_paired_whatever_it_is_made_of():
    target = torch.tensor([0, 3, 1])

    def by_rows(x: torch.Tensor) -> torch.Tensor:
        scores = torch.log_softmax(model()(x), -1)
        return -(scores * torch.nn.functional.one_hot(target, 4)).sum(-1).mean()

    def by_cross_entropy(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(model()(x), target)

    trace = nbkit.opalign(by_cross_entropy, by_rows, inputs=[X])
    assert trace.meta["first_divergence"] is None
    wide = nbkit.opalign(by_rows, lambda x: by_rows(x).double(), inputs=[X]).alignment
    assert wide[wide["right_dtype"] == "float64"]["relation"].tolist() == ["cast"]
    smoothed = partial(torch.nn.functional.cross_entropy, target=target, label_smoothing=0.01)
    assert nbkit.opalign(by_cross_entropy, lambda x: smoothed(model()(x)), inputs=[X]).meta["first_divergence"]


def test_two_recorded_steps_are_aligned_whether_saved_or_not(tmp_path):
    with nbkit.optrace(values="stats") as step:
        model()(X)
    trace = nbkit.opalign(step, str(step.save(tmp_path / "step")))
    assert trace.meta["first_divergence"] is None
    assert [trace.meta[side]["origin"] for side in ("left", "right")] == ["trace"] * 2


def test_a_side_that_fails_keeps_the_other():
    trace = nbkit.opalign(model(), torch.nn.Linear(5, 4), inputs=[X])
    assert not trace.meta["complete"]
    assert trace.meta["error"].startswith("the right one ended early: ")
    assert trace.meta["first_divergence"] is None  # the rest is missing, not different
    assert "left" in set(trace.frames["results"]["side"])


@pytest.mark.parametrize("side", [3, None, "absent.onnx"])
def test_two_bad_sides_are_one_sentence(side):
    with pytest.raises(NbkitError) as caught:
        nbkit.opalign(side, side, inputs=[X])
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


def test_an_exported_onnx_model_has_no_backward_pass():
    trace = nbkit.opalign(model(), "onnx", inputs=[X], backward=True)
    assert "an exported ONNX model has no backward pass" in trace.meta["error"]


def test_neither_side_has_a_result():
    with pytest.raises(OptionError, match="a side of opalign is a model"):
        nbkit.opalign(1, 2)
