"""Asks whether opdoctor has nothing to say about right training steps of families and ways to train that no test has.

Run from the repository root: `python bench/right_steps.py [NAME ...] [--list]`; NAME is a pattern. Each step (`right/`)
runs three times under opdoctor in a process of its own, those on ranks in two. A finding that is an error or a warning,
or a recording that ends the step counts as false, and the status is 1 then; hints are listed, some are true. Writes
out/bench/right_steps.md, with what the brief says of each.
"""

import argparse
import os
import pickle
import re
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import torch

import nbkit
from bench.doctor import forked
from bench.right import STEPS
from bench.right.registry import PROCESSES
from nbkit.findings.finding import wrong

OUT = Path(__file__).parents[1] / "out" / "bench" / "right_steps.md"
TIMES = 3
Said = dict[str, Any]


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["*"], help="steps, as patterns")
    parser.add_argument("--list", action="store_true", help="print the steps' names")
    options = parser.parse_args(words)
    names = [name for name in STEPS if any(fnmatch(name, pattern) for pattern in options.names)]
    if options.list:
        print("\n".join(names))
        return 0
    torch.set_num_threads(1)
    said = {name: of_step(name) for name in names}
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(text := "\n".join(report(said)) + "\n")
    print(text)
    return int(any(one["wrong"] for one in said.values()))


def of_step(name: str) -> Said:
    """Returns what opdoctor says of a step, on all of its ranks."""
    with tempfile.TemporaryDirectory() as folder:
        ranks = range(PROCESSES.get(name, 1))
        said = [forked(on_ranks, name, folder)] if len(ranks) > 1 else [forked(looked_at, name)]
    if isinstance(said[0], str):  # the process ended, or the function raised
        said = [{"wrong": said, "hints": [], "brief": ""}]
    one: Said = said[0]
    print(
        f"{name}: {'; '.join(one['wrong']) or 'nothing'}{''.join(f' [{hint[:60]}]' for hint in one['hints'])}",
        flush=True,
    )
    return one


def on_ranks(name: str, folder: str) -> Said:
    """Returns what opdoctor says on both ranks of a step, each a fork of this process."""
    children = []
    for rank in range(PROCESSES[name]):
        if not (child := os.fork()):
            path = Path(folder, f"{rank}.pickle")
            try:
                torch.distributed.init_process_group(
                    "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=PROCESSES[name]
                )
                path.write_bytes(pickle.dumps(looked_at(name)))
            except BaseException:
                path.write_bytes(
                    pickle.dumps({"wrong": traceback.format_exc().splitlines()[-1:], "hints": [], "brief": ""})
                )
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    said = [pickle.loads(path.read_bytes()) for path in sorted(Path(folder).glob("*.pickle"))]
    joined = {
        key: [f"rank {n}: {text}" for n, one in enumerate(said) for text in one[key]] for key in ("wrong", "hints")
    }
    return {**joined, "brief": "\n\n".join(one["brief"] for one in said)}


def looked_at(name: str) -> Said:
    """Returns what opdoctor says of some runs of a step, which is run once before."""
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    step = STEPS[name]()
    step()
    with nbkit.opdoctor() as trace:
        for _ in range(TIMES):
            step()
    bad = wrong(trace.findings)
    hints = trace.findings[~trace.findings.index.isin(bad.index)]
    return {
        "wrong": [f"{row.severity}, {row.rule}: {row.message}" for row in bad.itertuples()],
        "hints": [f"{row.rule}: {row.message}" for row in hints.itertuples()],
        "brief": trace.brief(tokens=1000),
    }


def report(said: dict[str, Said]) -> Iterator[str]:
    """Yields the table in Markdown, and what the briefs say."""
    silent = sum(not one["wrong"] for one in said.values())
    yield f"# Right steps: {silent} of {len(said)} without an error or a warning\n"
    yield "| step | errors and warnings | hints |\n|---|---|---|"
    for name, one in said.items():
        cells = (
            "; ".join(one["wrong"]) or "none",
            "; ".join(hint.partition(":")[0] for hint in one["hints"]) or "none",
        )
        yield f"| {name} | " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    for name, one in said.items():
        yield f"\n## {name}\n\n```text\n{re.sub(r'/[^ ]*/site-packages', '...', one['brief'])}\n```"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
