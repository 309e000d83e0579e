"""What a summary, a brief and a report say of two executions side by side: do they agree, and if not, where."""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from nbkit import units
from nbkit.schema import ALIGNMENT
from nbkit.trace.trace import Trace
from nbkit.views.statements.statement import Link, Statement, Tone, Words
from nbkit.views.summary.names import ROOT, shown

ALONE = {"left": "-", "right": "+"}
SIDES = ("left", "right")
LONGEST = 500


def alignment_statements(trace: Trace) -> list[Statement]:
    """Returns the statement for the first screen of a report, and what is on one side only."""
    return [*agreement_statements(trace), Statement("What only one side has", tuple(_alone(_rows(trace))))]


def agreement_statements(trace: Trace) -> list[Statement]:
    """Says whether two executions agree; neither bad nor good where too little is known."""
    if trace.meta.get("verb") != "opalign":
        return []
    meta, rows, ended = trace.meta, _rows(trace), ended_sides(trace.meta)
    tone: Tone = ""
    if first := meta.get("first_divergence"):
        verdict, tone = _diverging(rows, first), "bad"
    elif ended:
        verdict = ended_words(rows, ended)
    else:
        verdict = _agreeing(rows, meta)
        is_same = (rows["mark"] == "=").any() and not (rows["mark"] == "~").any()
        tone = "good" if is_same and not meta.get("doubts") else ""
    words = (*verdict, *_doubts(meta), *_not_known(meta), *_ended_early(meta))
    return [Statement("Do both agree", words, tone, is_first=True)]


def alignment_link(text: str, row: int) -> Link:
    """Makes words that lead to a row of the frame `alignment`."""
    return Link(text, "alignment_table", row)


def side_place(about: Mapping[str, Any] | None) -> str:
    """Names where a side diverges: module and op; the name of the result where neither is known."""
    if not about:
        return "a result that it does not have"
    module, op = about.get("module"), about.get("op")
    name = shown(str(about.get("name") or "a result"))
    if module is None:
        return f"{name} ({shown(str(op))})" if op else name
    return f"{shown(str(module)) if module else ROOT} ({shown(str(op))})" if op else shown(str(module)) or ROOT


def _rows(trace: Trace) -> pd.DataFrame:
    return ALIGNMENT.check(trace.frames.get("alignment", ALIGNMENT.frame()))


def _agreeing(rows: pd.DataFrame, meta: Mapping[str, Any]) -> Iterator[Words]:
    counts = rows["mark"].value_counts()
    same, other = int(counts.get("=", 0)), int(counts.get("~", 0))
    known = f"{units.count(same + other)} of {units.counted(len(rows), 'result')} correspond"
    if not same and not other:
        yield ("Nothing of one corresponds to anything of the other, so that nothing was compared.",)
    elif not other and not meta.get("doubts"):
        if about := meta.get("one_sided"):
            yield (f"The two agree as far as {shown(str(about['dtype']))} tells: {known}. {_one_sided(about)}",)
        else:
            yield (f"The two agree: {known} and no value differs beyond rounding.",)
    elif not other:
        yield (f"No difference beyond rounding was found: {known}.",)
    elif (meta.get("not_known") or {}).get("results") == other:
        yield (
            f"{known}: the values of {units.count(same)} agree, and of {units.count(other)} only statistics are known.",
        )
    else:
        if sentence := _unread(rows):
            yield (f"No output differs beyond rounding: {known}. {sentence}",)
            return
        differ = int((rows["mark"].eq("~") & rows["output_error"].gt(0)).sum())
        rest = f"{units.count(other - differ)} cannot be compared (no values or NaN)"
        parts = [f"{units.count(differ)} differ"] * bool(differ) + [rest] * (other > differ)
        end = "where a difference begins was not found" if differ else "no difference found"
        yield (f"{' and '.join(parts)}; {end}. {known}, and {units.count(same)} agree.",)


def _unread(rows: pd.DataFrame) -> str:
    """Names the parameters and other state that differ, if nothing else does: the call did not read what differs."""
    other = rows[rows["mark"].eq("~")]
    if not (other["kind"].isin(["parameter", "buffer", "constant"]) & other["output_error"].gt(0)).all():
        return ""
    verb = "has" if len(other) == 1 else "have"
    folded = rows[rows["relation"].eq("folded") & rows["kind"].isin(["parameter", "buffer"])]
    text = f"{_some(other)} {verb} other values, which changed nothing with these inputs"
    if not len(folded):
        return f"{text}."
    return f"{text}: {_some(folded)} {'is' if len(folded) == 1 else 'are'} folded into what the other side has."


