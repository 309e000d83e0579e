"""Changes one field, line or byte of right files of every reader, and says what loading the result did.

    python -m bench.fuzz_readers --files 20000

Chrome traces are of torch.profiler, ONNX models of onnx, the others as their writers write them. No exception but
TraceError may leave load(), and a file that lost rows has to say so: a note, a count, a skipped line. A changed text
may be a right one with less in it (a line is gone): only changed fields are to have no "silent" file.
"""

import argparse
import copy
import io
import json
import pickle
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from onnx import TensorProto, helper
from torch.profiler import profile

import nbkit
from nbkit import Trace, TraceError
from tests.readers.cuda_trace import AROUND, events
from tests.readers.flight_recorder.dumps import call, dump
from tests.support.graph_texts import ONEFLOW, PADDLE, PIR

# What a field becomes: numbers at the limits, other types, texts that no frame holds.
VALUES = (None, True, -1, 0, 1 << 31, 1 << 63, (1 << 64) - 1, 1 << 80, 1e300, 0.5, float("nan"), float("inf"),
          "", "text", "é" * 50, "\ud800", "\x00", [], [1, "a"], {}, {"a": [1]})  # fmt: skip
SHOWN = 50  # the summary of every so manyth file of a kind is made, too: it takes longer than to load it


def chrome_of_torch() -> dict[str, Any]:
    """Returns a trace that torch.profiler wrote of a small training step."""
    with profile(record_shapes=True, profile_memory=True, with_stack=True) as recorded:
        torch.nn.Linear(4, 2)(torch.ones(3, 4)).sum().backward()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.json"
        recorded.export_chrome_trace(str(path))
        data: dict[str, Any] = json.loads(path.read_text(), strict=False)
    kept = [event for event in data["traceEvents"] if event.get("cat") != "python_function"]
    frames = [event for event in data["traceEvents"] if event.get("cat") == "python_function"][:20]
    return {**data, "traceEvents": kept + frames}


def snapshot() -> dict[str, Any]:
    """Returns a memory snapshot as torch.cuda writes it."""
    frames = [{"name": "forward", "filename": "net.py", "line": 3}, {"name": "main", "filename": "run.py", "line": 9}]
    blocks = [
        {"address": 4096, "size": 1024, "requested_size": 1000, "state": "active_allocated", "frames": frames},
        {"address": 5120, "size": 3072, "requested_size": 0, "state": "inactive", "frames": []},
    ]
    segment = {"device": 0, "address": 4096, "total_size": 4096, "stream": 0, "blocks": blocks}
    actions = ("segment_alloc", 4096, 4096), ("alloc", 4096, 1000), ("alloc", 5120, 50), ("free_completed", 5120, 50)
    trace = [
        {"action": action, "addr": address, "size": size, "stream": 0, "time_us": time, "frames": frames}
        for time, (action, address, size) in enumerate(actions)
    ]
    trace.append({"action": "oom", "size": 99999, "device_free": 10, "stream": 0, "time_us": 9, "frames": frames})
    return {"segments": [segment], "device_traces": [trace], "allocator_settings": {"max_split_size": -1}}


def model() -> bytes:
    """Returns an ONNX model of two nodes."""
    weight = helper.make_tensor("w", TensorProto.FLOAT, [4, 2], [0.5] * 8)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="up"),
        helper.make_node("Relu", ["h"], ["y"], name="act"),
    ]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", [3, 4]), ("y", [3, 2]))
    ]
    return helper.make_model(helper.make_graph(nodes, "net", ends[:1], ends[1:], [weight])).SerializeToString()


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yields the paths of all values in nested dicts and lists."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def changed_field(data: Any, within: str) -> Callable[[random.Random], Any]:
    """Returns what gives a copy of the data in which one value below `within` is another one, or is missing."""
    found = [path for path in places(data) if path[0] == within and len(path) > 1]

    def change(chance: random.Random) -> Any:
        path = chance.choice(found)
        copied = copy.deepcopy(data)
        holder = copied
        for key in path[:-1]:
            holder = holder[key]
        if chance.random() < 0.1 and isinstance(holder, dict):  # a list without an entry is a right one
            del holder[path[-1]]
        else:
            holder[path[-1]] = chance.choice(VALUES)
        return copied

    return change


def changed_text(text: str) -> Callable[[random.Random], bytes]:
    """Returns what gives the text with one word or line of it another one, twice there, or gone."""

    def change(chance: random.Random) -> bytes:
        lines = text.splitlines(keepends=True)
        at = chance.randrange(len(lines))
        kind, start = chance.randrange(5), chance.randrange(len(lines[at]))
        end = min(start + chance.randrange(1, 8), len(lines[at]))
        junk = chance.choice(("", '"', "{", "}", "(", ")", "->", "-1", "9" * 30, "\x00", "é", "[[", ",,", "\\"))
        line = lines[at][:start] + junk + lines[at][end:]
        lines[at : at + 1] = ([], [lines[at]] * 2, [line], [line], [lines[at][:start] + junk + lines[at][start:]])[kind]
        return "".join(lines).encode("utf-8", "surrogatepass")

    return change


