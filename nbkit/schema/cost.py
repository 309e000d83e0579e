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
        "2 x multiply-adds of matrix products, convolutions, attention and recurrent layers, and the usual counts of "
        "factorizations and Fourier transforms; 0 for ops that hold none; null without a rule",
    ),
    (
        "elementwise_flops",
        "Int64",
        "all other arithmetic, one for each element and operation: elementwise ops, reductions and pooling 1, softmax "
        "4, norms 5, the updates of optimizers; 0 for views, copies and fills; null without a rule",
    ),
    ("read_bytes", "int64", "bytes of its inputs that it reads, each region of memory once; 0 for a view"),
    ("written_bytes", "int64", "bytes of its results and of what it writes in place"),
    (
        "intensity",
        "float64",
        "arithmetic intensity: flops over bytes read and written; null where it moves none, or without a rule",
    ),
    (
        "communication_bytes",
        "Int64",
        "bytes that each process sends to others in a collective, by the ring algorithm; null for other ops",
    ),
    ("time_us", "float64", "predicted time on the device that opcost was given; null without one"),
    (
        "bound",
        "str",
        "what that time is bound by: compute, memory, launch (of the op), communication; null without a device",
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
# Kinds of `storages` with what they mean, as they are stacked: what stays through the step below what comes and goes.
STORAGE_KINDS = {
    "parameter": "",
    "buffer": "",
    "input": "another tensor from outside",
    "optimizer state": "",
    "gradient": "of a parameter",
    "gathered": "whole parameters and gradients of a rank that shares them, while it computes with them",
    "activation": "saved for the backward pass",
    "temporary": "",
}
STORAGES = table(
    "storages",
    "memory of tensors, shared by views, in the order of allocation",
    ("allocation_id", "int64", "this memory, dense from 0; `memory` has its allocation and release"),
    (
        "kind",
        "str",
        ", ".join(f"{name} ({meaning})" if meaning else name for name, meaning in STORAGE_KINDS.items()),
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
    ("elementwise_flops", "int64", "elementwise_flops of both"),
    ("moved_bytes", "int64", "bytes read and written by both"),
    ("saved_bytes", "int64", "new_bytes of what its ops save"),
)
DIFFERENCE = table(
    "difference",
    "measure of a step that runs as it is, and under other conditions",
    (
        "measure",
        "str",
        "peak_bytes: the most memory at one time, and peak_parameter_bytes, peak_activation_bytes ... what it is made "
        "up of, by `storages.kind`; saved_bytes: the sum of `saved.new_bytes`; parameter_bytes, gradient_bytes, "
        "optimizer_state_bytes: all of these kinds; forward_flops, backward_flops (with what checkpointing computes "
        "again): 2 x multiply-adds; moved_bytes: read and written by all ops; all_gather_bytes, reduce_scatter_bytes, "
        "all_reduce_bytes: sent by each rank",
    ),
    ("baseline", "Int64", "as the step is"),
    ("changed", "Int64", "under the other conditions"),
    ("change", "Int64", "changed - baseline"),
    ("ratio", "float64", "changed / baseline; null where baseline is 0"),
)
NODE_COSTS = table(
    "node_costs",
    "node of a model's forward pass, in the order of execution",
    (
        "op_kind",
        "str",
        "placeholder (an input), get_attr (a parameter or buffer that a function takes), call_module (of torch.nn), "
        "call_function, call_method, output",
    ),
    ("name", "str", "name, as torch.fx gives it"),
    ("module", "str", "path of the module that is called, or that calls the function; null outside any"),
    ("accumulate_bytes", "int64", "saved for the backward pass by its end, and its outputs that are saved later"),
    ("incremental_bytes", "int64", "accumulate_bytes less that of the row before"),
    ("output_bytes", "int64", "its outputs that are saved later"),
    ("temp_bytes", "int64", "its outputs that are never saved"),
    ("param_bytes", "int64", "parameters of the module, or that the function takes"),
    ("backward_bytes", "int64", "tensors that it takes, but for parameters and those in lists: their gradients"),
    ("forward_flops", "Int64", "FLOPs of its ops, counted as attrs['flops'] says; null with an op of no rule"),
    ("backward_flops", "Int64", "FLOPs of the backward ops of these"),
    ("shape", "str", "JSON list of the sizes of what it returns; of several tensors by commas; null where it is none"),
    ("dtype", "str", "torch dtype of what it returns, without prefix; where there are several, by commas"),
    ("device", "str", "device of what it returns; where there are several, by commas"),
)
