"""Opening a memory snapshot of a million events: seconds and the largest size of the process, beside pickle.load alone.

Run from the repository root: `python bench/readers/memory_snapshot.py [--events N] [--unshared-events N]`.
"""

import argparse
import json
import os
import pickle
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

SECONDS_BUDGET, MEMORY_BUDGET = 10.0, 1.5e9
LAYERS, OPS_PER_LAYER, STEPS_PER_EVENT = 32, 40, 4
ADDRESS, START_US = 0x7F12_0000_0000, 1_700_000_000_000_000
TORCH = "/opt/conda/lib/python3.11/site-packages/torch"
# Runs in a process of its own, whose largest size is then that of the reading.
CHILD = """
import json, re, sys, time
def size(): return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024
import nbkit
from nbkit.views.flamegraph.data import flame_state
from nbkit.views.flamegraph.held import with_stack_timeline
start, cpu = time.perf_counter(), time.process_time()
trace = nbkit.load(sys.argv[1])
loaded, cpu_seconds, after_load = time.perf_counter() - start, time.process_time() - cpu, size()
text = trace.summary()
told = time.perf_counter() - start - loaded
state = flame_state(with_stack_timeline(trace))
drawn = time.perf_counter() - start - loaded - told
print(json.dumps({"load": loaded, "cpu": cpu_seconds, "after_load": after_load, "summary": told, "flame": drawn,
    "peak": size(), "rows": len(trace.memory), "stacks": len(trace.stacks), "frames": state["count"]}))
"""
PLAIN = """
import gc, json, pickle, re, sys, time
gc.disable()
start = time.perf_counter()
data = pickle.load(open(sys.argv[1], "rb"))
seconds = time.perf_counter() - start
print(json.dumps({"load": seconds,
    "peak": int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024}))
"""
Frame = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000, help="events of the snapshots (default: 1,000,000)")
    parser.add_argument(
        "--unshared-events", type=int, default=30_000, help="those with a frame of its own for each call"
    )
    parser.add_argument("--write", nargs=3, metavar=("KIND", "EVENTS", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        kind, events, file = options.write
        Path(file).write_bytes(pickle.dumps(snapshot(int(events), SHARING[kind])))
        return
    with tempfile.TemporaryDirectory() as folder:
        for kind in SHARING:
            path = Path(folder) / "snapshot.pickle"
            count = options.unshared_events if kind == "nothing shared" else options.events
            # In a process of its own: a child's size begins with that of its parent.
            run([__file__, "--write", kind, str(count), str(path)])
            report(kind, count, path)


def own_list(stack: list[Frame]) -> list[Frame]:
    return list(stack)


def own_frames(stack: list[Frame]) -> list[Frame]:
    return [dict(frame) for frame in stack]


# How stacks are written: as torch does, a list per event, of frames that all lists share; or otherwise.
SHARING: dict[str, Callable[[list[Frame]], list[Frame]]] = {
    "frames shared, as torch writes": own_list,
    "stacks shared": lambda stack: stack,
    "nothing shared": own_frames,
}


def snapshot(count: int, shared: Callable[[list[Frame]], list[Frame]]) -> dict[str, Any]:
    """Returns a snapshot of a training loop of a transformer that ends in so many events."""
    draw, stacks = random.Random(0), all_stacks()
    events: list[dict[str, Any]] = []
    live: list[tuple[int, int, list[Frame]]] = []
    free = [ADDRESS + (number << 25) for number in range(4_000)]
    number = 0
    while len(events) < count:
        stack = stacks[number % len(stacks)]
        number += 1
        if free and (len(live) < 50 or number % len(stacks) < len(stacks) // 2 or draw.random() < 0.3):
            size = draw.choice((4 << 10, 2 << 20, 8 << 20, 32 << 20))
            frames = shared(stack)
            address = free.pop()
            live.append((address, size, frames))
            events.append(event("alloc", address, size, len(events), frames))
        else:
            address, size, _ = live.pop(draw.randrange(max(len(live) - 40, 0), len(live)))
            free.append(address)
            frames = shared(stack)
            events += [event(name, address, size, len(events), frames) for name in ("free_requested", "free_completed")]
    settings = {"PYTORCH_CUDA_ALLOC_CONF": "", "expandable_segments": False}
    segments = [segment(*allocation) for allocation in live]
    return {"segments": segments, "device_traces": [events], "allocator_settings": settings, "external_annotations": []}


def event(action: str, address: int, size: int, number: int, frames: list[Frame]) -> dict[str, Any]:
    time_us = START_US + STEPS_PER_EVENT * number
    return {"action": action, "addr": address, "size": size, "stream": 0, "time_us": time_us, "compile_context": "",
            "user_metadata": "", "pool_id": (0, 0), "frames": frames}  # fmt: skip


def segment(address: int, size: int, frames: list[Frame]) -> dict[str, Any]:
    block = {"address": address, "size": size, "requested_size": size, "state": "active_allocated", "frames": frames}
    return {"device": 0, "address": address, "total_size": size, "stream": 0, "allocated_size": size,
            "active_size": size, "segment_type": "large", "segment_pool_id": (0, 0), "blocks": [block]}  # fmt: skip


def all_stacks() -> list[list[Frame]]:
    """Returns the stacks of a step, 20 to 40 frames deep, the innermost first, of frames that they share."""
    known: dict[tuple[str, str, int], Frame] = {}

    def frame(name: str, file: str, line: int) -> Frame:
        return known.setdefault((name, file, line), {"name": name, "filename": file, "line": line})

    call = [frame("_call_impl", f"{TORCH}/nn/modules/module.py", 1789),
            frame("_wrapped_call_impl", f"{TORCH}/nn/modules/module.py", 1778)]  # fmt: skip
    main = [frame(name, f"/srv/project/{name}.py", 40 + index) for index, name in enumerate(
        ("step", "fit", "run_epoch", "train", "launch", "worker", "wrapper", "main", "cli", "<module>"))]  # fmt: skip
    stacks = []
    for layer in range(LAYERS):
        for op in range(OPS_PER_LAYER):
            inner = [frame(f"op_{op}", f"{TORCH}/nn/functional.py", 1000 + op),
                     frame("forward", f"{TORCH}/nn/modules/linear.py", 125)]  # fmt: skip
            part = [frame("forward", "/srv/project/attention.py", 100 + op % 7), *call]
            deep = [frame(f"helper_{depth}", "/srv/project/ops.py", 10 * op + depth) for depth in range(op % 12)]
            block = [frame("forward", "/srv/project/block.py", 30 + op % 5), *call]
            model = [frame("forward", "/srv/project/model.py", 200 + layer), *call]
            stacks.append([*inner, *call, *deep, *part, *block, *model, *main])
    return stacks


def report(kind: str, count: int, path: Path) -> None:
    read, plain = (json.loads(run(["-c", code, str(path)])) for code in (CHILD, PLAIN))
    size, rows, calls = path.stat().st_size / 1e6, read["rows"], read["stacks"]
    print(f"{kind}: {count:,} events, {size:,.0f} MB, {rows:,} rows, {calls:,} calls")
    print(f"  loaded in {read['load']:.1f} s ({read['cpu']:.1f} s of CPU time; budget {SECONDS_BUDGET:g} s), ", end="")
    print(f"pickle.load alone {plain['load']:.1f} s")
    print(f"  peak {read['after_load'] / 1e6:,.0f} MB (budget {MEMORY_BUDGET / 1e6:,.0f} MB), ", end="")
    print(f"pickle.load alone {plain['peak'] / 1e6:,.0f} MB")
    print(f"  summary {read['summary']:.1f} s, flame graph of {read['frames']:,} frames {read['flame']:.1f} s", end="")
    print(f", peak after both {read['peak'] / 1e6:,.0f} MB")


def run(arguments: list[str]) -> str:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True, cwd=os.getcwd())
    return done.stdout


if __name__ == "__main__":
    main()
