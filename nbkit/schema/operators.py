"""Defines the tables of the operator tools: what ran otherwise, and what came of it."""

from nbkit.schema.table import table

REPLACED = table(
    "replaced",
    "call that did not run as it would have, in call order",
    ("op_id", "int64", "the op"),
    ("op", "str", "as in ops"),
    ("module", "str", "as in ops"),
    ("phase", "str", "as in ops"),
    ("source", "str", "as in ops"),
    ("call", "int64", "the how many-th call of its op in the step, from 0"),
    ("ran", "str", "where or in which dtype it ran: cpu, float32, ..."),
    ("message", "str", "what a reader must know, such as a dtype that had no kernel there; null if nothing"),
)
