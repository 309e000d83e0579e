"""Gives the right model of opalign the left one's parameters, and says what could not be placed."""

from collections.abc import Callable
from os import PathLike
from typing import Any

from nbkit.analysis.align.copying.decide import Decision, decide, is_equal
from nbkit.errors import OptionError
from nbkit.trace.executions.execution import Execution

# So many sentences on what was not copied are notes; all are in meta["not_copied"].
MOST_NOTES = 20


def check_modules(left: Any, right: Any) -> None:
    """Refuses sides whose parameters cannot be copied. Raises OptionError."""
    from nbkit.capture.executions.parameters import module_of

    for side, source in (("left", left), ("right", right)):
        if module_of(source) is None:
            what = repr(str(source)) if isinstance(source, str | PathLike) else f"of type {type(source).__name__}"
            raise OptionError(
                f"copy_parameters=True loads the left module's parameters into the right module, and the {side} side "
                f"is {what}; give two modules."
            )


def parameters_copied(left: Any, right: Any, left_run: Execution, run_right: Callable[[], Execution]) -> dict[str, Any]:
    """Loads what corresponds of the left module into the right one, and returns what to say of it as meta.

    The right module runs as it is, and once more with what was found, if that did not place all: what it runs may
    depend on its values. Nothing is written before all is decided.
    """
    from nbkit.capture.executions.parameters import arrays_of, held_tensors, holding, load, module_of

    models = module_of(left), module_of(right)
    assert models[0] is not None and models[1] is not None
    (left_tensors, tied), (right_tensors, _) = held_tensors(models[0]), held_tensors(models[1])
    left_state, right_state = arrays_of(left_tensors), arrays_of(right_tensors)
    decision = decide(left_run, run_right(), left_state, right_state, tied)
    if not decision.agrees and decision.copied and decision.not_copied:
        with holding(right_tensors, {one.right: one.value for one in decision.copied}):
            again = decide(left_run, run_right(), left_state, arrays_of(right_tensors), tied)
        if again.agrees or len(again.copied) > len(decision.copied):
            decision = again
    other = {one.right: one.value for one in decision.copied if not is_equal(one, right_state[one.right])}
    load(right_tensors, other)
    return _said(decision, len(other), len(right_state))


def _said(decision: Decision, loaded: int, total: int) -> dict[str, Any]:
    copied = [
        {"left": list(one.left), "right": one.right, "how": one.how, "evidence": one.evidence}
        for one in decision.copied
    ]
    missing = [{"left": one.left, "right": one.right, "reason": one.reason} for one in decision.not_copied]
    notes = [f"right: {len(copied):,} of {total:,} parameters and buffers have the left one's values (copy_parameters)"]
    notes += [one.reason for one in decision.not_copied[:MOST_NOTES]]
    if len(missing) > MOST_NOTES:
        notes.append(f"{len(missing) - MOST_NOTES:,} more were not copied: meta['not_copied'] has all.")
    return {"copied": copied, "not_copied": missing, "notes": notes}
