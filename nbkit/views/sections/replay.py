"""The tables of captured calls, and of what came of running them again."""

from nbkit.schema import CAPTURES, REPLAYED, TIMINGS
from nbkit.trace.trace import Trace
from nbkit.views.sections.diff import diff_sections, verdict_sections
from nbkit.views.sections.section import Column, Section, columns

SAVED = (*columns("calls, different ops", "count"), Column("size", "bytes"), Column("folder"))
SPEED = (
    Column("op"), *columns("median, IQR", "time"), Column("repeats", "count"),
    *columns("GFLOP/s, GB/s", "number"),
)  # fmt: skip


def capture_sections(trace: Trace, count: int) -> list[Section]:
    """Returns what was saved, and where."""
    captures = CAPTURES.check(trace.frames.get("captures", CAPTURES.frame()))
    size, folder = trace.meta.get("captured_bytes"), trace.meta.get("folder")
    row = (len(captures), captures["op"].nunique(), size, folder)
    return [Section("Captured calls", SAVED, [row], "%opreplay FOLDER runs them again")]


def replay_outcome(trace: Trace, count: int) -> list[Section]:
    """Returns how many calls did the same to the bit, and the verdicts on their results."""
    meta = trace.meta
    kinds = columns("captured calls, run again, same bits", "count")
    row = [meta.get(name) for name in ("captured_calls", "replayed_calls", "identical_calls")]
    return [Section("Replay", kinds, [row]), *verdict_sections(trace, count)]


def replay_sections(trace: Trace, count: int) -> list[Section]:
    """Returns the outcome, the worst differences where there are any, and the slowest calls."""
    outcome, verdicts = replay_outcome(trace, count), diff_sections(trace, count)
    worst = verdicts[-1:] if trace.meta.get("mismatches") else []
    return [*outcome, *worst, *_speed(trace, count)]


def _speed(trace: Trace, count: int) -> list[Section]:
    timings = TIMINGS.check(trace.frames.get("timings", TIMINGS.frame()))
    replayed = REPLAYED.check(trace.frames.get("replayed", REPLAYED.frame()))
    slowest = timings.merge(replayed, on="op_id").nlargest(count, "median_us")
    if not len(slowest):
        return []
    rates = slowest[["flops_per_s", "bytes_per_s"]] / 1e9
    known = rates.astype(object).where(rates.notna(), None)
    rows = zip(
        slowest["op"], slowest["median_us"], slowest["iqr_us"], slowest["repeats"], *known.to_numpy().T, strict=True
    )
    return [Section("Slowest calls", SPEED, list(rows))]
