"""Reads names of ops: the module path in them, and what put an op there that the user's code did not."""

from collections.abc import Container

CASTS = ("-cast_f2h", "-cast_h2f")
PINNED = "_pinned_identity"
# What begins the names of ops that compiler passes make.
SYSTEM = (
    ("System-Boxing-", "boxing"),
    ("System-NCCL-", "communication"),
    ("Sys-GradAcc-", "gradient accumulation"),
    ("System-GradientAccumulation-", "gradient accumulation"),
    ("System-AutoGrad-", "autograd"),
    ("System-DynamicLossScale-", "amp"),
    ("System-Train-", "optimizer"),
    ("System-ClipGradient-", "optimizer"),
    ("System-", "system"),
    ("Sys-", "system"),
)
STATE = ("m", "v", "momentum", "max_v", "sum", "mean_square", "mean_gradient", "accumulate", "z", "n")


def split_name(name: str) -> tuple[str, str, int] | None:
    """Returns module path, op type and number of "path-type-N"; the path may be "". None for other names."""
    front, dash, number = name.rpartition("-")
    if not dash or not number.isdecimal() or len(number) > 9:
        return None
    path, _, op = front.rpartition("-")
    return path, op, int(number)


def is_from_outside(tensor: str) -> bool:
    """Returns whether a tensor is an input of the graph, or of the system: listings do not say who makes them."""
    return tensor.startswith(("_", "System-"))


def holder(path: str) -> str:
    """Returns the path of the module that holds a variable: 'model.emb' of 'model.emb.weight'."""
    return path.rpartition(".")[0]


def base_of(name: str, known: Container[str]) -> str | None:
    """Returns the op that a pass made this one for; None if it is none of the known ones."""
    for cast in CASTS:
        if name.endswith(cast):
            name = name.removesuffix(cast).rpartition("-")[0].removesuffix(PINNED)
            return name if name in known else _front(name.partition(PINNED)[0], "_", known)
    if PINNED in name:
        return _front(name.partition(PINNED)[0], "_", known)
    for separator in ("-", "_"):
        if (front := name.rpartition(separator)[0]) in known:
            return front
    front = name.partition("adam_bias_correction_factor")[0]
    return front if front in known else _front(name, "_", known)


def _front(name: str, separator: str, known: Container[str]) -> str | None:
    """Returns the longest known name that `name` starts with, up to a separator."""
    while name and name not in known:
        name = name.rpartition(separator)[0]
    return name or None


def inserted_by(name: str, variables: Container[str]) -> str | None:
    """Returns what made an op that was never traced, told from its name; None if the name does not say it."""
    if name.endswith(CASTS):
        return "amp"
    if name.endswith(PINNED):
        return "pinned identity"
    for start, reason in SYSTEM:
        if name.startswith(start):
            return reason
    if name.endswith("_optimizer") or "adam_bias_correction_factor" in name or is_state(name, variables):
        return "optimizer"
    if name.endswith("_grad") or "_clone_grad_" in name:
        return "autograd"
    return None


def is_state(name: str, variables: Container[str]) -> bool:
    """Returns whether it is a variable that an optimizer keeps for another one: its momentum, for example."""
    front, dash, last = name.rpartition("-")
    return bool(dash) and (front in variables or (last in STATE and "." in front and split_name(front) is None))


def op_type(name: str) -> str | None:
    """Returns the op type of an op that was never traced, as far as its name tells it."""
    if name.endswith(CASTS):
        return "cast"
    if PINNED in name:
        return "identity"
    if name.endswith("_optimizer"):
        return "optimizer"
    front, _, factor = name.partition("adam_bias_correction_factor")
    if factor and front:
        return "adam_bias_correction_factor"
    if name.startswith("System-Boxing-Identity"):
        return "boxing_identity"
    if name.startswith(("System-", "Sys-")):
        return _last_word(name)
    parts = split_name(name)
    return parts[1] if parts else None


def _last_word(name: str) -> str | None:
    """Returns scalar_add of System-Train-TrainStep-ScalarAdd."""
    words = [word for word in name.split("-") if not word.isdecimal()]
    last = words[-1].partition("_")[0]
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in last).lstrip("_") or None
