"""Looks say what can be looked at in a step, by which verb, and what came of it."""

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite

import pandas as pd

from nbkit import units
from nbkit.analysis.values.non_finite import NonFinite, non_finite
from nbkit.divergence.milestones import off_without_fault
from nbkit.numerics.noise_ratio import HARMLESS
from nbkit.schema import DIFFS, OPS, PARAMETERS, STABILITY, TENSORS
from nbkit.trace.trace import Trace
from nbkit.views.statements.statement import Tone, Words, op_link
from nbkit.views.summary.names import line_text, short_paths, shown, shown_module

MOST_MODELS = 5
LONGEST = 300


@dataclass(frozen=True)
class Look:
    """Describes what can be looked at, and by which verb.

    `short` is the question in a word. `result` says how much was looked at and what came of it, null where it was not;
    `nothing` says so of a trace by the verb itself. What is not usual is not missed where nobody looked.
    """

    question: str
    short: str
    verb: str
    result: Callable[[Trace], str | None]
    nothing: str
    is_usual: bool = True


def _recorded_too(trace: Trace) -> set[object]:
    """Returns the verbs that recorded steps of an audit of a script, whose frames are not all in its trace."""
    return {one.get("verb") for one in trace.meta.get("recordings", [])}


def _values(trace: Trace) -> str | None:
    """Says how much opcheck examined; what it found are findings."""
    names = ("checked_tensors", "propagated_ops", "discarded_ops")
    looked, propagated, discarded = (int(trace.meta.get(name, 0)) for name in names)
    if not looked:
        return None
    if len(trace.frames.get("findings", ())):
        return f"{units.counted(looked, 'result')} checked for NaN, Inf and underflow."
    text = f"In {units.counted(looked, 'result')} no NaN, Inf or underflow began."
    if propagated:
        hold = "1 of them contains" if propagated == 1 else f"{units.count(propagated)} of them contain"
        text += f" {hold} NaN or Inf constants that are expected, such as the -Inf of a mask."
    if discarded:
        made = f"{units.counted(discarded, 'op')} made NaN or Inf that nothing keeps"
        text += f" {made}: a mask took it out, or only integers were made of it."
    return text


def _differences(trace: Trace) -> str | None:
    diffs = DIFFS.check(trace.frames.get("diffs", DIFFS.frame()))
    compared = diffs[diffs["status"] != "skipped"]
    if not len(compared):
        return "" if "opdiff" in _recorded_too(trace) else None
    tensors, reference = units.counted(len(compared), "compared tensor"), shown(str(trace.meta.get("reference", "cpu")))
    wrong = compared[~compared["status"].isin(HARMLESS)]
    if trace.meta.get("reference") == "captured bits":
        same = len(compared) - len(wrong)
        return f"{tensors}: {_share(same, len(compared))} with the captured bits, form and memory."
    if not len(wrong):
        text = f"{tensors}: {_precise(compared, reference)}{_nans(compared, reference)}"
        off = off_without_fault(trace.meta)
        against = shown(str(trace.meta.get("against")))
        return (
            text if off is None else f"{text} No op is at fault, but results are off from {against} by up to {off:.3g}."
        )
    failed = ", or could not be compared" if (wrong["status"] == "failed").any() else ""
    differ = "differs" if len(wrong) == 1 else "differ"
    return f"{units.count(len(wrong))} of {tensors} {differ} from {reference} by more than rounding allows{failed}."


def _nans(compared: pd.DataFrame, reference: str) -> str:
    """Says how many results are NaN on both sides, of which a comparison tells nothing."""
    nans = int((compared["actual_nan_count"].fillna(0) > 0).sum())
    hold = "1 of them holds" if nans == 1 else f"{units.count(nans)} of them hold"
    return f" {hold} NaN, as on {reference}: opcheck finds where it begins." if nans else ""


def _precise(compared: pd.DataFrame, reference: str) -> str:
    """Says how near right results are to the reference: those of fewer bits than their dtype has are told apart."""
    reduced = compared[compared["status"] == "reduced"]
    if reduced.empty:
        return f"none is further from {reference} than rounding allows."
    worst = reduced.iloc[int(reduced["noise_ratio"].fillna(0).to_numpy().argmax())]
    others = f" and {units.counted(len(reduced) - 1, 'other')}" if len(reduced) > 1 else ""
    have = "result has" if len(reduced) == 1 else "results have"
    near = units.count(len(compared) - len(reduced))
    why = f": {shown(worst['message'], LONGEST)}" if isinstance(worst["message"], str) else ""
    return (
        f"{near} are as near to {reference} as rounding allows. {units.count(len(reduced))} {have} less precision than "
        f"the dtype (reduced): {shown(str(worst['op']))}, {worst['noise_ratio']:.3g}x the rounding error{others}; not "
        f"counted as an error{why}."
    )


