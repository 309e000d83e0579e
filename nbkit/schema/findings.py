"""Defines the table of findings: what is wrong in a step, or what can be won, of all verbs."""

from nbkit.schema.table import table

SEVERITIES = ("error", "warning", "hint")
# As many op_ids stand in the evidence of a finding; `count` counts all.
MOST_OPS = 100
ANOTHER_RUN = -1

FINDINGS = table(
    "findings",
    "finding, equal ones of the same line and module in one row, in the order of their first ops",
    ("rule", "str", "what is wrong, in one word or two; docs/findings.md lists all rules"),
    ("severity", "str", "error: certainly wrong; warning: very likely not meant; hint: worth a look"),
    ("message", "str", "what is so, in a sentence; of several calls it tells the first"),
    (
        "message_values",
        "str",
        "JSON list of [start, end]: the elements of tensors in `message`, which a report leaves out; null if none",
    ),
    ("op_id", "Int64", "the first op of the finding; null where it is about no op"),
    ("op", "str", "as in ops"),
    ("parameter", "str", "path of the parameter or buffer that it is about"),
    ("module", "str", "as in ops"),
    ("phase", "str", "as in ops"),
    ("step", "int64", "as in ops; -1 of another run: a step of a script that was not the same when it was run again"),
    ("source", "str", "as in ops"),
    ("source_text", "str", "the text of that line"),
    ("own_source", "str", "as in ops, of the first op"),
    ("count", "int64", "how many calls, or parameters, it stands for"),
    ("evidence", "str", f"JSON object: op_ids (the first {MOST_OPS}) and what the rule measured at the first of them"),
    ("effect_us", "float64", "time of the step that it takes"),
    ("effect_bytes", "Int64", "memory that it takes"),
    ("advice", "str", "what to do about it"),
)
