"""Finds what the ranks of a job show together, of what DuckDB sums of their files."""

import json
from typing import Any

import pandas as pd

from nbkit import units
from nbkit.findings.finding import PLACE, WRONG
from nbkit.findings.ranks.facts import CALL_TIMES, JobFacts, call_times_query
from nbkit.findings.ranks.rules import rank_findings
from nbkit.progress import Progress
from nbkit.schema import COLLECTIVES, FINDINGS, MODULES, PARAMETERS, Table
from nbkit.trace.job.job import Job
from nbkit.trace.job.ranks import named

# So many ops are looked at, the first of each rank: what is slow in each step is slow in the first ones.
MOST_OPS = 20_000_000
MOST_FINDINGS = 10_000  # of all ranks


def with_rank_findings(job: Job) -> Job:
    """Returns the job with what its ranks show together, and the errors and warnings of each, in its frame findings.

    Of a large job the first ops of each rank are compared, and a note says so. The findings of each rank as they are
    stand in the view findings of `job.sql()`.
    """
    own, hints = _of_each(job)
    if len(job.first_rows) < 2 or "modules" not in job.files:
        return job if not len(own) and not hints else _with(job, own, hints)
    first = MOST_OPS // len(job.first_rows)
    is_part = any(one.rows.get("ops", 0) > first for one in job.known)
    with Progress(lambda: f"comparing {units.counted(len(job.first_rows), 'rank')}"):
        asked = {"ops": call_times_query(first if is_part else None), "modules": "SELECT * FROM modules"}
        asked["collectives"] = f"SELECT * FROM collectives WHERE (op_id IS NULL OR op_id < {first})"
        asked["parameters"] = "SELECT * FROM parameters"
        tables = {"ops": CALL_TIMES, "modules": MODULES, "collectives": COLLECTIVES, "parameters": PARAMETERS}
        found = {name: _frame(job, table, name, asked[name]) for name, table in tables.items()}
        facts = JobFacts(job.ranks, found["ops"], found["modules"], found["collectives"], found["parameters"])
        findings = FINDINGS.check(pd.concat([own, rank_findings(facts)], ignore_index=True))
    part = f"Who is slow and who waits was looked for in the first {units.counted(first, 'op')} of each rank."
    return _with(job, findings, [*([part] if is_part else []), *hints])


def _with(job: Job, findings: pd.DataFrame, notes: list[str]) -> Job:
    meta = {**job.meta, "notes": [*job.meta["notes"], *notes]}
    return job.copy_with({**job.frames, "findings": findings}, meta)


def _of_each(job: Job) -> tuple[pd.DataFrame, list[str]]:
    """Returns the errors and warnings of single ranks, those of one place in a row, and a note on how many hints."""
    if "findings" not in job.files:
        return FINDINGS.frame([]), []
    wrong = ", ".join(f"'{severity}'" for severity in WRONG)
    found = job.sql(f"SELECT * FROM findings WHERE severity IN ({wrong}) ORDER BY rank LIMIT {MOST_FINDINGS}")
    hints = int(job.sql(f"SELECT count(*) AS n FROM findings WHERE severity NOT IN ({wrong})")["n"].iloc[0])
    rows: list[dict[str, Any]] = []
    for _, alike in found.groupby(["rule", *PLACE, "parameter"], dropna=False, sort=False):
        ranks = [*map(int, alike["rank"].unique())]
        first = {str(name): None if pd.isna(value) else value for name, value in alike.iloc[0].drop("rank").items()}
        whose = f"in all {len(ranks)} ranks" if len(ranks) == len(job.known) else f"in {named(ranks)}"
        message = f"{whose}: {first['message']}"
        evidence = json.dumps({**json.loads(str(first["evidence"])), "ranks": ranks})
        rows.append({**first, "message": message, "message_values": None, "op_id": None, "evidence": evidence})
    said = "of single ranks are not among these findings: trace.sql('SELECT * FROM findings') has them"
    return FINDINGS.frame(rows), [f"{units.counted(hints, 'hint')} {said}."] if hints else []


def _frame(job: Job, table: Table, name: str, query: str) -> pd.DataFrame:
    """Returns what a query gives, with the dtypes of the table and the column `rank`; no row without such a view."""
    dtypes = {column.name: column.pandas_dtype for column in table.columns}
    if name not in job.files:
        return table.frame([]).assign(rank=pd.Series(dtype="int64"))
    return job.sql(query).astype(dtypes)
