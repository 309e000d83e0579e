"""Defines the tables of training: what a recording did to each parameter, and a few numbers of each step."""

from nbkit.schema.table import table

PARAMETERS = table(
    "parameters",
    "parameter or buffer of a model that ran, in the order of named_parameters(), then named_buffers()",
    ("model", "str", "which root model it belongs to, as in modules"),
    ("name", "str", "its path in the model"),
    ("kind", "str", "parameter or buffer"),
    ("module", "str", "path of the module that holds it; '' is the root"),
    ("shape", "str", "JSON list of sizes"),
    ("numel", "int64", "number of elements"),
    ("dtype", "str", "torch dtype without prefix"),
    ("device", "str", "device, with its index"),
    ("requires_grad", "bool", "whether autograd computes its gradient"),
    ("tied_with", "str", "the first name of the same tensor, where this row is a further one; null else"),
    ("calls", "Int64", "how often the module that holds it was called in the recording; null if unknown"),
    ("in_optimizer", "Int64", "1 if an optimizer holds it, 0 if none does; null where no optimizer is known"),
    ("optimizer_steps", "Int64", "steps of its optimizer in the recording; null where no optimizer is known"),
    ("skipped_steps", "Int64", "those that a GradScaler skipped instead; null where no optimizer is known"),
    ("learning_rate", "float64", "the largest that its optimizer stepped with; null if unknown"),
    ("weight_decay", "float64", "that of its optimizer; null if unknown"),
    (
        "gradient",
        "str",
        "none, zero (each element is exactly 0), finite or non_finite, as its optimizer met it: non_finite if it was "
        "so at any step, else finite, zero, none in this order; without a step as it was at the end; null of buffers",
    ),
    ("gradient_norm", "float64", "2-norm of that gradient, at the last step where it was so; null where there is none"),
    ("gradient_zero_fraction", "float64", "share of elements of that gradient that are exactly 0, 0..1"),
    (
        "accumulated",
        "Int64",
        "1 if a backward pass added to the gradient that an earlier step had used, or that was there before the "
        "recording, and a step used the sum; 0 if not; null where no optimizer stepped",
    ),
    ("update_fraction", "float64", "2-norm of its change in the recording / 2-norm before; null if unknown"),
    ("changed_fraction", "float64", "share of elements whose bits changed in the recording, 0..1; null if unknown"),
)
STEPS = table(
    "steps",
    "step of a script that `python -m nbkit audit` watched, in order",
    ("step", "int64", "its number, from 0"),
    ("loss", "float64", "sum of the values that its backward passes began with, unscaled; null if there were none"),
    (
        "gradient_norm",
        "float64",
        "2-norm of the gradients that its optimizers stepped with, of DTensors of what this process holds; null if "
        "none stepped, and where it was not read, to cost little",
    ),
    (
        "update_fraction",
        "float64",
        "2-norm of the change of all parameters of its optimizers / 2-norm before; null where it was not measured",
    ),
    ("learning_rate", "float64", "the largest that an optimizer stepped with; null if unknown"),
    ("optimizer_steps", "int64", "steps of optimizers in it"),
    ("skipped_steps", "int64", "those that a GradScaler skipped instead"),
    (
        "held_bytes",
        "Int64",
        "memory held after it: allocated on the CUDA device where one is in use, else of the process",
    ),
    ("process_bytes", "Int64", "memory of the process after it: its resident set (RSS); null if unknown"),
    ("reserved_bytes", "Int64", "memory that torch's allocator holds of the CUDA device; null where none is in use"),
    (
        "device_fraction",
        "float64",
        "share of the time in which the CUDA device ran kernels, 0..1, as its driver (pynvml) last measured it; null "
        "if unknown",
    ),
    ("cpu_us", "float64", "microseconds of CPU time that all threads of the process took in it"),
    ("wall_us", "float64", "microseconds from its begin to its end"),
    (
        "batch",
        "str",
        "JSON list of the rows of the data set in the batches that a DataLoader gave last before its backward passes, "
        "the first 64; null if none told",
    ),
    ("anomaly", "str", "rule that it is found by: loss_not_finite, gradient_not_finite, loss_spike, failed; null else"),
    ("error", "str", "class of the exception that ended it; null else"),
)
