"""Captures training steps, replays each in a fresh process, and counts the calls that are the same to the bit.

For each step: the share of all aten calls, as torch's profiler counts them, that a fresh process repeats with
the same bits, shapes, strides and aliases; every other call with its reason; the size of the folder over that of the
different contents that ops read and wrote; and the time of capturing over that of optrace and a plain write of as many
bytes to the same disk. With --first these are the first recordings of processes of their own, which have recorded a
single op before. Ends with status 1 if fewer than 99.5 % are the same or a folder is larger than 1.05 times.

Run from the repository root: `python bench/replay.py [NAME ...] [--device DEVICE] [--first] [--list]`. Writes
out/bench/replay.md.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from fnmatch import fnmatch
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import torch

import nbkit
from bench.captured.counted import calls, unique_bytes
from bench.captured.steps import STEPS, Step
from bench.devices import named, wait

ROOT = Path(__file__).parents[1]
OUT = ROOT / "out" / "bench" / "replay.md"
LEAST_SAME, MOST_SIZE = 0.995, 1.05
# Short steps have more rounds, up to this many seconds; first recordings few, as a process takes seconds to start.
ROUNDS, MOST_ROUNDS, SECONDS, FIRST_ROUNDS = 7, 31, 4.0, 3
KINDS = ("bare", "trace", "write", "capture")
Result = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["*"], help="steps, as patterns")
    parser.add_argument("--device", default="cpu", help="such as cuda (default: cpu)")
    parser.add_argument("--list", action="store_true", help="print the names of the steps")
    parser.add_argument("--first", action="store_true", help="time the first recordings of processes")
    parser.add_argument("--time", nargs=2, metavar=("KIND", "FOLDER"), help="print milliseconds of one kind, the first")
    parser.add_argument("--replay", metavar="FOLDER", help="replay a folder and print what came of it, as JSON")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.device != "cpu":  # a default device is a function mode, which costs
        torch.set_default_device(options.device)
    if options.replay is not None:
        print(json.dumps(replayed(options.replay)))
        return 0
    if options.time is not None:
        print(first_time(options.names[0], options.time[0], Path(options.time[1])))
        return 0
    names = [name for name in STEPS if any(fnmatch(name, f"*{pattern}*") for pattern in options.names)]
    if options.list:
        print("\n".join(names))
        return 0
    results = [measured(name, options.first) for name in names]
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(text := "\n".join(report(results)) + "\n")
    print(text)
    calls, same = (sum(result[name] for result in results) for name in ("calls", "same"))
    return int(same < LEAST_SAME * calls or any(result["size"] > MOST_SIZE for result in results))


def measured(name: str, is_first: bool) -> Result:
    """Captures a step and replays it elsewhere. The step has run once before: optimizers have their state."""
    with tempfile.TemporaryDirectory(dir=OUT.parent if OUT.parent.exists() else None) as place:
        folder = Path(place) / "calls"
        reported, unique = calls(made(name)), unique_bytes(made(name))
        step = made(name)
        with nbkit.opcapture(folder, replace=True) as trace:
            step()
        size = sum(file.stat().st_size for file in folder.iterdir())
        result = {"name": name, "unique": unique, "folder": size, "size": size / unique}
        result |= json.loads(elsewhere("--replay", str(folder)))
        left = {reason: count for reason, count in trace.meta["skipped"].items() if reason.startswith("not captured")}
        captured = Counter(op.removeprefix("aten.") for op in trace.captures["op"])
        result["calls"] = (reported | captured).total()
        missing = reported - captured
        left |= {f"{op}: reported by torch's profiler, not captured": count for op, count in missing.items()}
        result["reasons"] = {**left, **result["reasons"]}
        result |= times(name, folder, size, is_first)
    said = "\n".join(f"  {count} x {reason}" for reason, count in result["reasons"].items())
    print(
        f"{name}: {result['same']} of {result['calls']}, {result['size']:.3f} times\n{said}",
        file=sys.stderr,
        flush=True,
    )
    return result


def elsewhere(*options: str) -> str:
    """Returns the last line that this program prints in a fresh process with these options."""
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    device = ("--device", str(torch.get_default_device()))
    command, environment = [sys.executable, __file__, *options, *device], {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"{' '.join(options)} ends with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout.splitlines()[-1]


def made(name: str) -> Step:
    torch.manual_seed(0)
    step = STEPS[name]()
    step()
    torch.manual_seed(1)
    wait(torch.get_default_device())
    return step


def replayed(folder: str) -> Result:
    trace = nbkit.opreplay(folder)
    other = trace.diffs[trace.diffs["status"] != "ok"]
    reasons = {
        f"{op}: {message}": int(count) for (op, message), count in other.groupby(["op", "message"]).size().items()
    }
    return {"same": trace.meta["identical_calls"], "reasons": {**trace.meta["skipped"], **reasons}}


def times(name: str, folder: Path, size: int, is_first: bool) -> Result:
    """Returns milliseconds of the bare step, under optrace and opcapture, and of a plain write, medians of rounds.

    Both write new files: what is overwritten is in memory already, which is another matter. `cost` is the median of the
    rounds, too: what a machine does beside it lasts longer than a round. Each round begins with another kind.
    """
    data, plain = os.urandom(size), folder.parent / "plain"
    taken: list[dict[str, float]] = []

    def write() -> None:
        with plain.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def measured_once(kind: str) -> float:
        if is_first and kind in ("trace", "capture"):
            return float(elsewhere(name, "--time", kind, str(folder)))
        return timed(kind, write if kind == "write" else made(name), folder)

    started = perf_counter()
    while len(taken) < (FIRST_ROUNDS if is_first else ROUNDS) or (
        not is_first and len(taken) < MOST_ROUNDS and perf_counter() - started < SECONDS
    ):
        shutil.rmtree(folder)
        plain.unlink(missing_ok=True)
        first = len(taken) % len(KINDS)
        taken.append({kind: measured_once(kind) for kind in (*KINDS[first:], *KINDS[:first])})
    medians = {kind: median(one[kind] for one in taken) for kind in KINDS}
    return {**medians, "cost": median(one["capture"] / (one["trace"] + one["write"]) for one in taken)}


def first_time(name: str, kind: str, folder: Path) -> float:
    """Returns the milliseconds of the first recording of this process, after that of a single op."""
    timed(kind, lambda: torch.ones(3).sum(), folder)
    shutil.rmtree(folder, ignore_errors=True)
    return timed(kind, made(name), folder)


def timed(kind: str, step: Step, folder: Path) -> float:
    recorders: dict[str, Callable[[], AbstractContextManager[Any]]] = {
        "trace": nbkit.optrace, "capture": lambda: nbkit.opcapture(folder, replace=True)
    }  # fmt: skip
    started = perf_counter()
    with recorders.get(kind, nullcontext)():
        step()
    wait(torch.get_default_device())
    return (perf_counter() - started) * 1e3


def report(results: list[Result]) -> list[str]:
    calls, same = (sum(result[name] for result in results) for name in ("calls", "same"))
    device = torch.get_default_device()
    lines = [
        f"{named(device)}, torch {torch.__version__}.",
        "",
        f"{same:,} of {calls:,} aten calls are the same to the bit in a fresh process ({same / calls:.2%}).",
        "",
        "| step | aten calls | same | folder MB | folder / unique bytes | bare ms | trace ms | plain write ms | "
        "capture ms | capture / (trace + write) |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in results:
        numbers = [f"{one[kind]:.0f}" for kind in ("bare", "trace", "write", "capture")]
        lines.append(
            f"| {one['name']} | {one['calls']:,} | {one['same']:,} | {one['folder'] / 1e6:.1f} | {one['size']:.3f} | "
            f"{' | '.join(numbers)} | {one['cost']:.2f} |"
        )
    capture, limit = (
        sum(sum(one[kind] for kind in kinds) for one in results) for kinds in (["capture"], ["trace", "write"])
    )
    lines += [
        "",
        f"All together: captured in {capture:.0f} ms, traced and written in {limit:.0f} ms ({capture / limit:.2f}).",
    ]
    reasons = [f"- {one['name']}: {count} x {reason}" for one in results for reason, count in one["reasons"].items()]
    return [*lines, "", "What is not the same, and what was not captured:", "", *(reasons or ["nothing"])]


if __name__ == "__main__":
    sys.exit(main())
