"""Every verb of nbkit once, on a small model with a planted NaN: what must work with every supported version.

`python tests/versions/smoke.py` prints the versions and a line per verb, and raises at the first that is wrong.
"""

import importlib.metadata
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

import nbkit

SHOWN = ("torch", "pandas", "numpy", "pyarrow", "ipython", "ipykernel", "ipywidgets", "traitlets")


class Net(nn.Module):
    """Two layers, between them an op that makes NaN where `is_broken`."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)
        self.is_broken = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.first(x))
        return self.second(torch.log(hidden - 1e3) if self.is_broken else hidden)


def step(model: Net) -> None:
    """A forward, a backward and an optimizer step."""
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(3, 8)).square().mean().backward()
    optimizer.step()


def recorded(verb: Any, model: Net, **options: Any) -> nbkit.Trace:
    with verb(**options) as trace:
        step(model)
    return trace


def traces() -> Iterator[tuple[str, nbkit.Trace]]:
    """Yields a trace of each recording verb, after looking at what it holds."""
    torch.manual_seed(0)
    trace = recorded(nbkit.optrace, Net(), values="stats")
    ops = trace.ops
    matmul = ops[ops["op"] == "aten.addmm.default"]
    assert sorted(matmul["module"]) == ["first", "second"] and set(matmul["phase"]) == {"forward"}, matmul
    assert {"forward", "backward", "optimizer"} <= set(ops["phase"])
    assert {"first.weight", "second.bias"} <= set(trace.tensors["name"].dropna())
    yield "optrace", trace
    timing = recorded(nbkit.optime, Net())
    names = timing.ops["op"].str.removesuffix(".default")
    assert set(timing.ops.loc[names == "aten.addmm", "module"]) >= {"first", "second"}, timing.ops[["op", "module"]]
    assert (timing.ops["total_time_us"] >= 0).all()
    yield "optime", timing
    broken = Net()
    broken.is_broken = True
    check = recorded(nbkit.opcheck, broken)
    assert check.findings["op"].iloc[0].startswith("aten.log"), check.findings
    yield "opcheck", check
    diff = recorded(nbkit.opdiff, Net())
    assert set(diff.diffs["status"]) == {"ok"} and len(diff.diffs) > 20, diff.diffs["status"].value_counts()
    yield "opdiff", diff
    graph = nbkit.opgraph(torch.export.export(Net().eval(), (torch.ones(3, 8),)))
    assert {"first", "second"} <= set(graph.parts["module"].dropna()), graph.parts
    yield "opgraph", graph


def same_after_loading(trace: nbkit.Trace, path: Path) -> bool:
    loaded = nbkit.load(trace.save(path))
    return all(frame.equals(loaded.frames[name]) for name, frame in trace.frames.items())


def no_stand_in_for_null(trace: nbkit.Trace) -> bool:
    """Whether no text of a frame is what Python calls a null."""
    frames = [frame.drop(columns="rule", errors="ignore") for frame in trace.frames.values()]  # a finding is a "nan"
    texts = [frame[name] for frame in frames for name in frame.select_dtypes(exclude="number")]
    return not any(values.isin(["None", "nan", "<NA>"]).any() for values in texts)


def main() -> None:
    print(sys.version.split()[0], *(f"{name} {importlib.metadata.version(name)}" for name in SHOWN), sep=", ")
    kept = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for verb, trace in traces():
            assert trace.summary().startswith(verb), trace.summary()
            assert same_after_loading(trace, folder / verb), verb
            assert no_stand_in_for_null(trace), verb
            kept.append(trace)
            print(f"  {verb}: {len(trace.frames.get('ops', trace.frames.get('nodes', ())))} rows", flush=True)
        report = nbkit.opreport(*kept, path=folder / "report.html")
        assert Path(report).stat().st_size > 100_000
        print(f"  opreport: {Path(report).stat().st_size // 1024} KiB", flush=True)


if __name__ == "__main__":
    main()
