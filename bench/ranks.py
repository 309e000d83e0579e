"""Asks a job of many ranks what a table asks, of nbkit beside plain DuckDB on the same files.

The rows are those of a timed training step, repeated with other times, as `Trace.save` writes them: 32 files, of which
the other ranks are hard links. Each question is asked by a process of its own, interleaved: CPU seconds (user +
system), wall seconds and peak memory (RSS) of the process, imports not counted, opening the job counted; medians over
the rounds.
Run from the repository root: `python -m bench.ranks [--ranks N] [--rows N] [--rounds N] [--folder FOLDER]`. Writes
out/bench/ranks.md.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
import torch
from torch import nn

import nbkit
from bench.harness.ratios import markdown
from nbkit.schema import COLLECTIVES
from nbkit.trace.trace import Trace

OUT = Path(__file__).parents[1] / "out" / "bench"
FILES = 32
EVERY = 500  # ops per collective
GOALS = {"first table": 1.0, "top 120": 2.0, "filter": 5.0, "group by op, module": 12.0, "join by collective": 12.0}
OPS = "read_parquet('{}/rank=*/{}.parquet', hive_partitioning = true)"
JOIN = (
    "WITH last AS (SELECT seq, max(start_us) AS start_us FROM {0} GROUP BY seq) SELECT rank, sum(last.start_us - "
    "c.start_us) AS waited FROM {0} AS c JOIN last USING (seq) GROUP BY rank"
)
# What nbkit's table asks, and what somebody would ask DuckDB for the same.
PLAIN = {
    "first table": "SELECT * FROM {ops} LIMIT 120",
    "top 120": "SELECT rank, op_id, op, module, self_time_us FROM {ops} ORDER BY self_time_us DESC LIMIT 120",
    "filter": "SELECT count(*), sum(self_time_us), max(self_time_us) FROM {ops} WHERE contains(lower(op), 'mm') AND "
    "self_time_us > 20",
    "group by op, module": "SELECT op, module, count(*), sum(self_time_us) AS us FROM {ops} GROUP BY ALL ORDER BY us",
    "join by collective": JOIN.format("{collectives}"),
}
GROUP = {"by": ["op", "module"], "totals": {"self_time_us": "sum"}}
SLOWEST = [{"column": "self_time_us", "descending": True}]
FILTER = [
    {"column": "op", "op": "contains", "value": "mm"}, {"column": "self_time_us", "op": "above", "value": 20}
]  # fmt: skip
ASKED = {
    "first table": {"sort": [{"column": "op_id"}]},
    "top 120": {"sort": SLOWEST},
    "filter": {"predicates": FILTER, "sort": [{"column": "op_id"}]},
    "group by op, module": {"sort": SLOWEST, "group": GROUP},
}
ASK = """
import json, resource, sys, time
kind, folder, question = sys.argv[1:]
if kind == "nbkit":
    from nbkit.verbs.load import load
    from nbkit.views.op_table.ranks.source import RanksSource
else:
    import duckdb
def used():
    one = resource.getrusage(resource.RUSAGE_SELF)
    return one.ru_utime + one.ru_stime
cpu, wall = used(), time.perf_counter()
if kind == "nbkit":
    job, asked = load(folder), json.loads(question)
    if isinstance(asked, str):
        job.sql(asked)
    else:
        answer = RanksSource(job).answer({"kind": "rows", "query": asked})
        assert answer["kind"] == "rows" and answer["rows"], answer
else:
    con = duckdb.connect(config={"threads": 2})
    con.sql(question).to_arrow_table()
cpu, wall = used() - cpu, time.perf_counter() - wall
# Not ru_maxrss, which begins with what the process had that started this one.
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps([cpu, wall, int(peak) / 1024]))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=256)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of each rank")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="a job that is there, or where to make it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch) / "job"
        if not folder.is_dir():
            make_job(folder, options.ranks, options.rows)
        rows = [measured(folder, question, options.rounds) for question in PLAIN]
    text = f"# {options.ranks} ranks of {options.rows:,} ops\n\nMedians of {options.rounds} rounds.\n\n"
    columns = ("question", "nbkit: CPU s", "wall s", "RSS MB", "DuckDB: CPU s", "wall s", "RSS MB", "goal, wall s")
    text += markdown(columns, rows)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "ranks.md").write_text(text + "\n")
    print(text)


