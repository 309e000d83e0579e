"""Finds what the ranks of a job show together, of what DuckDB sums of their files."""

import pandas as pd

from nbkit import units
from nbkit.findings.ranks.facts import CALL_TIMES, CALL_TIMES_SQL, JobFacts
from nbkit.findings.ranks.rules import rank_findings
from nbkit.progress import Progress
from nbkit.schema import COLLECTIVES, MODULES, PARAMETERS, Table
from nbkit.trace.job.job import Job

# So many ops are looked at, the first of each rank: what is slow in each step is slow in the first ones.
MOST_OPS = 20_000_000


def with_rank_findings(job: Job) -> Job:
    """Returns the job with what its ranks show together, in its frame findings; as it is where one rank alone has ops.

    Of a large job the first ops of each rank are looked at, and a note says so. Those of each rank by itself are the
    view findings of `job.sql()`.
    """
    if len(job.first_rows) < 2 or "modules" not in job.files:
        return job
    first = MOST_OPS // len(job.first_rows)
    is_part = any(one.rows.get("ops", 0) > first for one in job.known)
    with Progress(lambda: f"comparing {units.counted(len(job.first_rows), 'rank')}"):
        begun = f" AND op_id < {first}" if is_part else ""
        asked = {"ops": CALL_TIMES_SQL.replace("GROUP BY", f"{begun} GROUP BY"), "modules": "SELECT * FROM modules"}
        asked["collectives"] = f"SELECT * FROM collectives WHERE (op_id IS NULL OR op_id < {first})"
        asked["parameters"] = "SELECT * FROM parameters"
        tables = {"ops": CALL_TIMES, "modules": MODULES, "collectives": COLLECTIVES, "parameters": PARAMETERS}
        found = {name: _frame(job, table, name, asked[name]) for name, table in tables.items()}
        facts = JobFacts(job.ranks, found["ops"], found["modules"], found["collectives"], found["parameters"])
        findings = rank_findings(facts)
    part = f"Who is slow and who waits was looked for in the first {units.counted(first, 'op')} of each rank."
    notes = [*job.meta["notes"], *([part] if is_part else [])]
    return job.copy_with({**job.frames, "findings": findings}, {**job.meta, "notes": notes})


def _frame(job: Job, table: Table, name: str, query: str) -> pd.DataFrame:
    """Returns what a query gives, with the dtypes of the table and the column `rank`; no row without such a view."""
    dtypes = {column.name: column.pandas_dtype for column in table.columns}
    if name not in job.files:
        return table.frame([]).assign(rank=pd.Series(dtype="int64"))
    return job.sql(query).astype(dtypes)
