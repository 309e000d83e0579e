"""opstable tells which ops do not give the same bits again. Its trace shows them above what optrace shows."""

import pandas as pd

from nbkit.schema import STABILITY
from nbkit.trace.trace import Trace
from nbkit.verbs.options.generated import Option
from nbkit.verbs.verb import ABOUT_PATTERNS, Recorder, Verb, nothing_in
from nbkit.views.ops_view import led_by
from nbkit.views.sections.section import Section, and_more, columns

CHECKS = {
    "run_to_run": "run again",
    "batch_invariant": "another batch",
    "thread_invariant": "other threads",
    "stride_invariant": "other strides",
}
COUNTS = columns("check, same: count, differs: count, not tried: count")
OPS = columns("op, calls: count, differ: count, checks, of largest element: number")


def stability_sections(trace: Trace, count: int) -> list[Section]:
    """Returns the counts of each check, and the ops that differ in one, from run to run first; none without rows."""
    stability = STABILITY.check(trace.frames.get("stability", STABILITY.frame()))
    if not len(stability):
        return []
    rows = [_counts(label, stability[name]) for name, label in CHECKS.items()]
    sections = [Section("Same bits", COUNTS, rows)]
    if len(ops := differing_ops(stability)):
        values = [list(row) for row in ops.head(count).itertuples(index=False)]
        sections.append(
            Section("Ops whose bits change with batch, threads or strides", OPS, values, and_more(len(ops), count))
        )
    return sections


def _counts(label: str, verdicts: pd.Series) -> list[object]:
    found = verdicts.value_counts()
    return [label, int(found.get("same", 0)), int(found.get("differs", 0)), int(verdicts.isna().sum())]


def differing_ops(stability: pd.DataFrame) -> pd.DataFrame:
    """Returns a row for each op with calls that differ: calls, how many differ, in which checks, how far."""
    differs = stability[[*CHECKS]].isin(["differs"])
    wrong = stability[differs.any(axis=1)]
    calls = stability["op"].value_counts()
    rows = []
    for op, of in wrong.groupby("op", sort=False):
        found = [label for name, label in CHECKS.items() if differs.loc[of.index, name].any()]
        rows.append((op, int(calls[op]), len(of), ", ".join(found), float(of["max_difference_fraction"].max())))
    frame = pd.DataFrame(rows, columns=["op", "calls", "differ", "checks", "fraction"])
    is_first = frame["checks"].str.startswith(CHECKS["run_to_run"])
    order = frame.assign(rank=~is_first).sort_values(["rank", "differ"], ascending=[True, False], kind="stable")
    return order.drop(columns="rank").reset_index(drop=True)


OPSTABLE = Verb(
    "opstable",
    view=led_by(stability_sections),
    recorder=Recorder(
        home="nbkit.capture.operators.stable.opstable:opstable",
        summary="run every op again, tell whether the bits are the same",
        description="Run every op of this cell again from the same inputs, forward and backward, and tell whether it "
        "gives the same bits: from run to run, in other batches, with other threads and strides.",
        notes=f"The frame `stability` has a row per call.\n\n{ABOUT_PATTERNS}",
        special={
            "reruns": Option(help="run each call again N times (default: 2)"),
            "checks": Option(help="try only these, too: batch, threads, strides (default: all)"),
            "alike": Option(help="try N calls of an op with the same shapes so (default: 2)"),
        },
        nothing=nothing_in(
            "stability",
            why="No op was run again: the filters, phases or the kind of the ops left none; see trace.meta['skipped'].",
        ),
    ),
)
