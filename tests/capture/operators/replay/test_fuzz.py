"""A damaged folder may cost calls; it never makes nbkit run or import anything, and never raises but an NbkitError."""

import os
import random
import shutil
import subprocess
import sys
from ast import literal_eval
from pathlib import Path

import pytest
import torch
from torch import nn

import nbkit
from nbkit.trace.calls.layout import CALLS, line_of, record_of
from tests.capture.operators.folders import captured
from tests.processes import PYTHON

ROOT = Path(__file__).parents[4]
# What Python tells its audit hooks of when it unpickles, imports, compiles or starts something.
FORBIDDEN = ("pickle.find_class", "import", "compile", "os.system", "os.exec", "subprocess.Popen", "ctypes.dlopen")


def step() -> None:
    model, x = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Dropout(0.5)), torch.randn(2, 3)
    model(x).sum().backward()
    torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3,), check_invariants=True).coalesce().to_dense()
    torch.randn(2, dtype=torch.complex64).conj().sum().item()


def damaged(folder: Path, source: random.Random) -> str:
    """Flips bits of a file, cuts it, takes it away, or doubles a part of it; returns what was done."""
    file = source.choice(sorted(folder.iterdir()))
    data = bytearray(file.read_bytes())
    kind = source.choice(["flip", "flip", "flip", "cut", "gone", "double"])
    if kind == "gone":
        file.unlink()
        return f"{file.name} gone"
    if kind == "flip":
        for _ in range(source.choice([1, 3, 30])):
            data[source.randrange(len(data))] ^= 1 << source.randrange(8)
    elif kind == "cut":
        del data[source.randrange(len(data)) :]
    else:
        start = source.randrange(len(data))
        data[start:start] = data[start : start + source.randrange(1, 200)]
    file.write_bytes(data)
    return f"{file.name} {kind}"


def changed_record(folder: Path, source: random.Random) -> str:
    """Changes one value somewhere in one record, whose checksum then fits."""
    lines = (folder / CALLS).read_bytes().splitlines(keepends=True)
    number = source.randrange(len(lines))
    record = record_of(lines[number])
    place = record
    while True:
        key = source.choice(list(place) if isinstance(place, dict) else range(len(place)))
        if not isinstance(place[key], dict | list) or not place[key] or source.random() < 0.2:
            break
        place = place[key]
    place[key] = source.choice([None, -1, 2**70, "aten.relu.default", "../x", [], {}, {"tensor": 0}, 1.5, True, [[[]]]])
    lines[number] = line_of(record)
    (folder / CALLS).write_bytes(b"".join(lines))
    return f"record {number}: {key!r} = {place[key]!r}"


def fuzzed(calls: Path, place: Path, rounds: int, seed: int) -> dict[str, int]:
    source, ends = random.Random(seed), dict.fromkeys(("replayed", "refused", "skipped"), 0)
    for number in range(rounds):
        folder = shutil.copytree(calls, place / str(number))
        what = source.choice([damaged, damaged, changed_record])(folder, source)
        try:
            trace = nbkit.opreplay(folder)
        except nbkit.NbkitError:
            ends["refused"] += 1
        except BaseException as error:
            raise AssertionError(f"{what} with seed {seed}, round {number}: {type(error).__name__}: {error}") from error
        else:
            meta = trace.meta
            left = sum(meta["skipped"].values())
            assert meta["replayed_calls"] + left == meta["captured_calls"], what
            assert set(trace.diffs["op_id"]) == set(range(meta["replayed_calls"])), what
            ends["replayed"] += meta["replayed_calls"]
            ends["skipped"] += left
        shutil.rmtree(folder)
    return ends


def main(calls: str, place: str, rounds: str, seed: str) -> None:
    nbkit.opreplay(calls)  # imports what it needs
    seen: list[str] = []
    is_on = True

    def audit(event: str, args: tuple[object, ...]) -> None:
        if is_on and event in FORBIDDEN:
            seen.append(f"{event} {args!r}"[:300])

    sys.addaudithook(audit)
    ends = fuzzed(Path(calls), Path(place), int(rounds), int(seed))
    is_on = False
    print(ends, *seen, sep="\n")


# Two hundred more of the same take a minute.
@pytest.mark.parametrize(("seed", "rounds"), [(0, 40), pytest.param(1, 200, marks=pytest.mark.full)])
def test_damage_costs_calls_and_nothing_else(tmp_path, seed, rounds):
    torch.manual_seed(0)
    captured(tmp_path / "calls", step)
    (tmp_path / "fuzzed").mkdir()
    code = f"from {__name__} import main; import sys; main(*sys.argv[1:])"
    words = [str(tmp_path / "calls"), str(tmp_path / "fuzzed"), str(rounds), str(seed)]
    done = subprocess.run(
        [*PYTHON, "-c", code, *words], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 0, done.stderr[-3000:]
    ends, *seen = done.stdout.splitlines()
    assert seen == []
    counts = literal_eval(ends)
    assert counts["replayed"] > 10 * rounds and counts["skipped"] > rounds and counts["refused"] > 0
