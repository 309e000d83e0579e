"""Defines the tables of what comparing a recorded step showed: with a reference, and with another recording."""

from nbkit.schema.table import table

DIFFS = table(
    "diffs",
    "tensor compared with a reference, in call order; metrics are defined in nbkit/numerics/metrics.py",
    ("op_id", "int64", "the op; with level='module' the first op of the module's call"),
    ("op", "str", "as in ops; with level='module' the class of the module"),
    ("module", "str", "as in ops; with level='module' the path of the module that is compared"),
    ("phase", "str", "as in ops"),
    (
        "role",
        "str",
        "output; or input, for one that the op writes to and does not return; with level='module' also buffer, for one "
        "that the call changes, input_gradient and parameter_gradient, for what its backward pass gives to them",
    ),
    (
        "position",
        "int64",
        "index among the op's tensors of that role, lists flattened, keyword tensors last; of gradients that of the "
        "input or parameter",
    ),
    ("dtype", "str", "dtype of the actual tensor, without prefix"),
    ("shape", "str", "JSON list of its sizes; null if it is not there"),
    ("max_abs_error", "float64", "largest |actual - expected|; NaN where only one of an element is NaN"),
    ("mean_abs_error", "float64", "mean of |actual - expected|"),
    ("max_rel_error", "float64", "largest |actual - expected| / |expected|; 0/0 is 0, x/0 is inf"),
    ("cosine_similarity", "float64", "of the flattened pair; 1 if both are zero, 0 if one is"),
    ("max_ulp", "float64", "largest distance in representable values of the dtype"),
    ("mismatch_count", "Int64", "number of elements outside the tolerance"),
    ("mismatch_fraction", "float64", "their share"),
    ("actual_nan_count", "Int64", "number of NaN in actual"),
    ("expected_nan_count", "Int64", "number of NaN in expected"),
    ("actual_inf_count", "Int64", "number of +Inf and -Inf in actual"),
    ("expected_inf_count", "Int64", "number of +Inf and -Inf in expected"),
    ("rtol", "float64", "relative tolerance that was set for the op or dtype; null where the noise ratio decides"),
    ("atol", "float64", "absolute tolerance likewise"),
    (
        "noise_ratio",
        "float64",
        "largest error over what rounding of result and inputs allows: of order 1 for a correct op, an upper bound "
        "where it is below the threshold; inf where NaN or Inf stand elsewhere, or integers differ",
    ),
    ("bias_ratio", "float64", "|mean signed error| over rms error / sqrt(numel): how biased the errors are"),
    (
        "local_error",
        "float64",
        "|actual - expected| over |expected|, 2-norms: what this op adds; this and the next four only with against=",
    ),
    (
        "propagated_error",
        "float64",
        "|expected - shadow| over |shadow|: what the errors of its inputs make of its result",
    ),
    ("total_error", "float64", "|actual - shadow| over |shadow|: how far the step is from the shadow run here"),
    (
        "error_class",
        "str",
        "local: its own error is more than its dtype allows; propagated: most of it goes back to ops at fault; both; "
        "clean: no op of the step is at fault, so that what it has is rounding, or a fault of the shadow run",
    ),
    ("origin_op_id", "Int64", "the op at fault that most of its error goes back to; null if clean"),
    (
        "status",
        "str",
        "ok, mismatch, shape, dtype, reduced (correct for fewer bits, as with TF32), skipped (not compared) or "
        "failed (the reference raised)",
    ),
    (
        "pattern",
        "str",
        "what the difference looks like: scaled, offset, negated, zero, nan, constant, clipped, flushed, unchanged, "
        "copied_input, other_result, stale, accumulated, transposed, shifted, permuted, repeated, reordered, beyond, "
        "rows, block, elements, rounded_inputs or rounded_result; null where no simple pattern explains it",
    ),
    (
        "pattern_evidence",
        "str",
        "JSON: what shows the pattern, such as factor, axis and first wrong index (see nbkit/numerics/"
        "difference_patterns.py), `explained_fraction` of the squared error, `residual_noise_ratio` of what is left",
    ),
    ("message", "str", "what a reader must know: why, where, or how it was compared; null if nothing"),
    (
        "message_values",
        "str",
        "JSON list of [start, end]: the elements of tensors in `message`, which a report leaves out; null if none",
    ),
)
ALIGNMENT = table(
    "alignment",
    "aten op of two recordings, or of one of them only, in call order; how their values differ",
    ("left_id", "Int64", "op_id in the left recording; null if only the right one has it"),
    ("right_id", "Int64", "op_id in the right recording; null if only the left one has it"),
    ("action", "str", "match, left_only or right_only"),
    (
        "relation",
        "str",
        "how the first results are the same: same, cast (to another dtype), permute, reshape, other (other numel)",
    ),
    (
        "evidence",
        "str",
        "name: the same op at the same position; structure: other ops that give the same shapes there; values: ops of "
        "other modules that give the same statistics",
    ),
    ("op", "str", "as in ops, of the left recording if it has the op"),
    ("right_op", "str", "as in ops, of the right recording"),
    ("module", "str", "as in ops"),
    ("phase", "str", "as in ops"),
    ("source", "str", "as in ops"),
    (
        "input_error",
        "float64",
        "largest relative difference of a statistic of its inputs (norm, mean, std, min, max): a lower bound",
    ),
    ("output_error", "float64", "the same of its results; inf where NaN and Inf are not as many"),
    ("allowed_error", "float64", "what output_error may be for these inputs and dtypes"),
    (
        "error_class",
        "str",
        "clean; local: the results differ though the inputs agree; input: what came in from outside differs; "
        "propagated: it reads what differs already; both; null if there is nothing to compare",
    ),
    ("origin_id", "Int64", "row of this frame that most of the difference goes back to; null if clean"),
    (
        "arguments",
        "str",
        "JSON object of the arguments that are not the same in both, [left, right] by name; null if none, or if it is "
        "another op",
    ),
    ("message", "str", "what differs first, in words; null if nothing"),
)
