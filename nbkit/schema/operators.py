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

TRIALS = table(
    "trials",
    "trial of a bisection, in the order in which they ran",
    ("trial", "int64", "number of the trial, from 0; the first one replaced nothing"),
    ("stage", "str", "nothing, all, search, confirm (the result once more); of a compiler bisection its stage"),
    ("calls", "int64", "how many calls were replaced"),
    ("chosen", "str", "which, as JSON: by op the numbers of its calls from 0, such as 0,3:8"),
    ("passed", "bool", "whether the check was content"),
    ("time_us", "float64", "what the trial took"),
    ("message", "str", "what the step raised, or the check; null if nothing"),
)

STABILITY = table(
    "stability",
    "call that ran again from the same inputs, in call order",
    ("op_id", "int64", "the op"),
    ("op", "str", "as in ops"),
    ("module", "str", "as in ops"),
    ("phase", "str", "as in ops"),
    ("source", "str", "as in ops"),
    ("call", "int64", "the how many-th call of its op in the step, from 0"),
    ("run_to_run", "str", "same if each run gave the same bits, else differs"),
    ("batch_invariant", "str", "same if a row has the same bits in another batch, else differs; null if not tried"),
    ("thread_invariant", "str", "same if another number of threads gives the same bits, else differs; null likewise"),
    ("stride_invariant", "str", "same if inputs with other strides give the same bits, else differs; null likewise"),
    (
        "max_ulp",
        "float64",
        "largest distance of two results that are to be equal, in values of the dtype; 0 if all are",
    ),
    ("message", "str", "what differs, and whether torch documents the op as nondeterministic; null if nothing"),
)
