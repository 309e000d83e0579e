"""Plants faults in jobs of real gloo processes, and counts how often their flight recorder dumps name the fault.

    python -m bench.hangs             real jobs of 2 to 8 ranks, variants of their dumps, 1,024 ranks
    python -m bench.hangs --quick     jobs of 4 ranks, and their variants

Right is a finding that names the planted rank (where two ranks part over a call nobody can be told to be wrong: then
both, and none is blamed), the call and the line. Wrong is any error or warning that blames another rank.
"""

import argparse
import datetime
import json
import os
import pickle
import random
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d
from torch.multiprocessing import get_context

import nbkit

FAULTS = ("left out", "left out alike", "swapped", "size", "dtype", "group", "dead", "slow", "ends early", "none")
STEPS, AT = 6, 4
SECONDS = 2.5
RANKS, ENTRIES = 1024, 2000


@dataclass
class Case:
    """One folder of dumps, and what was planted."""

    folder: Path
    fault: str
    rank: int
    ranks: int
    variant: str = "as dumped"


def program(fault: str, rank: int, ranks: int, bad: int) -> None:
    """Runs the steps of one rank; in step AT the rank `bad` does otherwise."""
    own = dist.new_group([*range(ranks)], group_desc="own")
    steps = STEPS - (fault == "ends early" and rank == bad)
    for step in range(steps):
        is_bad = rank == bad and step == AT
        x, dtype = torch.ones(4 + (fault == "size" and is_bad)), torch.float64 if fault == "dtype" and is_bad else None
        if is_bad and fault in ("dead", "slow"):
            os._exit(1) if fault == "dead" else time.sleep(2 * SECONDS)
            return
        if fault == "swapped" and is_bad:
            dist.broadcast(torch.ones(3), 0)  # line: swapped
        if not (fault == "left out" and is_bad):
            dist.all_reduce(x.to(dtype), group=own if fault == "group" and is_bad else None)  # line: first
        if not (fault == "swapped" and is_bad):
            dist.broadcast(torch.ones(3), 0)  # line: second
        dist.all_reduce(torch.ones(5), group=own)  # line: own
        if not (fault == "left out alike" and is_bad):
            dist.all_reduce(torch.ones(6))  # line: third
        dist.all_reduce(torch.ones(6))  # line: fourth
        dist.all_gather([torch.ones(2) for _ in range(ranks)], torch.ones(2))


PLANTED = {"left out alike": "third", "ends early": "first"}


def line(mark: str) -> int:
    """Returns the number of the line with this mark."""
    texts = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(number for number, text in enumerate(texts, 1) if text.endswith(f"# line: {mark}"))


def run_rank(folder: str, fault: str, rank: int, ranks: int, bad: int) -> None:
    torch.set_num_threads(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    store = dist.FileStore(f"{folder}/.store", ranks)
    timeout = datetime.timedelta(seconds=SECONDS)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks, timeout=timeout)
    with suppress(RuntimeError):
        program(fault, rank, ranks, bad)
    Path(folder, f"rank_{rank}.pickle").write_bytes(c10d._dump_fr_trace(True, True, False))
    Path(folder, f"rank_{rank}.json").write_bytes(c10d._dump_fr_trace_json(True, False))
    time.sleep(0.3)
    os._exit(0)