def measured(folder: Path, question: str, rounds: int) -> tuple[str, ...]:
    plain = PLAIN[question].format(ops=OPS.format(folder, "ops"), collectives=OPS.format(folder, "collectives"))
    own = json.dumps(ASKED.get(question, JOIN.format("collectives")))
    readings: dict[str, list[list[float]]] = {"nbkit": [], "duckdb": []}
    for number in range(rounds):
        for kind in list(readings)[:: 1 if number % 2 else -1]:
            words = [sys.executable, "-c", ASK, kind, str(folder), own if kind == "nbkit" else plain]
            done = subprocess.run(words, check=True, capture_output=True, text=True)
            readings[kind].append(json.loads(done.stdout.splitlines()[-1]))
    columns = [column for one in readings.values() for column in zip(*one, strict=True)]
    cells = [f"{median(of):.{digits}f}" for of, digits in zip(columns, (2, 2, 0) * 2, strict=True)]
    return (question, *cells, f"{GOALS[question]:g}")


def make_job(folder: Path, ranks: int, rows: int) -> None:
    """Saves FILES ranks, and links the others to their files; each says by itself which rank it is."""
    step = timed_step()
    for rank in range(ranks):
        place = folder / f"rank={rank}"
        if rank < FILES:
            long_trace(step, rank, ranks, rows).save(place)
            continue
        place.mkdir(parents=True)
        first = folder / f"rank={rank % FILES}"
        for name in ("ops.parquet", "collectives.parquet"):
            os.link(first / name, place / name)
        meta = json.loads((first / "meta.json").read_text())
        (place / "meta.json").write_text(json.dumps({**meta, "rank": rank}))


def timed_step() -> Trace:
    torch.set_num_threads(1)
    blocks = [nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.LayerNorm(64)) for _ in range(4)]
    model, x = nn.Sequential(*blocks), torch.randn(8, 64)
    optimizer = torch.optim.AdamW(model.parameters())
    with nbkit.optime() as trace:
        model(x).sum().backward()
        optimizer.step()
    return trace


def long_trace(step: Trace, rank: int, ranks: int, rows: int) -> Trace:
    """Returns the step, repeated to so many rows, with times of this rank and a collective every EVERY ops."""
    ops, count = step.ops, len(step.ops)
    at = np.arange(rows)
    repeat, random = at // count, np.random.default_rng(rank)
    frame = pd.concat([ops] * (rows // count + 1), ignore_index=True).head(rows)
    shift = pd.array(repeat * count, dtype="Int64")
    times = {
        name: (frame[name] * np.exp(random.normal(0, 0.4, rows))).round(3) for name in ("total_time_us", "self_time_us")
    }
    frame = frame.assign(
        op_id=at, step=repeat, parent_id=frame["parent_id"] + shift, forward_op_id=frame["forward_op_id"] + shift,
        start_us=frame["start_us"] + repeat * step.meta["wall_us"], **times,
    )  # fmt: skip
    calls = np.arange(rows // EVERY)
    collectives = COLLECTIVES.frame({
        "rank": np.full(len(calls), rank), "op": ["all_reduce"] * len(calls), "group": ["0"] * len(calls), "seq": calls,
        "is_p2p": np.zeros(len(calls), bool), "start_us": 1000.0 * calls + random.exponential(50, len(calls)),
    })  # fmt: skip
    meta = {**step.meta, "rank": rank, "world_size": ranks, "host": f"node{rank // 8}"}
    return Trace({"ops": frame, "collectives": collectives}, meta)


if __name__ == "__main__":
    main()
