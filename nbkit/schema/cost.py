"""Defines the tables of a step's cost before it runs: of its ops, its modules, its memory."""

from nbkit.schema.table import table

COSTS = table(
    "costs",
    "aten op, in call order",
    ("op_id", "int64", "the op"),
    ("op", "str", "as in ops"),
    ("model", "str", "as in ops"),
    ("module", "str", "as in ops"),
    ("phase", "str", "as in ops"),
    ("dtype", "str", "dtype of its largest floating tensor, in which it is taken to compute; null if it has none"),
    ("device", "str", "as in ops"),
    (
        "flops",
        "Int64",
        "2 x multiply-adds of matrix products, convolutions and attention; 0 for ops that hold none, such as "
        "elementwise ops and norms; null for ops without a rule",
    ),
    ("read_bytes", "int64", "bytes of its inputs, each region of memory once; 0 for a view"),
    ("written_bytes", "int64", "bytes of its results and of what it writes in place"),
    (
        "intensity",
        "float64",
        "arithmetic intensity: flops over bytes read and written; null where it moves none, or without a rule",
    ),
)
SAVED = table(
    "saved",
    "tensor saved for the backward pass, in the order of saving",
    ("saver_op_id", "Int64", "the op whose gradient needs it; null if outside the recorded ops"),
    ("saver_module", "str", "module of that op"),
    ("producer_op_id", "Int64", "the op that made its memory; null for what was there before"),
    ("producer_op", "str", "name of that op"),
    ("producer_module", "str", "module of that op"),
    ("allocation_id", "int64", "its memory, in `storages`"),
    ("dtype", "str", "torch dtype without prefix"),
    ("shape", "str", "JSON list of sizes"),
    ("view_bytes", "int64", "bytes of the tensor"),
    ("storage_bytes", "int64", "bytes of the memory that it keeps alive"),
    (
        "new_bytes",
        "int64",
        "storage_bytes where this memory is saved for the first time and is no parameter or buffer, else 0: their sum "
        "is what is saved",
    ),
    ("is_parameter", "bool", "whether it is a parameter or buffer, which stays alive anyway"),
)
STORAGES = table(
    "storages",
    "memory of tensors, shared by views, in the order of allocation",
    ("allocation_id", "int64", "this memory, dense from 0; `memory` has its allocation and release"),
    (
        "kind",
        "str",
        "parameter, buffer, input (another tensor from outside), gradient (of a parameter), optimizer state, "
        "activation (saved for the backward pass), temporary",
    ),
    ("size_bytes", "int64", "its size"),
    ("device", "str", "device, with its index"),
    ("op_id", "Int64", "the op that made it; null for what was there before"),
    ("op", "str", "name of that op"),
    ("module", "str", "module of that op"),
    ("phase", "str", "phase of that op"),
    ("freed_op_id", "Int64", "the last op before it was freed; null if it was there at the end"),
)
MODULE_COSTS = table(
    "module_costs",
    "module of a root model that ran, with all that it holds",
    ("model", "str", "as in modules"),
    ("module", "str", "as in modules"),
    ("type", "str", "class name"),
    ("depth", "int64", "number of modules above it"),
    ("calls", "int64", "how often its forward ran"),
    ("params", "int64", "parameter elements in it and below, shared ones once"),
    ("param_bytes", "int64", "bytes of params"),
    ("forward_flops", "int64", "flops of its forward ops"),
    ("backward_flops", "int64", "flops of the backward ops of these, and of what checkpointing computes again"),
    ("moved_bytes", "int64", "bytes read and written by both"),
    ("saved_bytes", "int64", "new_bytes of what its ops save"),
)