def real_case(folder: Path, fault: str, ranks: int, bad: int) -> Case:
    """Runs a job and returns its dumps; JSON goes to a folder beside."""
    folder.mkdir(parents=True)
    context = get_context("fork")
    processes = [context.Process(target=run_rank, args=(str(folder), fault, rank, ranks, bad)) for rank in range(ranks)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        process.kill()
    beside = folder.with_name(f"{folder.name} json")
    beside.mkdir()
    for file in folder.glob("*.json"):
        file.rename(beside / file.name)
    return Case(folder, fault, bad, ranks)


def variants(case: Case, numbers: random.Random) -> Iterator[Case]:
    """Yields the case with rings that have wrapped, that begin differently, as JSON, and of many ranks."""
    yield case
    dumps = {int(file.stem[5:]): pickle.loads(file.read_bytes()) for file in case.folder.glob("rank_*.pickle")}
    if case.ranks > 2:
        yield Case(case.folder.with_name(f"{case.folder.name} json"), case.fault, case.rank, case.ranks, "JSON")
    for name in ("wrapped", "beginning differently"):
        folder = case.folder.with_name(f"{case.folder.name} {name}")
        folder.mkdir()
        for rank, dump in dumps.items():
            drop = 9 if name == "wrapped" else numbers.randrange(0, 14)
            cut = {**dump, "entries": dump["entries"][drop:]}
            (folder / f"rank_{rank}.pickle").write_bytes(pickle.dumps(cut, protocol=2))
        yield Case(folder, case.fault, case.rank, case.ranks, name)
    if case.ranks > 3:
        folder = case.folder.with_name(f"{case.folder.name} many")
        folder.mkdir()
        other = next(rank for rank in dumps if rank not in (case.rank, 0))
        for rank in range(64):
            source = rank if rank in dumps or rank == case.rank else other
            if source in dumps:
                (folder / f"rank_{rank}.pickle").write_bytes(pickle.dumps(dumps[source], protocol=2))
        yield Case(folder, case.fault, case.rank, 64, "64 ranks")


def judged(case: Case) -> tuple[bool, int, str]:
    """Returns whether the fault is named right, how many other ranks are blamed, and what was said."""
    trace = nbkit.load(case.folder)
    told = [
        (finding, json.loads(finding["evidence"]))
        for finding in trace.findings.to_dict("records")
        if finding["severity"] != "hint"
    ]
    # A rank without a dump is named as such, and blamed for nothing.
    dumped = {int(file.stem[5:]) for file in case.folder.glob("rank_*")}
    wrong = sum(bool({*found["ranks"]} & dumped - {case.rank}) for _, found in told)
    said = " | ".join(finding["message"] for finding, _ in told)
    if case.fault == "none":
        return not told, len(told), said
    place = f"hangs.py:{line(PLANTED.get(case.fault, 'first'))}"
    is_right = any(
        (found["ranks"] == [case.rank] or (case.ranks == 2 and not found["ranks"]))
        and (case.variant == "JSON" or place in finding["message"] or case.rank not in dumped)
        for finding, found in told
    )
    return is_right, wrong, said


def large(folder: Path) -> None:
    """Reads 1,024 ranks of 2,000 calls, one of which misses the last, and prints CPU seconds and memory."""
    folder.mkdir()
    real = pickle.loads((folder.parent / "left out 4" / "rank_0.pickle").read_bytes())
    entries, rounds = real["entries"], ENTRIES // len(real["entries"]) + 1
    many = []
    for turn in range(rounds):
        for entry in entries:
            seq = entry["collective_seq_id"] + turn * len(entries)
            many.append({**entry, "record_id": len(many), "collective_seq_id": seq})
    for rank in range(RANKS):
        cut = {**real, "entries": many[: ENTRIES - (rank == RANKS // 2)]}
        (folder / f"rank_{rank}.pickle").write_bytes(pickle.dumps(cut, protocol=2))
    begun = time.process_time()
    trace = nbkit.load(folder)
    seconds, peak = time.process_time() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"{RANKS:,} ranks x {ENTRIES:,} calls: {seconds:.1f} CPU s, {peak:,.0f} MB")
    print("\n".join(trace.findings["message"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="nbkit-hangs-"))
    numbers, table = random.Random(0), {}
    try:
        for ranks in (4,) if options.quick else (2, 3, 4, 8):
            for fault in FAULTS:
                case = real_case(root / f"{fault} {ranks}", fault, ranks, numbers.randrange(1, ranks))
                for one in variants(case, numbers):
                    is_right, wrong, said = judged(one)
                    right, count, blamed = table.get(fault, (0, 0, 0))
                    table[fault] = right + is_right, count + 1, blamed + wrong
                    if not is_right or wrong:
                        print(f"  {fault}, {one.ranks} ranks, rank {one.rank}, {one.variant}: {said or 'nothing said'}")
        print(f"{'planted':<16}{'dumps':>6}{'right':>6}{'wrong names':>12}")
        for fault, (right, count, blamed) in table.items():
            print(f"{fault:<16}{count:>6}{right:>6}{blamed:>12}")
        right, count, blamed = (sum(row[at] for row in table.values()) for at in range(3))
        print(f"{'all':<16}{count:>6}{right:>6}{blamed:>12}   ({right / count:.0%})")
        if not options.quick:
            large(root / "large")
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
