"""Tells forward, backward and optimizer apart: by where gradients begin, and by what an op is made for."""

from collections.abc import Iterable, Mapping, Sequence

from nbkit.readers.oneflow.names import split_name

ORDER = {"forward": 0, "backward": 1, "optimizer": 2}
# The gradient of the loss itself, from which autograd starts.
FIRST_GRADIENT = "ones_like"
# Of ops that help others and read each other.
LONGEST_CHAIN = 8


def first_gradient(ops: Iterable[tuple[str, str | None]]) -> str | None:
    """Returns the name of the op that begins the backward phase, of (name, op type) in call order; None without one."""
    candidate, has_gradients = None, False
    for name, op in ops:
        if op == FIRST_GRADIENT:
            parts = split_name(name)
            if parts is not None and not parts[0]:
                return name  # autograd works outside of all modules
            candidate = candidate or name
        has_gradients = has_gradients or (candidate is not None and op is not None and op.endswith("_grad"))
    return candidate if has_gradients else None


def phases_in_order(ops: Sequence[tuple[str, str | None]]) -> dict[str, str]:
    """Returns the phase of each op by name, of (name, op type) in call order: forward, then backward."""
    first, phase, phases = first_gradient(ops), "forward", {}
    for name, _ in ops:
        phase = "backward" if name == first else phase
        phases[name] = phase
    return phases


def earliest(phases: Iterable[str | None]) -> str | None:
    """Returns the first of the phases that are known; None if none is."""
    return min((phase for phase in phases if phase is not None), key=ORDER.__getitem__, default=None)


def by_readers(known: dict[str, str | None], readers: Mapping[str, list[str]], unknown: Iterable[str]) -> None:
    """Fills the phases of ops that only help others: that of the first op that reads what they make."""
    waiting = list(unknown)
    for _ in range(LONGEST_CHAIN):
        phases = {name: earliest(known.get(reader) for reader in readers.get(name, ())) for name in waiting}
        known.update({name: phase for name, phase in phases.items() if phase is not None})
        waiting = [name for name in waiting if phases[name] is None]
