"""The page of the rules: when each verb says what is wrong with a step, from the rules' own docstrings."""

from docs.generator.markdown import code, page, table
from nbkit.findings.finding import RULES, rules_in

HEAD = """
What a verb says is wrong with a step stands in one frame, [`trace.findings`](frames/recordings/findings.md), whichever
verb recorded it. Equal findings are one row: the same rule at the same op, line and module; `count` says how many calls
it stands for, and `evidence` holds their op_ids.

```python
trace.findings[["severity", "rule", "message", "source", "source_text", "advice"]]
```

| severity | what it means |
| --- | --- |
| error | certainly wrong |
| warning | very likely not meant |
| hint | worth a look; it is no fault, and `--fail-on-findings` lets it pass |
"""
NOTES = """
Findings of `optime` have `effect_us`: the time of their rows in this run, forward and backward, from 1 ms on. It is
what they take, not what is certain to be saved, and two of them may take the same time. With `savings=True` the message
has what an alternative was measured to save. They are hints, and `python -m nbkit diff` leaves them out.

`parameter_casts`, `wide_products`, `layout_conversions` and `unused_graph` have `effect_bytes`: the copies that are
made, half of what the products read and give, what both conversions write, and the most that the graphs can hold.

In a backward pass whose gradients a GradScaler looks at, `nan`, `inf` and `overflow` are hints: it skips such a step
and lowers its scale.
"""


def findings_page() -> str:
    """Returns the page as Markdown; by verb, in the order in which a verb applies its rules."""
    for package in ("nbkit.findings", "nbkit.readers", "nbkit.verbs"):
        rules_in(package)
    known = sorted(RULES, key=lambda rule: (rule.verbs[0], rule.find.__module__ if rule.find else "", rule.rank))
    names = [[", ".join(map(code, rule.names)), ", ".join(rule.severities), ", ".join(rule.verbs)] for rule in known]
    rows = [[*named, rule.condition.rstrip(".")] for named, rule in zip(names, known, strict=True)]
    return page("# Findings", HEAD, table(["rule", "severity", "verb", "condition"], rows), NOTES)