def changed_bytes(data: bytes) -> Callable[[random.Random], bytes]:
    """Returns what gives the bytes with one of them another one."""

    def change(chance: random.Random) -> bytes:
        changed = bytearray(data)
        changed[chance.randrange(len(data))] = chance.randrange(256)
        return bytes(changed)

    return change


def writers() -> dict[str, tuple[str, bytes, Callable[[random.Random], bytes]]]:
    """Returns, by name, the suffix of a kind of file, a right one, and what writes it with one change."""
    by_torch, by_hand, memory = chrome_of_torch(), {**AROUND, "traceEvents": events()}, snapshot()

    def fields(
        data: Any, within: str, written: Callable[[Any], bytes]
    ) -> tuple[bytes, Callable[[random.Random], bytes]]:
        change = changed_field(data, within)
        return written(data), lambda chance: written(change(chance))

    def as_json(data: Any) -> bytes:
        return json.dumps(data).encode()

    text, ring = (
        json.dumps(by_torch, indent=1),
        dump([call(), call("broadcast"), call("all_gather", (2,), out=[[3, 2]])]),
    )
    return {
        "Chrome, of torch": (".json", *fields(by_torch, "traceEvents", as_json)),
        "Chrome, with kernels": (".json", *fields(by_hand, "traceEvents", as_json)),
        "Chrome, around the events": (".json", *fields(by_hand, "distributedInfo", as_json)),
        "Chrome, as text": (".json", text.encode(), changed_text(text)),
        "snapshot, blocks": (".pickle", *fields(memory, "segments", pickle.dumps)),
        "snapshot, events": (".pickle", *fields(memory, "device_traces", pickle.dumps)),
        "flight recorder": (".pickle", *fields(ring, "entries", pickle.dumps)),
        "flight recorder, around": (".json", *fields(ring, "pg_config", as_json)),
        "OneFlow": (".log", ONEFLOW.encode(), changed_text(ONEFLOW)),
        "Paddle": (".txt", PADDLE.encode(), changed_text(PADDLE)),
        "Paddle, PIR": (".txt", PIR.encode(), changed_text(PIR)),
        "ONNX": (".onnx", model(), changed_bytes(model())),
    }


def rows_and_words(trace: Trace) -> tuple[int, str]:
    """Returns how many rows a trace has, and all that is said of what it lacks."""
    rows = sum(
        len(trace.frames[name]) for name in ("ops", "memory", "blocks", "nodes", "collectives") if name in trace.frames
    )
    return rows, str([trace.meta.get(name) for name in ("skipped", "notes", "skipped_lines")])


def outcome(path: Path, right: tuple[int, str], is_shown: bool = False) -> str:
    """Loads a file: "read", "said" where what is lost is told, "silent" where it is not, "refused", or the error.

    `right` is what the file without the change has.
    """
    try:
        trace = nbkit.load(path)
        if is_shown:
            trace.summary()
    except TraceError as error:
        return "refused" if str(path.name) in str(error) else f"refused without the file's name: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    rows, words = rows_and_words(trace)
    return "said" if words != right[1] else "silent" if rows < right[0] else "read"


def run(files: int, seed: int, shown: int = SHOWN) -> dict[str, Counter[str]]:
    """Returns by kind of file how often each outcome was."""
    chance, kinds = random.Random(seed), writers()
    results: dict[str, Counter[str]] = {name: Counter() for name in kinds}
    with tempfile.TemporaryDirectory() as folder:
        right = {}
        for name, (suffix, content, _) in kinds.items():
            path = Path(folder) / f"right{suffix}"
            path.write_bytes(content)
            right[name] = rows_and_words(nbkit.load(path))
        for number in range(files):
            name = [*kinds][number % len(kinds)]
            suffix, _, write = kinds[name]
            path = Path(folder) / f"right{suffix}"
            path.write_bytes(write(chance))
            results[name][outcome(path, right[name], is_shown=shown > 0 and number // len(kinds) % shown == 0)] += 1
    return results


def table(results: dict[str, Counter[str]]) -> str:
    """Returns the results as a table, with every error of others."""
    known = ("read", "said", "silent", "refused")
    text = io.StringIO()
    print(f"{'file':<28}" + "".join(f"{name:>10}" for name in known) + f"{'errors':>10}", file=text)
    for name, counts in results.items():
        errors = {kind: count for kind, count in counts.items() if kind not in known}
        print(
            f"{name:<28}" + "".join(f"{counts[kind]:>10,}" for kind in known) + f"{sum(errors.values()):>10,}",
            file=text,
        )
        for kind, count in errors.items():
            print(f"    {count} x {kind[:200]}", file=text)
    return text.getvalue()


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(table(run(options.files, options.seed)))


if __name__ == "__main__":
    main()