def _training(trace: Trace) -> str | None:
    """Says of each model how many parameters there are, how many got a gradient and moved."""
    rows = PARAMETERS.check(trace.frames.get("parameters", PARAMETERS.frame()))
    rows = rows[(rows["kind"] == "parameter") & rows["tied_with"].isna()]
    models = [_trained(trace, str(model), of) for model, of in rows.groupby("model", sort=False)]
    if not models:
        return None
    more = len(models) - MOST_MODELS
    told = [*models[:MOST_MODELS], *([units.counted(more, "more model")] if more > 0 else [])]
    if unaudited := int(trace.meta.get("unaudited_parameters", 0)):
        are = "is" if unaudited == 1 else "are"
        further = units.counted(unaudited, "further parameter")
        told.append(f"{further} that an optimizer steps {are} in no module that was looked at")
    return f"{'; '.join(told)}."


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
        left = f"none had a gradient {'when the optimizer stepped' if steps else 'at the end'}"
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
    """Returns 'all', 'none' or '2 of 4'; how many are trainable where that is told, as others are frozen."""
    ones = "" if trainable is None else f" {units.count(trainable)} trainable"
    if count == whole:
        return f"{'all' if whole > 1 or not ones else 'the'}{ones}"
    return f"{units.count(count) if count else 'none'} of {units.count(whole)}{' trainable' if ones else ''}"


def _times(trace: Trace) -> str | None:
    # Where the time goes is a statement of its own. The step itself is always a row.
    is_timed = trace.meta.get("verb") == "optime" and len(trace.frames.get("ops", ())) > 1
    if "step" in trace.meta:
        return ""
    if not is_timed and "optime" not in _recorded_too(trace):
        return None
    return ""


def _stability(trace: Trace) -> str | None:
    """Says how many calls ran again; those that differ are findings."""
    stability = STABILITY.check(trace.frames.get("stability", STABILITY.frame()))
    if not len(stability):
        return None
    calls = units.counted(len(stability), "call")
    differ = int((stability["run_to_run"] == "differs").sum())
    if not differ:
        return f"{calls} run again: each gave the same bits from the same inputs.{_other_bits(stability)}"
    return f"{units.count(differ)} of {calls} gave other bits from the same inputs."


def _other_bits(stability: pd.DataFrame) -> str:
    """Says how far results are off in another batch, with other threads or strides, which is rounding."""
    rows = stability[(stability["max_ulp"] > 0) & stability["beyond_rounding"].isna()]
    if rows.empty:
        return ""
    worst = rows.iloc[int(rows["max_difference_fraction"].fillna(-1).to_numpy().argmax())]
    far = worst["max_difference_fraction"]
    by = "" if not isfinite(far) else f", by up to {far:.2g} of the largest element ({shown(str(worst['op']))})"
    return f" With another batch, other threads or strides the bits of {units.counted(len(rows), 'call')} change{by}."


LOOKS = (
    Look("NaN, Inf and lost precision", "NaN", "opcheck", _values, "Not checked: no result was examined."),
    Look("results against a reference", "kernels", "opdiff", _differences, "Not compared: no tensor was compared."),
    Look(
        "parameters, gradients and dataflow of training",
        "gradients",
        "opaudit",
        _training,
        "Not audited: no module ran in the recording, and parameters outside modules are not looked at.",
    ),
    Look("bits from run to run", "bits", "opstable", _stability, "Not run again: no call was.", is_usual=False),
    Look("where the time goes", "time", "optime", _times, "Not timed: no op ran."),
)
# A timing that finds nothing to save does not say that the step is right.
JUDGES = ("opcheck", "opdiff", "opaudit", "opstable")


def seen_values(trace: Trace) -> tuple[list[Words], Tone]:
    """Says what the statistics of a trace show of NaN and Inf, and whether that is bad.

    There is nothing to say where no values were read, or where opcheck judged them.
    """
    counts = non_finite(trace.frames.get("tensors", TENSORS.frame()))
    if not counts.looked_at or trace.meta.get("checked_tensors"):
        return [], ""
    results = units.counted(counts.looked_at, "result")
    if not counts.nan_count and not counts.inf_count:
        return [(f"No NaN and no Inf in the {results} whose values were read.",)], "good"
    # A mask is made of Inf.
    return _seen(trace, counts, results), "bad" if counts.nan_count else ""


def _seen(trace: Trace, counts: NonFinite, results: str) -> list[Words]:
    kinds = (("NaN", counts.nan_count, counts.first_nan_op), ("Inf", counts.inf_count, counts.first_inf_op))
    return [
        (
            f"{units.count(number)} of {results} hold{'s' if number == 1 else ''} {name}, first that of ",
            *_op_words(trace, first),
            ".",
        )
        for name, number, first in kinds
        if first is not None
    ]


def _op_words(trace: Trace, op_id: int) -> Words:
    """Words an op as a link, with its module, phase and line."""
    columns = ("op", "module", "phase", "source", "own_source")
    op, module, phase, source, own = (trace.ops[name].iloc[op_id] for name in columns)
    where = f"in {shown_module(None, module)}" if isinstance(module, str) else "outside modules"
    line = f" ({shown(short_paths(line_text(source, own)))})" if isinstance(source, str) else ""
    return op_link(shown(op), op_id), f" {where}, {shown(phase)}{line}"
