"""opalign: what its sides may be, and what it says of those that cannot be used."""

import copy
from functools import partial

import pytest
import torch

import nbkit
from nbkit.command_line.main import main
from nbkit.errors import NbkitError, OptionError
from nbkit.views.statements.alignment import agreement_statements


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


def crashing(factor: float) -> torch.nn.Module:
    class Crashing(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = self.inner[0](x)
            return self.inner[2]((h * factor if factor != 1 else h).view(7, 7))

    return Crashing()


@pytest.mark.parametrize(("factor", "comes_next"), [(1.1, "mul (aten.mul.Tensor"), (1, None)])
def test_of_a_side_that_ended_early_it_is_not_said_that_both_agree(factor, comes_next):
    trace = nbkit.opalign(model(), crashing(factor), inputs=X)
    said = " ".join(trace.summary().split())
    assert "the two agree, because the right side ended early" in said and "The two agree:" not in said
    assert "5 results of both agree, up to addmm (aten.addmm.default, in 0, " in said
    assert "shape '[7, 7]' is invalid" in said
    assert ("The first result of the right side that the left one does not have is" in said) == bool(comes_next)
    assert comes_next is None or comes_next in said
    assert [one.tone for one in agreement_statements(trace)] == [""]


def test_a_side_whose_error_comes_behind_a_divergence_has_both_said():
    wrong = torch.nn.Sequential(*model(), torch.nn.Linear(5, 5))
    wrong[1] = torch.nn.ReLU()
    trace = nbkit.opalign(torch.nn.Sequential(*model(), torch.nn.Linear(4, 5)), wrong, inputs=[X])
    said = " ".join(trace.summary().split())
    assert "The right side ended early" in said and "The two agree" not in said


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"y": X}, "the left one ended early with TypeError: Sequential.forward() got an unexpected keyword"),
        ((X, X), "the right one ended early with TypeError: Sequential.forward() takes 2 positional arguments"),
        ((X[:, :4],), "the right one ended early at aten.addmm.default in module 0 with RuntimeError: mat1 and mat2"),
    ],
)
def test_two_sides_that_fail_are_one_sentence_with_both_errors(inputs, said):
    with pytest.raises(OptionError) as caught:
        nbkit.opalign(model(), model(), inputs=inputs)
    assert said in str(caught.value) and str(caught.value).endswith("; give inputs with which both run.")


@pytest.mark.parametrize("inputs", [X, X.numpy()])
def test_a_tensor_alone_is_the_only_argument(inputs):
    trace = nbkit.opalign(lambda x: torch.as_tensor(x) * 2, lambda x: 2 * torch.as_tensor(x), inputs=inputs)
    assert trace.complete and (trace.alignment["mark"] == "=").any()
    assert nbkit.opalign(model(), model(), inputs=[X], right_inputs=X).complete


@pytest.mark.parametrize("inputs", [5, "x", None, {1}])
def test_inputs_of_another_type_are_refused(inputs):
    with pytest.raises(OptionError, match=r"inputs is of type \w+; give a tuple of the arguments, such as \(x,\)"):
        nbkit.opalign(model(), model(), inputs=inputs)


@pytest.mark.parametrize("bad", ["tensorrt", "absent.onnx", "x" * 300, 5, None, torch.nn.Linear])
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_bad_side_beside_a_good_one_is_refused(side, bad):
    sides = (bad, model()) if side == "left" else (model(), bad)
    with pytest.raises(OptionError, match=f"^the {side} side cannot be used: ") as caught:
        nbkit.opalign(*sides, inputs=(X,))
    assert "give a mod" in str(caught.value) or "a side of opalign is a model" in str(caught.value)
    assert not (side == "right" and bad == "tensorrt") or "onnx, onnxruntime, export, compile" in str(caught.value)


def recorded(verb: str, **options: str) -> nbkit.Trace:
    if verb == "opgraph":
        return nbkit.opgraph(model())
    with getattr(nbkit, verb)(**options) as trace:
        model()(X)
    return trace


@pytest.mark.parametrize("verb", ["optrace", "opdiff", "optime", "opgraph"])
@pytest.mark.parametrize("is_saved", [False, True])
def test_a_trace_without_statistics_is_no_side(verb, is_saved, tmp_path):
    good, bad = recorded("optrace", values="stats"), recorded(verb)
    bad = str(bad.save(tmp_path / "bad")) if is_saved else bad
    for sides, name in (((good, bad), "right"), ((bad, good), "left"), ((bad, model()), "left"), ((bad, bad), "left")):
        with pytest.raises(OptionError, match=rf"the {name} side is a trace of {verb} without .*values='stats'"):
            nbkit.opalign(*sides, right_inputs=(X,))


@pytest.mark.parametrize("side", [3, None, "absent.onnx"])
def test_two_bad_sides_are_one_sentence(side):
    with pytest.raises(NbkitError) as caught:
        nbkit.opalign(side, side, inputs=[X])
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


def test_neither_side_has_a_result():
    with pytest.raises(OptionError, match="a side of opalign is a model"):
        nbkit.opalign(1, 2)


def test_a_divergence_is_a_finding_for_all_that_ask_for_findings(tmp_path, capsys):
    other = copy.deepcopy(model())
    other[1] = torch.nn.GELU(approximate="tanh")
    differing, same = (nbkit.opalign(model(), right, inputs=[X]) for right in (other, model()))
    found = differing.findings.iloc[0]
    assert (len(differing.findings), found["rule"], found["severity"], found["module"]) == (
        1,
        "divergence",
        "error",
        "1",
    )
    assert found["op"] == "aten.gelu.default" and found["message"].startswith("gelu: ")
    assert differing.brief().startswith("First difference: ") and "findings" not in same.frames
    for trace, status in ((differing, 1), (same, 0)):
        trace.save(tmp_path / str(status))
        assert main(["load", str(tmp_path / str(status)), "--fail-on-findings"]) == status
    capsys.readouterr()
