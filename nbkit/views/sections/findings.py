"""The table of findings of any verb: how severe, what is so, at which line, and what to do."""

from nbkit.schema import FINDINGS
from nbkit.trace.trace import Trace
from nbkit.views.sections.section import Column, Section, and_more

COLUMNS = (
    Column("severity"),
    Column("rule"),
    Column("what is so", "sentence"),
    Column("source"),
    Column("line", "sentence"),
    Column("what to do", "sentence"),
)


def findings_sections(trace: Trace, count: int, nothing: str) -> list[Section]:
    """Returns the findings in their order; the sentence `nothing` where there is none."""
    findings = FINDINGS.check(trace.frames.get("findings", FINDINGS.frame()))
    if not len(findings):
        return [Section("Findings", (Column("", "sentence"),), [[nothing]])]
    few = findings.head(count)
    shown = few.assign(rule=few["rule"].str.replace("_", " "))
    names = ["severity", "rule", "message", "source", "source_text", "advice"]
    absent = {name for name in ("source", "source_text") if few[name].isna().all()}
    rows = shown[[name for name in names if name not in absent]].to_numpy(object).tolist()
    labels = [column for column, name in zip(COLUMNS, names, strict=True) if name not in absent]
    return [Section("Findings", labels, rows, and_more(len(findings), count))]
