"""Says how rounding weighs in the results of aten ops; names as in families."""

from collections.abc import Mapping

from nbkit.ops.families import BATCH_NORMS, LOG_SOFTMAX, PRODUCTS, SOFTMAX, family, gradients_of

# Kernels of these add up in float32 and round the result once, if it is in half precision.
ROUNDED_ONCE = PRODUCTS - {"addbmm", "addbmm_"}
# Their elements share a sum over others, which is no sum of the result's own; softmax's is added up in so many blocks.
SHARED_SUMS: Mapping[str, int] = {
    **dict.fromkeys(SOFTMAX | LOG_SOFTMAX, 64),
    **dict.fromkeys(BATCH_NORMS - {"_native_batch_norm_legit_no_training", "_batch_norm_no_update"}, 1),
    "_weight_norm_interface": 1,
    "renorm": 1,
}
# Each element is right to some eps of itself. Not among them: what computes a difference inside, which a change of its
# inputs does not show (gelu, log_softmax).
WELL_DETERMINED = family(
    "MOVES TRIANGLES MASKED_FILLS ARITHMETIC ROOTS CLAMPS neg abs reciprocal exp sigmoid silu relu hardtanh leaky_relu "
    "maximum minimum threshold_backward amax amin _softmax embedding slice_backward select_backward "
    "native_dropout_backward"
)
# Of very many numbers a float32 kernel may make one running sum, in an order that is not known.
RUNNING_SUMS = ROUNDED_ONCE | family(
    "CONVOLUTIONS convolution_backward native_batch_norm native_batch_norm_backward native_layer_norm_backward "
    "native_group_norm_backward _cdist_forward"
)
# These multiply element by element: what is wrong with a large element may meet a large one, and the result be small.
MULTIPLYING = gradients_of("silu gelu tanh sigmoid threshold elu") | family(
    "MULTIPLIES _softmax_backward_data _log_softmax_backward_data"
)
# Where these divide by little, such as the square roots that Adam takes, rounding weighs more than statistics tell.
DIVIDING = family("DIVIDES addcdiv reciprocal rsqrt")
# Their results jump, or bend, where what they read crosses a border.
THRESHOLDS = family("COMPARISONS sign sgn") | gradients_of(
    "threshold hardtanh leaky_relu _prelu_kernel hardswish hardsigmoid softshrink hardshrink"
)
