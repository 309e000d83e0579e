"""Says what is known of NaN and Inf in a step: what opcheck found, and what statistics of tensors show."""

from collections.abc import Iterator

from nbkit import units
from nbkit.analysis.values.non_finite import NonFinite, non_finite
from nbkit.findings.causes import causes_in
from nbkit.schema import TENSORS
from nbkit.trace.once import once_per_view
from nbkit.trace.trace import Trace
from nbkit.views.statements.statement import Chip, Statement, Words, no_fault, op_link
from nbkit.views.summary.names import line_text, short_paths, shown, shown_module

# What opcheck's rules find, in the words of a chip.
KINDS = {
    "nan": "NaN begins in {}",
    "inf": "Inf begins in {}",
    "underflow": "values underflow in {}",
    "saturated": "values do not fit in {}",
    "wrapped": "integers wrap in {}",
    "input": "NaN or Inf comes in at {}",
}


def checked_statements(trace: Trace) -> list[Statement] | None:
    """Says how much opcheck examined; what it found are findings."""
    names = ("checked_tensors", "propagated_ops", "discarded_ops")
    looked, propagated, discarded = (int(trace.meta.get(name, 0)) for name in names)
    if not looked:
        return None
    if len(trace.frames.get("findings", ())):
        return no_fault(f"{units.counted(looked, 'result')} checked for NaN, Inf and underflow.")
    text = f"In {units.counted(looked, 'result')} no NaN, Inf or underflow began."
    if propagated:
        hold = "1 of them contains" if propagated == 1 else f"{units.count(propagated)} of them contain"
        text += f" {hold} NaN or Inf constants that are expected, such as the -Inf of a mask."
    if discarded:
        made = f"{units.counted(discarded, 'op')} made NaN or Inf that nothing keeps"
        text += f" {made}: a mask took it out, or only integers were made of it."
    return no_fault(text)


@once_per_view
def _counts(trace: Trace) -> NonFinite:
    return non_finite(trace.frames.get("tensors", TENSORS.frame()))


def seen_statements(trace: Trace) -> list[Statement]:
    """Says what the statistics of a trace show of NaN and Inf, and whether that is bad.

    There is nothing to say where no values were read, or where opcheck judged them.
    """
    counts = _counts(trace)
    if not counts.looked_at or trace.meta.get("checked_tensors"):
        return []
    results = units.counted(counts.looked_at, "result")
    if not counts.nan_count and not counts.inf_count:
        return no_fault(f"No NaN and no Inf in the {results} whose values were read.")
    kinds = (("NaN", counts.nan_count, counts.first_nan_op), ("Inf", counts.inf_count, counts.first_inf_op))
    sentences = tuple(
        (
            f"{units.count(number)} of {results} hold{'s' if number == 1 else ''} {name}, first that of ",
            *_op_words(trace, first),
            ".",
        )
        for name, number, first in kinds
        if first is not None
    )
    # A mask is made of Inf.
    return [Statement("", sentences, "bad" if counts.nan_count else "")]


def _op_words(trace: Trace, op_id: int) -> Words:
    """Words an op as a link, with its module, phase and line."""
    columns = ("op", "module", "phase", "source", "own_source")
    op, module, phase, source, own = (trace.ops[name].iloc[op_id] for name in columns)
    where = f"in {shown_module(None, module)}" if isinstance(module, str) else "outside modules"
    line = f" ({shown(short_paths(line_text(source, own)))})" if isinstance(source, str) else ""
    return op_link(shown(op), op_id), f" {where}, {shown(phase)}{line}"


def value_chips(trace: Trace) -> Iterator[Chip]:
    """Yields in how many ops or results there is what is wrong with values, or that nothing is."""
    checked = int(trace.meta.get("checked_tensors", 0))
    if checked:
        findings = causes_in(trace)
        is_rule = [(text, findings["rule"] == rule) for rule, text in KINDS.items()]
        found = [(text, findings[of]) for text, of in is_rule if of.any()]
        for text, rows in found:
            # A hint, such as what overflows under a GradScaler, is nothing wrong.
            is_bad = (rows["severity"] != "hint").any()
            yield Chip(text.format(units.counted(len(rows), "op")), "bad" if is_bad else "")
        if not found:
            yield Chip(f"no NaN or Inf begins in {units.counted(checked, 'result')}", "good")
        return
    counts = _counts(trace)
    results = units.counted(counts.looked_at, "result")
    if counts.nan_count:
        yield Chip(f"NaN in {units.count(counts.nan_count)} of {results}", "bad")
    if counts.inf_count:
        yield Chip(f"Inf in {units.count(counts.inf_count)} of {results}", "")
