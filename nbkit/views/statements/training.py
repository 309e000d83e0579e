"""Says of the parameters of a training step how many got a gradient and moved, as opaudit read them."""

from collections.abc import Iterator

import pandas as pd

from nbkit import units
from nbkit.findings.causes import causes_in
from nbkit.schema import OPS, PARAMETERS
from nbkit.trace.trace import Trace
from nbkit.views.statements.statement import Chip, Statement, no_fault
from nbkit.views.summary.names import shown

MOST_MODELS = 5


def _parameters(trace: Trace) -> pd.DataFrame:
    """Returns the rows of parameters, each once: those that are another one by another name are left out."""
    rows = PARAMETERS.check(trace.frames.get("parameters", PARAMETERS.frame()))
    return rows[(rows["kind"] == "parameter") & rows["tied_with"].isna()]


def training_statements(trace: Trace) -> list[Statement] | None:
    """Says of each model how many parameters there are, how many got a gradient and moved."""
    rows = _parameters(trace)
    models = [_trained(trace, str(model), of) for model, of in rows.groupby("model", sort=False)]
    if not models:
        return None
    more = len(models) - MOST_MODELS
    told = [*models[:MOST_MODELS], *([units.counted(more, "more model")] if more > 0 else [])]
    if unaudited := int(trace.meta.get("unaudited_parameters", 0)):
        are = "is" if unaudited == 1 else "are"
        further = units.counted(unaudited, "further parameter")
        told.append(f"{further} that an optimizer steps {are} in no module that was looked at")
    return no_fault(f"{'; '.join(told)}.")


def _trained(trace: Trace, model: str, of: pd.DataFrame) -> str:
    is_trained = of["requires_grad"]
    whole, trained = len(of), int(is_trained.sum())
    parameters = f"{units.counted(whole, 'parameter')} of {shown(model)}"
    if not trained:
        moved = int((of["changed_fraction"].fillna(0) > 0).sum())
        return f"{parameters}: all are frozen" + (f", and {_share(moved, whole)} moved" if moved else "")
    if trained < whole:
        parameters += f", {units.count(whole - trained)} of them frozen"
    return f"{parameters}: {_moved(trace, of, trained, None if trained == whole else trained)}"


def _moved(trace: Trace, of: pd.DataFrame, trained: int, among: int | None) -> str:
    """Says how many of the parameters that are trained got a gradient and moved; `among` is told where others are."""
    is_trained, has_moved = of["requires_grad"], (of["changed_fraction"].fillna(0) > 0).to_numpy(dtype=bool)
    is_moved = is_trained & has_moved
    with_gradient = int((is_trained & of["gradient"].isin(["zero", "finite", "non_finite"])).sum())
    moved, steps = int(is_moved.sum()), trace.meta.get("optimizer_steps")
    ops, share = trace.frames.get("ops", OPS.frame()), _share(with_gradient, trained, among)
    has_backward = not len(ops) or bool((ops["phase"] == "backward").any())
    unread = int((is_trained & of["gradient"].isna()).sum())
    if not with_gradient and unread == trained:
        return "their gradients cannot be read"
    if not with_gradient and not has_moved.any():
        is_aside = bool(steps) and not (of.loc[is_trained, "in_optimizer"].fillna(1) > 0).any()
        left = f"none had a gradient {'when the optimizer stepped' if steps and not is_aside else 'at the end'}"
        left += ", and no optimizer holds them" if is_aside else ""
        return left if has_backward else "no gradient was computed"
    if with_gradient and not has_backward:
        return f"{share} {'has' if with_gradient == 1 else 'have'} a gradient, and no backward pass was recorded"
    if unread:
        share += f" ({units.count(unread)} cannot be read)"
    if not steps:
        return f"{share} got a gradient, no optimizer stepped{_elsewhere(trace)}"
    both = "" if with_gradient == moved == trained else f"{_share(moved, trained)} "
    still = int((is_trained & ~is_moved & (of["learning_rate"] == 0)).sum())
    rates = f"; the learning rate of {_share(still, trained)} is 0" if still else ""
    frozen = int((~is_trained & has_moved).sum())
    rates += f"; {units.count(frozen)} frozen moved" if frozen else ""
    unknown = int((is_trained & of["changed_fraction"].isna()).sum())
    if unknown == trained:
        return f"{share} got a gradient{rates}; whether {'it' if trained == 1 else 'they'} moved cannot be read"
    rates += f"; whether {units.count(unknown)} moved cannot be read" if unknown else ""
    return f"{share} got a gradient and {both}moved{rates}"


def _elsewhere(trace: Trace) -> str:
    """Says of the steps of a script where optimizers stepped, if not in those that were recorded first."""
    if "steps" not in trace.frames:
        return ""
    first: list[int] = next((one["steps"] for one in trace.meta.get("recordings", [])), [])
    numbers = ", ".join(map(str, dict.fromkeys(first)))
    there = f" in step{'s' if len(set(first)) > 1 else ''} {numbers}"
    done, outside = int(trace.steps["optimizer_steps"].sum()), int(trace.meta.get("outside_steps", 0))
    times = [units.counted(done, "time") + " in others"] if done else []
    times += [units.counted(outside, "time") + " between steps"] if outside else []
    return f"{there}, but {' and '.join(times)}" if times else there


def _share(count: int, whole: int, trainable: int | None = None) -> str:
    """Returns 'all', 'none of 4' or '2 of 4'; how many are trainable where that is told, as others are frozen."""
    if trainable is None:
        return units.out_of(count, whole)
    if count == whole:
        return f"{'all' if whole > 1 else 'the'} {units.count(trainable)} trainable"
    return f"{units.out_of(count, whole)} trainable"


def training_chips(trace: Trace) -> Iterator[Chip]:
    """Yields how many errors and warnings there are."""
    if not len(trace.frames.get("parameters", ())):
        return
    severities = causes_in(trace)["severity"].value_counts()
    counts = [(name, int(severities.get(name, 0))) for name in ("error", "warning")]
    bad = ", ".join(units.counted(number, name) for name, number in counts if number)
    whole = units.counted(len(_parameters(trace)), "parameter")
    yield Chip(f"{bad} in training" if bad else f"no error or warning in {whole}", "bad" if bad else "good")
