"""Makes Chrome traces for the readers' tests: real ones that torch.profiler exports here, and literal ones."""

import gzip
import json
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch._C._profiler import _ExperimentalConfig
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils.checkpoint import checkpoint

from nbkit.compat.torch_versions import experimental_config


class Block(nn.Module):
    """Has two layers; the second one runs again in the backward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint(self.second, torch.relu(self.first(x)), use_reentrant=False)


def training_step() -> None:
    """Runs forward, backward and AdamW step of a block of its own."""
    model = Block()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    with record_function("my forward"):
        loss = model(torch.ones(4, 8)).sum()
    loss.backward()
    optimizer.step()


def threaded_step() -> None:
    """Runs a training step in each of two threads at once, then one in this thread."""
    threads = [threading.Thread(target=training_step) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    training_step()


def profiled(step: Any, all_threads: bool = False, **options: Any) -> profile:
    """Returns the profile of one run of `step`; skips the test where torch (2.6) profiles but the thread that asks."""
    if all_threads and "profile_all_threads" not in str(_ExperimentalConfig.__init__.__doc__):
        pytest.skip("this torch does not profile all threads")
    config = experimental_config(profile_all_threads=all_threads)
    with profile(activities=[ProfilerActivity.CPU], experimental_config=config, **options) as recorded:
        step()
    return recorded


def exported(recorded: profile, path: Path) -> Path:
    """Writes the Chrome trace of a profile; returns its path."""
    recorded.export_chrome_trace(str(path))
    return path


def written(path: Path, events: list[Any], **around: Any) -> Path:
    """Writes a Chrome trace of these events, gzipped whatever it is called if `around` says packed=True."""
    packed = around.pop("packed", False)
    text = json.dumps({"schemaVersion": 1, **around, "traceEvents": events}).encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    return path


def slice_(category: str, name: str, start: float, duration: float, **fields: Any) -> dict[str, Any]:
    """Makes a complete event of thread 7 of process 7; `fields` but pid and tid are its args, "_" is a blank."""
    place = {"pid": fields.pop("pid", 7), "tid": fields.pop("tid", 7)}
    args = {key.replace("_", " "): value for key, value in fields.items()}
    return {"ph": "X", "cat": category, "name": name, **place, "ts": start, "dur": duration, "args": args}
