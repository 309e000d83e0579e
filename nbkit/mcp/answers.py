"""Answers to the calls of tools: texts, and JSON of bounded size."""

import json
import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from nbkit import units
from nbkit.analysis.query.matches import Query
from nbkit.analysis.query.sql import kinds_of, select
from nbkit.errors import OptionError
from nbkit.mcp.folder import Folder
from nbkit.mcp.query import checked_query, column_meanings, fitting_rows
from nbkit.schema import DIFFS, FINDINGS, TENSORS
from nbkit.trace.captured_calls import captured_call
from nbkit.trace.checks import checked_op_id, checked_trace, frame_of
from nbkit.trace.job.job import Job
from nbkit.trace.trace import Trace
from nbkit.verbs.diff import difference_of, difference_text
from nbkit.views.brief.entry import ranked
from nbkit.views.summary.facts import facts

# Characters of an answer, of a text in a row, and rows beside an op.
MOST_CHARACTERS, MOST_TEXT, MOST_BESIDE = 80_000, 2_000, 50
# Of meta, what says how a trace was made.
MADE = (
    "verb",
    "name",
    "created",
    "versions",
    "devices",
    "complete",
    "error",
    "wall_us",
    "recorder",
    "skipped",
    "notes",
)


def load_answer(folder: Folder, path: str) -> str:
    """Says what a trace is: how it was made, its frames, its brief."""
    trace = folder.trace(path)
    frames = {name: {"rows": len(frame), "columns": [*map(str, frame)]} for name, frame in trace.frames.items()}
    if isinstance(trace, Job):
        frames |= {name: {"rows": count, "columns": [*kinds_of(name)]} for name, count in trace.counts.items()}
    made = {name: trace.meta[name] for name in MADE if trace.meta.get(name) not in (None, [], {})}
    captured = sorted(trace.captured)[:MOST_BESIDE]
    known = {"path": path, "title": facts(trace).title, "made": made, "frames": frames, "captured_op_ids": captured}
    return _json({**known, "brief": trace.brief()})


def brief_answer(folder: Folder, path: str, tokens: int) -> str:
    """Returns the brief of a trace."""
    return folder.trace(path).brief(tokens)


def findings_answer(folder: Folder, path: str, severity: str | None, rule: str | None, limit: int, offset: int) -> str:
    """Returns the findings, the worst first, with all that their rows hold."""
    findings = ranked(FINDINGS.check(folder.trace(path).frames.get("findings", FINDINGS.frame())))
    for column, wanted in (("severity", severity), ("rule", rule)):
        if wanted is not None:
            findings = findings[findings[column] == wanted]
    rows = _records(findings.iloc[offset : offset + limit].drop(columns="message_values"))
    for row in rows:
        row["evidence"] = _parsed(row.get("evidence"))
    return _fitting({"matched": len(findings), "offset": offset}, rows)


def query_answer(folder: Folder, path: str, frame: str, **asked: Any) -> str:
    """Returns rows of a frame as lists, in the order of `columns`; without rows asked for, what the columns mean."""
    trace = folder.trace(path)
    if isinstance(trace, Job) and frame != "ranks":
        return _job_query_answer(trace, frame, **asked)
    table = frame_of(trace, frame)
    found = fitting_rows(table, asked["where"], asked["sort"])
    names = asked["columns"] or [*map(str, table)]
    if unknown := [name for name in names if name not in table]:
        raise OptionError(
            f"There is no column {unknown[0]!r}; the columns of {frame} are {', '.join(map(str, table))}."
        )
    known = {"frame": frame, "matched": len(found), "offset": asked["offset"]}
    if not asked["limit"]:
        meanings = column_meanings(frame, table)
        return _json({**known, "columns": {name: meanings[name] for name in names}})
    rows = found[names].iloc[asked["offset"] : asked["offset"] + asked["limit"]]
    return _fitting({**known, "columns": names}, [[*row.values()] for row in _records(rows, is_whole=True)])


def _job_query_answer(job: Job, frame: str, **asked: Any) -> str:
    """Returns rows of a frame of all ranks, which the files are asked for."""
    kinds = kinds_of(frame) if frame in job.files else {}
    query = checked_query(asked["where"], asked["sort"], kinds) if kinds else Query()
    names = asked["columns"] or [*kinds]
    text, values = select(job, frame, query.predicates, query.sort, names)
    matched = job.sql(f"SELECT count(*) AS matched FROM ({select(job, frame, query.predicates, [])[0]})", values)
    known = {"frame": frame, "matched": int(matched["matched"].iloc[0]), "offset": asked["offset"]}
    if not asked["limit"]:
        meanings = column_meanings(frame, pd.DataFrame(columns=names))
        return _json({**known, "columns": {**meanings, "rank": "the rank whose row it is"}})
    rows = job.sql(f"{text} LIMIT {asked['limit']} OFFSET {asked['offset']}", values)
    return _fitting({**known, "columns": names}, [[*row.values()] for row in _records(rows, is_whole=True)])