def _some(rows: pd.DataFrame) -> str:
    """Returns '1.weight and 3 more'."""
    return f"{shown(str(rows['name'].iloc[0]))}{units.and_more(len(rows) - 1)}"


def _one_sided(about: Mapping[str, Any]) -> str:
    """Says which ops one side alone has in a dtype whose rounding may hide what they do."""
    names = [shown(str(name)) for name in about["names"]]
    more = f" and {units.counted(len(names) - 1, 'other op')}" if len(names) > 1 else ""
    verbs = ("is", "changes") if len(names) == 1 else ("are", "change")
    return (
        f"{names[0]}{more} {verbs[0]} on one side only and {verbs[1]} results by up to "
        f"{units.general(float(about['error']), 2)}, no more than rounding in that dtype may."
    )


def _doubts(meta: Mapping[str, Any]) -> Iterator[Words]:
    """Yields what stands against it that two agree in which no difference was found."""
    for sentence in meta.get("doubts") or ():
        yield (shown(str(sentence), LONGEST),)


def _not_known(meta: Mapping[str, Any]) -> Iterator[Words]:
    """Says of how many pairs no values are known, whether their statistics agree, and what helps."""
    about = meta.get("not_known")
    if not about:
        return
    number, differ = int(about["results"]), int(about["differ"])
    said = "agree"
    if differ:
        first, error = shown(str(about["first"])), units.general(float(about["error"]), 2)
        said = f"differ by more than rounding in {units.count(differ)} of them, first in {first} (by {error})"
    yield (
        f"The values of {units.counted(number, 'pair')} are not known on both sides, and their statistics {said}. "
        f"To compare values, give a larger kept_bytes, or compare smaller modules.",
    )


def _diverging(rows: pd.DataFrame, first: Mapping[str, Any]) -> Iterator[Words]:
    row = first.get("row")
    sides = [first.get(side) for side in SIDES]
    place = side_place(next(filter(None, sides), None))
    where: str | Link = place if row is None else alignment_link(place, int(row))
    what = _what(first)
    yield "A difference shows at " if first.get("unknown") else "First difference: ", where, f"{what}."
    yield (f"{_around(rows, row)}.",)
    if details := _details(first):
        yield (details,)
    texts = [_side(about) if about else None for about in sides]
    named = [("Both", texts[0])] if texts[0] == texts[1] else [*zip(("Left", "Right"), texts, strict=True)]
    for name, text in named:
        if text:
            yield (f"{name}: {text}.",)


def _what(first: Mapping[str, Any]) -> str:
    """Says what is another one there, and by how much the result differs."""
    if kind := first.get("kind_message"):
        error = _figure(first.get("error"))
        sentence = shown(str(kind), LONGEST).removesuffix(".")
        begins = sentence.split(" ", 1)[0]
        text = f"{begins.lower()}{sentence.removeprefix(begins)}" if begins == "The" else sentence
        return f", {text}{f'; relative error {error}' if error else ''}"
    message = shown(str(first.get("message") or ""), LONGEST).removesuffix(".")
    return f": {message}" if message else ""


def _around(rows: pd.DataFrame, row: Any) -> str:
    """Says how many results before the first difference agree, and how many after it inherit it."""
    place = len(rows) if row is None else int(row)
    is_same, classes = rows["mark"] == "=", rows["error_class"]
    before = int(is_same.iloc[:place].sum())
    after = rows["mark"].eq("~") & (rows.index > place)
    inherited, own = int((after & classes.eq("propagated")).sum()), int((after & classes.isin(["local", "both"])).sum())
    later = f"{units.counted(own, 'later result')} {'has a' if own == 1 else 'have'} further "
    parts = [
        f"{units.counted(before, 'result')} before it {'agrees' if before == 1 else 'agree'}",
        f"{units.count(inherited)} after it {'inherits' if inherited == 1 else 'inherit'} it",
        *(
            [f"{later}{'difference' if own == 1 else 'differences'} of {'its' if own == 1 else 'their'} own"]
            if own
            else []
        ),
    ]
    return ", ".join(parts)


