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
        "what the difference looks like: scaled, offset, other_eps, negated, zero, nan, constant, clipped, flushed, "
        "unchanged, copied_input, other_result, stale, accumulated, transposed, shifted, permuted, repeated, "
        "reordered, beyond, rows, block, elements, rounded_inputs or rounded_result; null where no simple pattern "
        "explains it",
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
# Left is expected, right is actual.
METRICS_OF_PAIRS = (
    ("max_abs_error", "float64", "as in diffs, with left as expected; this and the next of executions only"),
    ("mean_abs_error", "float64", "as in diffs"),
    ("max_rel_error", "float64", "as in diffs"),
    ("cosine_similarity", "float64", "as in diffs"),
    ("max_ulp", "float64", "as in diffs"),
    ("noise_ratio", "float64", "as in diffs"),
    ("left_nan_count", "Int64", "number of NaN in the left result"),
    ("right_nan_count", "Int64", "number of NaN in the right result"),
    ("left_inf_count", "Int64", "number of +Inf and -Inf in the left result"),
    ("right_inf_count", "Int64", "number of +Inf and -Inf in the right result"),
)
ALIGNMENT = table(
    "alignment",
    "matched pair of ops or results of two recordings or executions, and per one without a partner, in call order",
    ("left_id", "Int64", "op_id in the left recording, result_id in results; null if only the right one has it"),
    ("right_id", "Int64", "likewise of the right one; null if only the left one has it"),
    ("action", "str", "match, left_only or right_only"),
    (
        "mark",
        "str",
        "=: the values agree; ~: they do not, or are not known; -: only the left one has it; +: only the right one",
    ),
    (
        "relation",
        "str",
        "how the results are the same: same, cast (to another dtype), permute, reshape, slice (the right one is a part "
        "of the left one), concat (the right one holds the left one), other; of a result of one side only: folded (it "
        "is a step to what the other side has), constant (such as sizes that an op reads), unused (no output is made "
        "of it)",
    ),
    (
        "evidence",
        "str",
        "name: the same op at the same position, or the same name; structure: other ops that give the same shapes "
        "there, or that read the same; values: the same values, or of recordings the same statistics",
    ),
    ("kind", "str", "op; of executions also input, parameter, buffer or constant"),
    ("op", "str", "as in ops, of the left one if it has the op"),
    ("right_op", "str", "as in ops, of the right one"),
    ("module", "str", "as in ops, of the left one if it has the op"),
    ("right_module", "str", "as in ops, of the right one"),
    ("phase", "str", "as in ops"),
    ("source", "str", "as in ops, of the left one if it has the op"),
    ("right_source", "str", "as in ops, of the right one"),
    ("name", "str", "name of the result in the left execution; null of recordings"),
    ("right_name", "str", "name of the result in the right execution; null of recordings"),
    ("dtype", "str", "dtype of the left result, without prefix"),
    ("right_dtype", "str", "dtype of the right result"),
    ("shape", "str", "JSON list of the sizes of the left result"),
    ("right_shape", "str", "JSON list of the sizes of the right result"),
    (
        "input_error",
        "float64",
        "largest error of its inputs: of recordings the relative difference of a statistic (norm, mean, std, min, "
        "max), a lower bound; of executions |right - left| over |left|, 2-norms",
    ),
    ("output_error", "float64", "the same of its result; inf where NaN and Inf are not as many or stand elsewhere"),
    ("allowed_error", "float64", "what output_error may be for these inputs and dtypes"),
    (
        "local_error",
        "float64",
        "the error that is left when the right op, or the ops between it and the nearest matched results, read the "
        "left one's values: what begins here; null where it cannot be computed again",
    ),
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
    *METRICS_OF_PAIRS,
    ("message", "str", "what differs first, in words; null if nothing"),
)
RESULTS = table(
    "results",
    "tensor of one of two executions that were aligned, in the order of its execution",
    ("result_id", "int64", "this result, dense from 0 over both executions; the left one's come first"),
    ("side", "str", "left or right"),
    ("kind", "str", "op, input, parameter, buffer or constant"),
    ("name", "str", "name in its execution: of a parameter its path, of an ONNX result its name"),
    ("op", "str", "op that made it, as its framework calls it; null of others"),
    ("module", "str", "as in ops"),
    ("phase", "str", "as in ops"),
    ("source", "str", "as in ops"),
    ("is_output", "bool", "whether the model returns it"),
    ("dtype", "str", "without prefix"),
    ("shape", "str", "JSON list of its sizes"),
    ("numel", "int64", "number of elements"),
    ("arguments", "str", "JSON object of the op's arguments that are no tensors; null if none"),
    ("reads", "str", "JSON list of the result_ids that the op reads, in the order of its arguments"),
    ("mean", "float64", "mean of its finite elements; null where no values are known"),
    ("rms", "float64", "root of the mean square of its finite elements"),
    ("min", "float64", "smallest finite element"),
    ("max", "float64", "largest finite element"),
    ("nan_count", "Int64", "number of NaN"),
    ("inf_count", "Int64", "number of +Inf and -Inf"),
)
EXPORTS = table(
    "exports",
    "what a model is turned into, beside the model itself",
    ("export", "str", "onnx, onnxruntime, export or compile; else what the other model is called"),
    ("verdict", "str", "agrees (no value differs beyond rounding), diverges, not known, or not run"),
    ("first_divergence", "str", "where the two first differ, and how; null where they do not"),
    ("output_error", "float64", "largest relative error of what both return; null where nothing was compared"),
    ("op_count", "Int64", "number of ops that it ran"),
    ("equal_count", "Int64", "number of results that agree"),
    ("different_count", "Int64", "number of results that differ"),
    ("left_only_count", "Int64", "number of results of the model alone"),
    ("right_only_count", "Int64", "number of results of the export alone"),
    ("error", "str", "why it could not be made or run to its end; null where it was"),
)