def op_answer(folder: Folder, path: str, op_id: int) -> str:
    """Returns one op: its row, tensors, line, findings, differences and the ops that it called."""
    trace = checked_trace(folder.trace(path))
    checked_op_id(trace, op_id)
    row = _records(trace.ops.iloc[[op_id]])[0]
    row["arguments"] = _parsed(row.get("arguments"))
    tensors = _beside(trace, "tensors", TENSORS.frame(), "op_id", op_id)
    lines = trace.frames.get("lines")
    text = None if lines is None else lines.loc[lines["source"] == row.get("source"), "text"].dropna().head(1).tolist()
    answer = {
        "op": row,
        "line": text[0] if text else None,
        "inputs": _records(tensors[tensors["role"] != "output"].head(MOST_BESIDE)),
        "outputs": _records(tensors[tensors["role"] == "output"].head(MOST_BESIDE)),
        "calls": _records(trace.ops.loc[trace.ops["parent_id"] == op_id, ["op_id", "op"]].head(MOST_BESIDE)),
        "findings": _records(_beside(trace, "findings", FINDINGS.frame(), "op_id", op_id)),
        "differences": _records(_beside(trace, "diffs", DIFFS.frame(), "op_id", op_id)),
        "has_script": op_id in trace.captured,
    }
    return _bounded(_json({name: value for name, value in answer.items() if value not in (None, [])}))


def diff_answer(folder: Folder, left: str, right: str, by: str, limit: int) -> str:
    """Returns what differs between two traces, as text."""
    traces = folder.trace(left), folder.trace(right)
    difference = difference_of(*traces, limit, by=by)
    return _bounded(difference_text(difference, (left, traces[0]), (right, traces[1])))


def script_answer(folder: Folder, path: str, op_id: int) -> str:
    """Returns the script of a captured call. Raises OptionError if its inputs do not fit into it."""
    from nbkit.capture.calls.script import EMBEDDED_BYTES, script_of  # torch, which the other tools do without

    trace = folder.trace(path)
    size = sum(len(tensor.data) for tensor in captured_call(trace, op_id).tensors)
    if size > EMBEDDED_BYTES:
        raise OptionError(
            f"The inputs of op {op_id} take {units.data_size(size)}, too much for a script without a file beside it; "
            f"nbkit.script_of(nbkit.load(path), {op_id}) writes both."
        )
    return script_of(trace, op_id)


def _beside(trace: Trace, name: str, empty: pd.DataFrame, column: str, value: int) -> pd.DataFrame:
    frame = trace.frames.get(name, empty)
    return frame[(frame[column] == value).fillna(False).astype(bool)].head(2 * MOST_BESIDE)


def _records(frame: pd.DataFrame, *, is_whole: bool = False) -> list[dict[str, Any]]:
    """Returns rows as JSON data; without what is null, unless they are wanted whole."""
    rows = [{str(name): _plain(value) for name, value in row.items()} for row in frame.to_dict("records")]
    return rows if is_whole else [{name: value for name, value in row.items() if value is not None} for row in rows]


def _plain(value: Any) -> Any:
    """Returns a cell as JSON has it: what is missing as null, infinities as texts, long texts cut."""
    value = value.item() if hasattr(value, "item") else value
    if units.is_null(value):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, str) and len(value) > MOST_TEXT:
        return f"{value[: MOST_TEXT - 1]}…"
    return value


def _parsed(text: Any) -> Any:
    """Returns the data of a JSON text; the text itself where it was cut or is no JSON."""
    try:
        return json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return text


def _fitting(known: dict[str, Any], rows: Sequence[Any]) -> str:
    """Returns JSON with as many of the rows as an answer holds; those that do not fit are counted."""
    room, kept = MOST_CHARACTERS - len(_json(known)) - 100, 0
    for row in rows:
        room -= len(_json(row)) + 2
        if room < 0:
            break
        kept += 1
    left_out = {"left_out_for_size": len(rows) - kept} if kept < len(rows) else {}
    return _json({**known, **left_out, "rows": rows[:kept]})


def _bounded(text: str) -> str:
    if len(text) <= MOST_CHARACTERS:
        return text
    return f"{text[:MOST_CHARACTERS]}\n… {len(text) - MOST_CHARACTERS:,} further characters are left out."


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
