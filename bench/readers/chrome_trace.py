"""Reading and converting a Chrome trace of 300 MB: seconds, MB/s, and how much memory that takes per byte of the file.

Run from the repository root: `python bench/readers/chrome_trace.py [--megabytes N]`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from nbkit.capture.profiler.kineto import muted_stderr
from sample_models.llama import LLAMA_SMALL, Llama

MEMORY_BUDGET, SPEED_GOAL = 4.0, 30.0
ID_ARGS = ("External id", "Ev Idx", "Python id", "Python parent id")
# Runs in a process of its own, whose largest size is then that of the reading. Linux tells it in VmHWM; ru_maxrss
# would be that of the process that started this one, where that was larger.
CHILD = """
import json, re, sys, time
import nbkit
from nbkit.readers.chrome.reader import read_chrome_trace
def size(): return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024
run = {"read": read_chrome_trace, "converted": nbkit.convert}[sys.argv[3]]
run(sys.argv[2])
before, start, cpu = size(), time.perf_counter(), time.process_time()
run(sys.argv[1])
seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
print(json.dumps({"seconds": seconds, "cpu": cpu_seconds, "grown": size() - before, "peak": size()}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=300, help="size of the file (default: 300)")
    wanted = parser.parse_args().megabytes * 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        for with_stack in (False, True):
            small, large = Path(folder) / "small.json", Path(folder) / "large.json"
            record(small, with_stack)
            repeat(small, large, wanted)
            report("ops, shapes, memory" + (", Python frames" if with_stack else ""), small, large)


def record(path: Path, with_stack: bool) -> None:
    """Records a training step as torch.profiler exports it."""
    torch.set_num_threads(1)
    model, ids = Llama(LLAMA_SMALL), torch.randint(0, 256, (1, 32))
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    with (
        muted_stderr([]),
        profile(
            activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True, with_stack=with_stack
        ) as recorded,
    ):
        model(ids).mean().backward()
        optimizer.step()
    recorded.export_chrome_trace(str(path))


def repeat(small: Path, large: Path, size_bytes: int) -> None:
    """Repeats the same events, each time later and with new ids, until the file is large enough."""
    head = json.loads(small.read_text())
    events = [event for event in head.pop("traceEvents") if event.get("ph") != "M" and event.get("cat") != "Trace"]
    span = max(event["ts"] + event.get("dur", 0) for event in events) - min(event["ts"] for event in events)
    with large.open("w") as file:
        file.write(json.dumps(head)[:-1] + ', "traceEvents": [')
        between = "\n"
        for number in range(1_000_000):
            for event in shifted(events, number, number * (span + 10.0)):
                file.write(between + json.dumps(event, indent=2))
                between = ",\n"
            if file.tell() >= size_bytes:
                break
        file.write("]}")


def shifted(events: list[dict[str, Any]], number: int, later_us: float) -> Iterator[dict[str, Any]]:
    offset = number * len(events)
    for event in events:
        args = {k: v + offset if k in ID_ARGS and v is not None else v for k, v in event.get("args", {}).items()}
        own_id = {"id": event["id"] + offset} if "id" in event else {}
        yield {**event, "ts": round(event["ts"] + later_us, 3), **own_id, **({"args": args} if args else {})}


def report(what: str, small: Path, large: Path) -> None:
    size = large.stat().st_size
    print(f"{what}: {size / 1e6:,.0f} MB")
    for how in ("read", "converted"):
        command = [sys.executable, "-c", CHILD, str(large), str(small), how]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=os.getcwd())
        took = json.loads(done.stdout)
        speed, share = size / 1e6 / took["cpu"], took["grown"] / size
        print(f"  {how} in {took['seconds']:.1f} s, {took['cpu']:.1f} s of CPU time: {speed:.0f} MB/s of it", end=" ")
        print(f"({speed / SPEED_GOAL:.2f} of the goal)")
        print(f"  memory grew by {took['grown'] / 1e6:,.0f} MB to {took['peak'] / 1e6:,.0f} MB: ", end="")
        print(f"{share:.2f} x the file (budget {MEMORY_BUDGET:g} x)")


if __name__ == "__main__":
    main()
