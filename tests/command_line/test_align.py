"""`align`: two ONNX files on the same inputs, what is written, and its exit status."""

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx

from nbkit import load, opgraph, progress
from tests.readers.onnx.run.models import floats, model, node, value


@pytest.fixture(autouse=True)
def files(folder):
    for name, op in (("a", "Tanh"), ("b", "Tanh"), ("c", "Sigmoid")):
        nodes = [node("MatMul", "x w", "product"), node(op, "product", "y")]
        onnx.save(model(nodes, [value("x", [4, 6])], "y", {"w": floats(6, 5)}), folder / f"{name}.onnx")
    np.savez(folder / "feeds.npz", x=floats(4, 6, seed=1))


@pytest.mark.parametrize(("right", "status"), [("b.onnx", 0), ("c.onnx", 1), ("absent.onnx", 2)])
def test_the_exit_status_says_whether_they_agree(nbkit, right, status):
    assert nbkit("align", "a.onnx", right, "--inputs", "feeds.npz") == status


@pytest.mark.parametrize("which", ["left", "right"])
@pytest.mark.parametrize(("name", "content"), [("empty.onnx", b""), ("text.onnx", b"no model"), ("text.txt", b"no")])
def test_a_file_that_is_no_model_is_bad_use(nbkit, folder, capsys, name, content, which):
    (folder / name).write_bytes(content)
    sides = (name, "b.onnx") if which == "left" else ("a.onnx", name)
    assert nbkit("align", *sides, "--inputs", "feeds.npz") == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert f"nbkit align: the {which} side cannot be used: " in err


def test_a_trace_of_a_graph_is_bad_use(nbkit, folder, capsys):
    opgraph(folder / "a.onnx").save(folder / "graph")
    assert nbkit("align", "graph", "graph") == 2
    assert "is a trace of opgraph without the frame 'ops'" in capsys.readouterr().err


def test_what_cannot_be_used_is_one_sentence(nbkit, folder, capsys):
    (folder / "text.npz").write_text("no arrays")
    assert nbkit("align", "a.onnx", "b.onnx", "--inputs", "text.npz") == 2
    assert "is no .npz file of arrays" in capsys.readouterr().err


def test_pairs_are_written_side_by_side(nbkit, capsys):
    assert nbkit("align", "a.onnx", "c.onnx", "--inputs", "feeds.npz", "--pairs") == 1
    out = capsys.readouterr().out
    assert "Tanh" in out and "Sigmoid" in out and "product" in out


def test_a_page_is_written_and_who_waits_is_told(nbkit, folder, monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress, "PATIENCE_S", 1e6)
    monkeypatch.delenv("NBKIT_PROGRESS")
    assert nbkit("align", "a.onnx", "b.onnx", "--inputs", "feeds.npz", "-o", "report.html") == 0
    out, err = capsys.readouterr()
    assert "report.html: " in out
    assert err == f"nbkit: running a.onnx and b.onnx\nnbkit: writing {folder / 'report.html'}\n"
    assert (folder / "report.html").read_text().lstrip().lower().startswith("<!doctype html")


def test_the_trace_is_saved_instead_of_written(nbkit, folder, capsys):
    assert nbkit("align", "a.onnx", "c.onnx", "--inputs", "feeds.npz", "--save", "found") == 1
    assert capsys.readouterr().out == ""
    assert load(folder / "found").meta["first_divergence"]["right"]["op"] == "Sigmoid"


def test_inputs_of_other_names_are_matched_or_given_in_a_file_of_their_own(nbkit, folder, capsys):
    nodes = [node("MatMul", "input0 w", "product"), node("Tanh", "product", "y")]
    onnx.save(model(nodes, [value("input0", [4, 6])], "y", {"w": floats(6, 5)}), folder / "other.onnx")
    assert nbkit("align", "a.onnx", "other.onnx", "--inputs", "feeds.npz") == 0
    assert "x to input0" in capsys.readouterr().out
    np.savez(folder / "right.npz", input0=floats(4, 6, seed=1))
    words = ("align", "a.onnx", "other.onnx", "--inputs", "feeds.npz", "--right-inputs", "right.npz")
    assert nbkit(*words) == 0
    assert "x to input0" not in capsys.readouterr().out
    np.savez(folder / "right.npz", input0=floats(4, 6, seed=2))
    assert nbkit(*words) == 1
