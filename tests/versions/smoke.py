"""Every verb of nbkit once, on a small model with a planted NaN: what must work with every supported version.

`python tests/versions/smoke.py` prints the versions and a line per verb, and raises at the first that is wrong.
"""

import importlib.metadata
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from torch import nn

import nbkit
from nbkit.command_line.main import main as run_command
from nbkit.verbs.registry import VERBS

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


def later_traces(folder: Path) -> Iterator[tuple[str, nbkit.Trace]]:
    """Yields a trace of each verb that looks into training, cost, single operators or two executions."""
    audit = recorded(nbkit.opaudit, Net())
    assert audit.parameters["name"].tolist() == ["first.weight", "first.bias", "second.weight", "second.bias"]
    assert audit.parameters["in_optimizer"].all() and (audit.parameters["update_fraction"] > 0).all()
    yield "opaudit", audit
    doctor = recorded(nbkit.opdoctor, Net())
    assert doctor.parameters["in_optimizer"].all() and doctor.meta["step"]["peak_bytes"] > 0, doctor.meta["step"]
    yield "opdoctor", doctor
    cost = recorded(nbkit.opcost, Net(), device="H100")
    forward, of_input = 2 * 3 * (8 * 16 + 16 * 4), 2 * 3 * 16 * 4
    assert cost.costs["flops"].sum() == 2 * forward + of_input, cost.costs["flops"].sum()
    table = nbkit.cost_table(Net(), torch.ones(3, 8))
    assert table["backward_flops"].sum() == forward + of_input, table
    yield "opcost", cost
    yield "opfallback", replaced(nbkit.opfallback)
    yield "opcast", replaced(nbkit.opcast, dtype="bfloat16", ops="mm")
    yield "opbisect", bisected()
    stable = recorded(nbkit.opstable, Net())
    assert not len(stable.findings), stable.findings["message"].tolist()
    yield "opstable", stable
    captured = recorded(nbkit.opcapture, Net(), folder=folder / "calls")
    yield "opcapture", captured
    replay = nbkit.opreplay(folder / "calls")
    assert replay.meta["identical_calls"] == len(captured.captures), replay.meta
    yield "opreplay", replay
    yield "opalign", aligned()


def replaced(verb: Any, **options: Any) -> nbkit.Trace:
    """Records a step with other kernels, which must train the model as without."""
    torch.manual_seed(0)
    plain, model = Net(), Net()
    model.load_state_dict(plain.state_dict())
    step(plain)
    trace = recorded(verb, model, **options)
    pairs = zip(model.parameters(), plain.parameters(), strict=True)
    error = max(float((one - other).detach().abs().max()) for one, other in pairs)
    assert error == 0 if verb is nbkit.opfallback else error < 1e-2, error
    return trace


def bisected() -> nbkit.Trace:
    """Finds the third of nine calls, which stands for a wrong one: it is right as long as it is replaced."""
    right: set[int] = set()

    @contextmanager
    def repaired(calls: Any) -> Iterator[None]:
        right.update(call.call for call in calls if call.op == "aten.exp.default")
        yield
        right.clear()

    def nine_calls() -> frozenset[int]:
        for _ in range(9):
            torch.ones(2).exp()
        return frozenset(right)

    trace = nbkit.opbisect(nine_calls, lambda repaired_calls: 2 in repaired_calls, by=repaired)
    assert [(one["op"], one["call"]) for one in trace.meta["culprits"]] == [("aten.exp.default", 2)], trace.meta
    return trace


def aligned() -> nbkit.Trace:
    """Aligns a model with its export, where nothing differs, then with one that has another bias."""
    left, right, inputs = Net().eval(), Net().eval(), (torch.ones(3, 8),)
    right.load_state_dict(left.state_dict())
    same = nbkit.opalign(left, torch.export.export(right, inputs), inputs=inputs)
    assert same.meta["first_divergence"] is None, same.meta["first_divergence"]
    nn.init.ones_(right.second.bias)
    trace = nbkit.opalign(left, right, inputs=inputs)
    first = trace.meta["first_divergence"]
    assert (first["left"]["name"], first["kind"]) == ("second.bias", "other_weights"), first
    return trace


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
        for verb, trace in (*traces(), *later_traces(folder)):
            assert re.search(rf"^{verb}\b", trace.summary(), re.MULTILINE), trace.summary()
            assert same_after_loading(trace, folder / verb), verb
            assert no_stand_in_for_null(trace), verb
            kept.append(trace)
            print(f"  {verb}: {len(trace.frames.get('ops', trace.frames.get('nodes', ())))} rows", flush=True)
        report = nbkit.opreport(*kept, path=folder / "report.html")
        assert Path(report).stat().st_size > 100_000
        print(f"  opreport: {Path(report).stat().st_size // 1024} KiB", flush=True)
        commands = {"load": ["load", "optrace"], "info": ["info", "optrace"], "diff": ["diff", "optrace", "optrace"]}
        for name, (command, *paths) in commands.items():
            with redirect_stdout(StringIO()) as said:
                status = run_command([command, *(str(folder / path) for path in paths)])
            assert status == 0 and said.getvalue(), (name, status)
            print(f"  {name}: {len(said.getvalue().splitlines())} lines", flush=True)
    shown = {*(trace.meta["verb"] for trace in kept), "opreport", *commands}
    assert shown == set(VERBS), set(VERBS) ^ shown


if __name__ == "__main__":
    main()
