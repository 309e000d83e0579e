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
CASTS = table(
    "casts",
    "result of a call that also ran in another dtype, in call order",
    ("op_id", "int64", "the op"),
    ("op", "str", "as in ops"),
    ("module", "str", "as in ops"),
    ("phase", "str", "as in ops"),
    ("source", "str", "as in ops"),
    ("role", "str", "as in diffs"),
    ("position", "int64", "as in diffs"),
    ("dtype", "str", "the dtype that it ran in"),
    (
        "scaling",
        "str",
        "for float8: none, tensor (one scale for each input), block (one for each 128 elements of the last dim); "
        "null for other dtypes",
    ),
    ("error", "float64", "|result in that dtype - float64 reference| over |reference|, 2-norms"),
    ("own_error", "float64", "the same of the result in the step's own dtype"),
    ("overflow_fraction", "float64", "share of the elements of inputs and result that are too large for the dtype"),
    ("underflow_fraction", "float64", "share of them that are not 0 and become 0"),
    ("collapsed_fraction", "float64", "share of their different values that become equal to another one"),
    (
        "loss_change",
        "float64",
        "by how much what backward() was called on changes to first order if this call alone runs in that dtype: the "
        "sum of error times gradient; null where no gradient came",
    ),
    ("message", "str", "why there is no result in that dtype; null if there is one"),
)
CAPTURES = table(
    "captures",
    "call whose values are in a folder, in call order",
    ("op_id", "int64", "the op; -1 if the filters of the trace left it out"),
    ("op", "str", "as in ops"),
    ("module", "str", "as in ops"),
    ("phase", "str", "as in ops"),
    ("source", "str", "as in ops"),
    ("call", "int64", "the how many-th call of its op in the step, from 0"),
    ("record", "int64", "its number in the folder, from 0"),
    ("raised", "str", "what it raised in the step; null if it returned"),
)
REPLAYED = table(
    "replayed",
    "captured call that ran again, in the order of the capture",
    ("op_id", "int64", "its row in ops"),
    ("op", "str", "as in ops"),
    ("module", "str", "as in ops, where it was captured"),
    ("phase", "str", "as in ops, where it was captured"),
    ("source", "str", "as in ops, where it was captured"),
    ("call", "int64", "the how many-th call of its op in the captured step, from 0"),
    ("record", "int64", "its number in the folder, from 0"),
    ("is_same", "bool", "whether all that it returned and wrote has the captured bits, shapes, strides and aliases"),
    ("moved_bytes", "int64", "bytes of the tensors that it reads, returns and writes, each storage's part once"),
    ("flops_per_s", "float64", "floating-point operations per second, by the median; null if they are not known"),
    ("bytes_per_s", "float64", "moved_bytes per second, by the median"),
)
RUNS = table(
    "runs",
    "run of a call that was replayed, in their order",
    ("op_id", "int64", "the call, as in ops"),
    ("run", "int64", "number of the run of this call, from 0; the first one also loads and allocates"),
    ("is_warmup", "bool", "whether timings leaves it out"),
    ("time_us", "float64", "from call to return, on a device until it is done"),
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
    (
        "max_difference_fraction",
        "float64",
        "largest difference of two such results over the largest element; 0 if all are equal, null if not known",
    ),
    ("beyond_rounding", "str", "the part of `message` about results that rounding does not keep apart; null if none"),
    ("documented", "str", "what torch documents of the op's bits: nondeterministic, maybe on CUDA; null if nothing"),
    ("message", "str", "what differs, and what torch documents; null if nothing"),
)