def _details(first: Mapping[str, Any]) -> str:
    """Names the kind, and says how large the difference was before, if there was one, and what of it begins there."""
    error, before, local = (_figure(first.get(name)) for name in ("error", "error_before", "local_error"))
    parts = [
        f"Kind: {shown(str(first['kind']))}." if first.get("kind") else "",
        f"What it reads differs by {before}." if error and before and first["error_before"] > 0 else "",
        f"{local} of the difference begins there." if local and local != error else "",
    ]
    return " ".join(filter(None, parts))


def _figure(value: Any) -> str | None:
    return None if units.is_null(value) else units.general(float(value), 3)


def _side(about: Mapping[str, Any]) -> str:
    """Names result, op and line of one side."""
    place, name, source = side_place(about), about.get("name"), about.get("source")
    is_new = name and not place.startswith(shown(str(name)))
    parts = [place, f"result {shown(str(name))}" if is_new else "", shown(str(source)) if source else ""]
    return ", ".join(filter(None, parts))


def _ended_early(meta: Mapping[str, Any]) -> Iterator[Words]:
    for side in SIDES:
        if error := (meta.get(side) or {}).get("error"):
            yield (f"The {side} side ended early, and only what it computed until then is compared: "
                   f"{shown(str(error), LONGEST).removesuffix('.')}.",)  # fmt: skip


def _alone(rows: pd.DataFrame) -> Iterator[Words]:
    """Says how many results only one side has, and why."""
    for mark, side, other in (("-", "left", "right"), ("+", "right", "left")):
        mine = rows[rows["mark"] == mark]
        if len(mine):
            counts = mine["relation"].value_counts()
            reasons = {
                "folded": (f"is a step to what the {other} side has", f"are steps to what the {other} side has"),
                "constant": ("is a constant", "are constants"),
                "unused": ("is made into no output", "are made into no output"),
            }
            parts = [
                f"{units.count(int(counts[one]))} {texts[int(counts[one] > 1)]}"
                for one, texts in reasons.items()
                if one in counts
            ]
            more = f": {', '.join(parts)}" if parts else ""
            yield (f"{units.counted(len(mine), 'result')} on the {side} only{more}.",)


def ended_sides(meta: Mapping[str, Any]) -> list[str]:
    """Returns which sides of an alignment ended early: left, right."""
    return [side for side in ALONE if (meta.get(side) or {}).get("error")]


def ended_words(rows: pd.DataFrame, ended: list[str]) -> Iterator[Words]:
    """Yields up to where the sides correspond, and the first result behind that differs or that only one has."""
    is_op, is_same = rows["kind"].eq("op").fillna(False), rows["mark"].eq("=")
    sides = " and the ".join(ended)
    yield (f"It is not known whether the two agree, because the {sides} side ended early.",)
    agreeing = rows[is_op & is_same]
    if len(agreeing):
        row = agreeing.iloc[-1]
        yield (f"{units.counted(int(is_same.sum()), 'result')} of both agree, up to {_named(row, 'left')}.",)
    else:
        yield ("No result of an op corresponds to one of the other side.",)
    alone = rows["mark"].isin([ALONE[side] for side in ended]) & rows["relation"].isna()
    others = rows[is_op & (rows["mark"].eq("~") | alone)]
    if len(others):
        row = others.iloc[0]
        if row["mark"] == "~":
            yield (f"The first pair that differs, or of which no values are known, is {_named(row, 'left')}.",)
            return
        side, other = ("left", "right") if row["mark"] == "-" else ("right", "left")
        yield (f"The first result of the {side} side that the {other} one does not have is {_named(row, side)}.",)


def _named(row: "pd.Series[Any]", side: str) -> str:
    """Names the result of a row with its op, module and line on one side."""
    prefix = "" if side == "left" else "right_"
    name, op, module, source = (row[f"{prefix}{column}"] for column in ("name", "op", "module", "source"))
    where = [shown(str(op))] if isinstance(op, str) else []
    where += [f"in {shown(module) if module else ROOT}"] if isinstance(module, str) else []
    where += [shown(source)] if isinstance(source, str) else []
    return f"{shown(str(name))} ({', '.join(where)})" if where else shown(str(name))
