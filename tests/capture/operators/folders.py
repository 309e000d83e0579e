"""Captures small steps for the tests, and writes folders anew with changed records."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import nbkit
from nbkit import Trace
from nbkit.trace.calls.layout import HEAD, Record
from nbkit.trace.calls.reading import CallFolder
from nbkit.trace.calls.writing import CallWriter

needs_overload_names = pytest.mark.skipif(
    "capture_overload_names" not in str(torch._C._profiler._ExperimentalConfig.__init__.__doc__),
    reason="the profiler of this torch does not tell overloads",
)


def training_step() -> Callable[[], Any]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    x, y = torch.randn(8, 6), torch.randint(3, (8,))

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    step()
    return step


def captured(folder: Path, step: Callable[[], Any] | None = None, **options: Any) -> Trace:
    step = step or training_step()
    with nbkit.opcapture(folder, **options) as trace:
        step()
    return trace


def records(folder: Path) -> list[Record]:
    return [record for _, record in CallFolder(folder)]


def rewritten(folder: Path, target: Path, change: Callable[[int, Record], Record | None]) -> Path:
    """Writes the calls anew, each as `change` gives it back, with sums that fit; None is left out."""
    source = CallFolder(folder)
    writer = CallWriter(target, {name: source.head[name] for name in source.head}, 2**40)
    names: dict[str, str] = {}

    def put(name: str) -> str:
        if name not in names:
            names[name] = writer.put(source.content(name))
        return names[name]

    for number, record in source:
        for entry in (*record["storages"], *record.get("generators", ()), record.get("generator", {})):
            entry |= {key: put(entry[key]) for key in ("before", "after", "state") if key in entry}
        new = change(number, record)
        if new is not None:
            writer.add(new)
    writer.finish()
    assert (target / HEAD).is_file()
    return target


def first_of(folder: Path, op: str) -> int:
    return next(number for number, record in enumerate(records(folder)) if record["op"] == op)


def problems(trace: Trace) -> list[tuple[str, str, str]]:
    rows = trace.diffs[trace.diffs["status"] != "ok"]
    return list(zip(rows["op"], rows["status"], rows["message"].fillna(""), strict=True))
