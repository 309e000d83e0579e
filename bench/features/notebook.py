"""Features of the notebook kit itself; tests/browser asks whether each widget draws in JupyterLab, Notebook, marimo."""

import re
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import torch

import nbkit
from bench.features.registry import feature

ROOT = Path(__file__).parents[2]
MODEL, X = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU()), torch.randn(2, 4)
KINDS = ("addmm", "gelu")


def profiled() -> list[str]:
    """Returns the ops of these kinds that torch's profiler sees in a call of the model."""
    with torch.profiler.profile() as profiler, torch.no_grad():
        MODEL(X)
    names = [event.name.removeprefix("aten::") for event in profiler.events()]
    return [name for name in names if name in KINDS]


def recorded(trace: nbkit.Trace) -> list[str]:
    return [name for op in trace.ops["op"] if (name := op.split(".")[1]) in KINDS]


@feature("notebook", "frames of a trace", "`with nbkit.optrace() as trace:`, `trace.ops`")
def frames() -> None:
    with nbkit.optrace() as trace, torch.no_grad():
        MODEL(X)
    assert recorded(trace) == profiled()


@feature("notebook", "a cell magic", "`%%optrace -o NAME`")
def magic() -> None:
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    shell.push({"model": MODEL, "x": X})
    shell.run_line_magic("load_ext", "nbkit")
    with redirect_stdout(StringIO()):
        shell.run_cell("%%optrace -o step\nmodel(x)").raise_error()
    assert recorded(shell.user_ns["step"]) == profiled()


@feature("notebook", "difference of device and CPU", "`nbkit.opdiff`, frame `diffs`")
def differences() -> None:
    with nbkit.opdiff() as trace, torch.no_grad():
        MODEL(X)
    (row,) = trace.diffs[trace.diffs["op"] == "aten.addmm.default"].to_dict("records")
    weight, bias = MODEL[0].weight.double(), MODEL[0].bias.double()
    error = (MODEL[0](X).double() - torch.nn.functional.linear(X.double(), weight, bias)).abs().max()
    assert abs(row["max_abs_error"] - float(error)) <= 1e-3 * float(error)


@feature("notebook", "report in one file that opens offline", "`nbkit.opreport(trace, path)`")
def report() -> None:
    with nbkit.optrace() as trace, torch.no_grad():
        MODEL(X)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(nbkit.opreport(trace, path=f"{folder}/report.html")).read_text(encoding="utf-8")
    assert "aten.gelu" in page or "gelu" in page
    assert not re.search(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=[\"']https?:", page)


@feature("notebook", "environment file has what the notebooks import", "environment.yml")
def environment() -> None:
    text = (ROOT / "environment.yml").read_text() + (ROOT / "pyproject.toml").read_text()
    for package in ("torch", "ipywidgets", "anywidget", "plotly", "pandas", "jupyterlab", "matplotlib", "onnxruntime"):
        assert package in text, f"{package} is missing"
