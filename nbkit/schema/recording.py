"""Defines the tables of a recorded step: its ops and tensors, their times, and what was planted in it."""

from nbkit.schema.table import table

RAISED, NOT_RUN = "raised", "not run"  # of the column `status`
OPS = table(
    "ops",
    "call of an op, in call order",
    ("op_id", "int64", "this call, dense from 0 in call order"),
    ("parent_id", "Int64", "op_id of the call that made this one; null at the top"),
    (
        "level",
        "str",
        "api: a call of torch's Python API; aten: a dispatcher call, or a fused kernel of torch.compile on the CPU; "
        "module: a module's forward call; range: a named block, such as an autograd node; runtime: a call of the "
        "device's driver; kernel: work on a device",
    ),
    (
        "op",
        "str",
        "overload name (aten.addmm.default), API name (torch.nn.functional.linear), class of a module, name of a "
        "kernel, or another tool's op type",
    ),
    ("model", "str", "which root model the module path starts from: its class name, numbered where there are several"),
    ("module", "str", "named_modules() path; '' is the root model; null is outside any module"),
    ("module_call", "Int64", "how often that module had been called before this call of it, from 0"),
    ("phase", "str", "forward, backward, optimizer or other"),
    ("step", "int64", "optimizer steps finished before this call"),
    ("forward_op_id", "Int64", "of a backward op: the forward op whose gradient it computes"),
    ("device", "str", "device of the first tensor out of the op, else of the first into it"),
    ("stream", "Int64", "device stream; null on the CPU"),
    ("thread", "int64", "thread that ran it: 0 is the one that started the recording"),
    (
        "start_us",
        "float64",
        "start on the host clock, microseconds since the recording began, without those in which nbkit read values; "
        "of a repeated step where it starts if every call takes its median time",
    ),
    (
        "total_time_us",
        "float64",
        "microseconds from call to return, under the recorder; of a repeated step the sum of self_time_us in it",
    ),
    (
        "self_time_us",
        "float64",
        "total_time_us less that of its children; kernels do not count as children; of a repeated step the median over "
        "the repeats, as all times of devices",
    ),
    (
        "total_device_time_us",
        "float64",
        "time of all kernels launched inside; of a kernel its own; null if none is known",
    ),
    ("self_device_time_us", "float64", "time of the kernels it launched itself, not through a child op"),
    (
        "flops",
        "Int64",
        "floating-point operations (2 x multiply-adds); null if unknown or counted in the op around it",
    ),
    ("size_bytes", "Int64", "bytes that a collective or a device copy moves; null for others"),
    ("group", "str", "process group of a collective; null for others"),
    (
        "status",
        "str",
        "raised: it has no result, as an exception ended it; not run: a checkpoint (use_reentrant=False) that had "
        "computed again all it needs ended it before it computed, without a time of its own; null for others, and for "
        "errors in optime",
    ),
    (
        "input_shapes",
        "str",
        "JSON list of the shapes of its inputs: [] for what is no tensor, and for a list of tensors a list of shapes, "
        "which optime has as []; null if not recorded",
    ),
    (
        "input_dtypes",
        "str",
        "JSON list of their dtypes, null for what is no tensor and for a list of tensors; null if not recorded: of "
        "optrace, `tensors` has them",
    ),
    ("input_strides", "str", "JSON list of their strides, as input_shapes; null like input_dtypes"),
    (
        "arguments",
        "str",
        "JSON object of its arguments that are neither tensors nor None, by name in the op's schema; null if none, or "
        "not recorded",
    ),
    (
        "source",
        "str",
        "innermost line outside torch that led here: 'Cell In[7], line 3' or 'path/file.py:12'; of a fused kernel "
        "all that it computes; in optime of a backward op that of its forward op",
    ),
    (
        "own_source",
        "str",
        "where `source` is a line of an installed library: the innermost line of the user's own code that led there; "
        "else null",
    ),
)
TENSORS = table(
    "tensors",
    "tensor into or out of an aten op",
    ("op_id", "int64", "the op"),
    ("role", "str", "input or output"),
    ("position", "int64", "index among the op's tensors of that role, lists flattened, keyword tensors last"),
    ("tensor_id", "int64", "the tensor itself: never reused, also when its memory is"),
    ("storage_id", "Int64", "its memory: shared by views, never reused; null for layouts without one storage"),
    ("name", "str", "parameter or buffer path, null for others"),
    (
        "state_name",
        "str",
        "of a gradient and of optimizer state: the parameter's path with '.grad' or the key of the state "
        "('.exp_avg'); null for others, and for gradients that were cleared before the recording ended",
    ),
    ("dtype", "str", "torch dtype without prefix"),
    ("shape", "str", "JSON list of sizes; of a DTensor those of its local shard"),
    ("stride", "str", "JSON list of strides in elements; null for layouts without strides"),
    ("device", "str", "device, with its index"),
    ("numel", "int64", "number of elements"),
    (
        "size_bytes",
        "Int64",
        "numel x element size; for sparse layouts the bytes of indices and values; null if unknown",
    ),
    ("requires_grad", "bool", "whether autograd records it"),
    ("mean", "float64", "mean of the finite values (values='stats')"),
    ("std", "float64", "population standard deviation of the finite values (values='stats')"),
    ("min", "float64", "smallest finite value (values='stats')"),
    ("max", "float64", "largest finite value (values='stats')"),
    ("norm", "float64", "2-norm of the finite values (values='stats')"),
    ("nan_count", "Int64", "number of NaN (values='stats')"),
    ("inf_count", "Int64", "number of +Inf and -Inf (values='stats')"),
)
MODULES = table(
    "modules",
    "module of a root model that ran",
    ("model", "str", "root model: its class name, numbered where there are several"),
    ("module", "str", "named_modules() path; '' is the root"),
    ("type", "str", "class name"),
    ("role", "str", "role in the model: embedding, norm, attention, ...; null where not recognized"),
    ("parent", "str", "path of the module that holds it; null for the root"),
    ("depth", "int64", "number of modules above it"),
    ("calls", "int64", "how often its forward ran in the recording"),
    ("params", "int64", "parameter elements in it and below, shared ones once"),
    ("trainable_params", "int64", "those that require a gradient"),
    ("param_bytes", "int64", "bytes of params"),
    ("buffer_bytes", "int64", "bytes of buffers in it and below, shared ones once"),
)
TIMINGS = table(
    "timings",
    "op of one run, timed over all repeats of the step",
    ("op_id", "int64", "the op; ops holds those of the repeat of median wall time"),
    ("repeats", "int64", "how many repeats had this op at this position"),
    ("median_us", "float64", "median of total_time_us of the samples"),
    ("iqr_us", "float64", "interquartile range (IQR) of the same"),
    ("min_us", "float64", "min of the same"),
)
SAMPLES = table(
    "samples",
    "op of one run, in one repeat of the step",
    ("op_id", "int64", "the op; ops holds those of the repeat of median wall time"),
    ("repeat", "int64", "number of the repeat, from 0"),
    ("total_time_us", "float64", "from call to return in this repeat"),
    ("self_time_us", "float64", "that less the calls in it"),
    ("self_device_time_us", "float64", "time of the kernels it launched itself"),
)
FAULTS = table(
    "faults",
    "fault planted in a simulated device",
    ("fault_id", "int64", "the fault, dense from 0 in the order of the list"),
    ("op", "str", "pattern of the ops that have it"),
    ("kind", "str", "what goes wrong; a name of nbkit.FAULT_KINDS"),
    ("size", "float64", "how much, in the measure of the kind; null for kinds without"),
    ("phase", "str", "forward or backward if it is in one of them only"),
    ("min_numel", "int64", "it spares calls whose largest tensor has fewer elements"),
    ("nth_call", "Int64", "the one call, from 1, that it is in; null for all"),
    ("calls", "int64", "calls of ops that its pattern names"),
    ("fired", "int64", "calls in which it made the result"),
    ("changed", "int64", "calls in which that result differed from the correct one in at least a bit"),
    (
        "rounding_ratio",
        "float64",
        "largest change of an element over what rounding of the result and of the inputs may do to it (see "
        "nbkit/simulated/faults/rounding.py), in all calls: 1 or less is within rounding; inf where integers, NaN or "
        "Inf changed; null if nothing did, or where random numbers are drawn",
    ),
    (
        "status",
        "str",
        "changed; no effect: it fired, and each result was correct to the bit; not reached: its conditions were never "
        "met; cannot apply: not to these ops; never ran: no such op did",
    ),
    ("message", "str", "why it changed nothing; null if it did"),
)
LINES = table(
    "lines",
    "line of source code that led to ops, in the order of the ops",
    ("source", "str", "as in ops"),
    ("text", "str", "the line without the blanks around it; null where it cannot be read"),
)
