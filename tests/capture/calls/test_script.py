"""Tests that script_of's script runs in a fresh process with torch alone and says what differs, honestly."""

import subprocess

import pytest
import torch

import nbkit
from nbkit.errors import NbkitError
from tests.capture.diff.planted import compared, scaled, with_fault
from tests.processes import PYTHON

RUN = "import sys; sys.modules['nbkit'] = None; [exec(open(file).read(), {}) for file in sys.argv[1:]]"


def ran(script, tmp_path):
    """Returns what the script prints in a process that cannot import nbkit."""
    (tmp_path / "alone.py").write_text(script)
    done = subprocess.run([*PYTHON, "-c", RUN, tmp_path / "alone.py"], capture_output=True, text=True)
    assert done.stderr == ""
    return done.stdout


def script(step, op, change=scaled, folder=".", **options):
    trace = with_fault(step, op, change, **options)
    return nbkit.script_of(trace, next(iter(trace.captured)), folder)


def nothing(func, args, out):
    return out


def test_a_real_error_of_the_cpu_is_reproduced(tmp_path):
    # A tolerance of zero makes a mismatch of what float32 rounds.
    x = torch.linspace(0.1, 3, 7)
    text = script(lambda: x.exp(), "aten.exp.default", nothing, tolerances={"default": (0.0, 0.0)})
    out = ran(text, tmp_path)
    error = (x.exp().double() - x.double().exp()).abs().max().item()
    assert f"largest difference: {error:.9g} at [" in out
    assert f"That is what the trace says ({error:.9g})." in out


def test_a_fault_that_is_not_the_ops_own_is_not_reproduced_and_said(tmp_path):
    x = torch.linspace(0.1, 3, 7)
    out = ran(script(lambda: x.exp(), "aten.exp.default"), tmp_path)
    assert "NOT REPRODUCED: the trace says 0.002" in out
    assert "the fault needs its device, the calls before it, or what ran beside it." in out


def test_what_the_difference_looked_like_is_a_comment():
    x = torch.linspace(0.1, 3, 7)
    lines = script(lambda: x.exp(), "aten.exp.default").splitlines()
    assert lines[1] == "# There output 0 is 1.0001 x the reference."
    exact = script(lambda: x.exp(), "aten.exp.default", nothing, tolerances={"default": (0.0, 0.0)})
    assert exact.splitlines()[1] == "import base64"


STEPS = {
    "aten.mul_.Tensor": lambda: torch.ones(3, 2).mul_(torch.arange(6.0).reshape(2, 3).t() + 1),
    "aten.cat.default": lambda: torch.cat([torch.ones(2), torch.zeros(3, dtype=torch.bfloat16)]),
    "aten.add.out": lambda: torch.add(torch.ones(3), 0.1, out=torch.empty(3)),
    "aten.topk.default": lambda: torch.tensor([0.3, 0.1, 0.7]).topk(2),
    "aten.sum.dim_IntList": lambda: torch.rand(3, 4).half().sum((0, 1), dtype=torch.float32),
    "aten.mul.Tensor": lambda: torch.full((3,), 0.3 + 2j, dtype=torch.complex64).conj() * 1.1j,
    "aten.native_layer_norm.default": lambda: torch.nn.functional.layer_norm(torch.rand(2, 8), (8,)),
    "aten._foreach_mul.Scalar": lambda: torch._foreach_mul([torch.ones(2), torch.ones(3)], 0.1),
    "aten.full_like.default": lambda: torch.full_like(torch.ones(2, dtype=torch.bfloat16), 0.1, device="cpu"),
    "aten.pow.Scalar": lambda: torch.pow(float("inf"), torch.zeros(2) + 0.5),
    "aten.exp.default": lambda: torch.tensor(2.0).exp(),
    "aten.arange.start_step": lambda: torch.arange(0.0, 1.0, 0.1),
}


def test_arguments_of_every_kind_are_written_so_that_the_op_runs(tmp_path):
    files = []
    for op, step in STEPS.items():
        trace = compared(step, keep_ops=op)
        files.append(tmp_path / f"{op}.py")
        files[-1].write_text(nbkit.script_of(trace, next(iter(trace.captured)), tmp_path))
    done = subprocess.run([*PYTHON, "-c", RUN, *files], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.count("largest difference: ") >= len(STEPS)
    assert done.stdout.count("That is what the trace says") == done.stdout.count("largest difference: ")


def test_large_inputs_go_to_a_file_that_is_loaded_with_weights_only(tmp_path):
    x = torch.randn(200, 100)
    text = script(lambda: torch.exp(x.t()), "aten.exp.default", folder=tmp_path / "new")
    path = next((tmp_path / "new").iterdir())
    assert f"TENSORS = torch.load({str(path)!r}, weights_only=True)" in text
    assert torch.equal(torch.load(path, weights_only=True)[0], x.t())
    assert "NOT REPRODUCED" in ran(text, tmp_path)


def test_inputs_that_cannot_be_written_are_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NbkitError, match="Cannot write the inputs to .*; free space or choose another place"):
        script(lambda: torch.exp(torch.randn(200, 100)), "aten.exp.default", folder=tmp_path / "file" / "below")


def test_on_a_full_disk_nothing_is_left_of_the_inputs(tmp_path, monkeypatch):
    def full(values, path):
        path.write_bytes(b"half")
        raise RuntimeError("PytorchStreamWriter failed writing file data/0: file write failed\nmore")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(NbkitError, match="pytorchstreamwriter failed writing file data/0: file write failed; free"):
        script(lambda: torch.exp(torch.randn(200, 100)), "aten.exp.default", folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_nan_on_one_side_is_the_difference(tmp_path):
    out = ran(
        script(lambda: torch.ones(3).log(), "aten.log.default", lambda func, args, out: out.fill_(torch.nan)), tmp_path
    )
    assert "NOT REPRODUCED: the trace says nan" in out


def test_an_op_that_the_cpu_does_not_have_is_said(tmp_path):
    text = script(lambda: torch.full((3,), 2.0).log(), "aten.log.default")
    other = text.replace("torch.ops.aten.log.default", "torch.ops.aten._thnn_fused_gru_cell_backward.default")
    out = ran(other.replace("ARGS = [TENSORS[0]]", "ARGS = [TENSORS[0], TENSORS[0], True]"), tmp_path)
    assert "aten._thnn_fused_gru_cell_backward.default does not run on cpu: " in out
    assert "There is nothing to compare." in out
