"""Tells the phase of an operation, and what put it into the program, from its op_role, namescope and names."""

import re

from nbkit.readers.paddle.communication import is_communication
from nbkit.readers.paddle.records import Operation

# op_role is a bit mask.
BACKWARD, OPTIMIZE, SCHEDULE, LOSS = 1, 2, 16, 256
ROLES = BACKWARD | OPTIMIZE | SCHEDULE | LOSS
RECOMPUTED = re.compile(r"\.subprog_\d+$")
CAST = re.compile(r"\.cast_(?:fp|bf)\d+")
OPTIMIZERS = frozenset(
    "adadelta adagrad adam adamax adamw asgd decayed_adagrad dgc_momentum distributed_fused_lamb dpsgd ftrl fused_adam "
    "lamb lars_momentum merged_adam merged_momentum momentum nadam proximal_adagrad proximal_gd radam rmsprop rprop "
    "sgd sparse_momentum".split()
)
AMP = frozenset({"check_finite_and_unscale", "update_loss_scaling"})
COMMUNICATION_SCOPES = ("reshard", "data_parallel", "synchronization", "sharding")


def phase(operation: Operation) -> str | None:
    """Returns forward, backward, recompute, optimizer or other; None where the program does not say."""
    role = operation.attributes.get("op_role")
    kind = operation.bare_type
    if not isinstance(role, int) or role < 0 or role >= 4096:
        return "backward" if kind.endswith("_grad") else "optimizer" if kind in OPTIMIZERS else None
    if role & (OPTIMIZE | SCHEDULE):
        return "optimizer"
    if role & BACKWARD:
        return "recompute" if _is_recomputed(operation) else "backward"
    return "forward" if role & ~ROLES == 0 else "other"


def inserted(operation: Operation, phase: str | None) -> str | None:
    """Returns what put the operation there: amp, autograd, communication, optimizer, recompute; None for the user."""
    scope = operation.attributes.get("op_namescope")
    scopes = scope.rstrip("/") if isinstance(scope, str) else ""
    kind = operation.bare_type
    if is_communication(kind) or ("/auto_parallel/" in scopes and scopes.endswith(COMMUNICATION_SCOPES)):
        return "communication"
    if kind in AMP or _is_mixed_precision(operation, kind, phase):
        return "amp"
    return {"backward": "autograd", "recompute": "recompute", "optimizer": "optimizer"}.get(phase or "")


def _is_recomputed(operation: Operation) -> bool:
    if operation.bare_type.endswith("_grad"):
        return False
    return any(RECOMPUTED.search(name) for _, names in operation.outputs for name in names)


def _is_mixed_precision(operation: Operation, kind: str, phase: str | None) -> bool:
    """Returns whether it is a cast that autocast wrote into the forward, or the scaling of the loss."""
    if phase not in ("forward", None):
        return False
    if kind == "cast":
        return any(CAST.search(name) for _, names in operation.outputs for name in names)
    return any(name.startswith("loss_scaling") for _, names in operation.inputs for name in names)
