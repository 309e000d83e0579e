"""Words what follows from a cause: how many further findings, and what they tell, in a line below it."""

from collections.abc import Hashable, Sequence
from typing import Any

from nbkit import units
from nbkit.findings.causes import FOLLOWS, ORIGINS, SAME_LINE, read_evidence
from nbkit.findings.training.names import some

Row = dict[Hashable, Any]
MOST_PARTS = 5
# What a tensor held, by its count in the evidence.
HELD = {"NaN": "nan_count", "Inf": "inf_count"}


def consequences_text(rows: Sequence[Row], relations: Sequence[str]) -> str:
    """Returns sentences such as '31 further errors follow from it: the loss is NaN from step 211 on.'; '' for none."""
    pairs = [*zip(rows, relations, strict=True)]
    same, following = ([row for row, how in pairs if how == wanted] for wanted in (SAME_LINE, FOLLOWS))
    return " ".join(filter(None, (_same_line(same), _following(following))))


def _same_line(rows: Sequence[Row]) -> str:
    modules = [str(row["module"]) or "the root module" for row in rows if isinstance(row["module"], str)]
    places = f": {some(modules)}" if modules else ""
    return f"The same in {units.counted(len(rows), 'other module')}{places}." if rows else ""


def _following(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    severities = {str(row["severity"]) for row in rows}
    noun = f"further {severities.pop() if len(severities) == 1 else 'finding'}"
    parts = _parts(rows)
    more = [f"{len(parts) - MOST_PARTS} more"] if len(parts) > MOST_PARTS else []
    told = "; ".join([*parts[:MOST_PARTS], *more])
    return f"{units.counted(len(rows), noun)} follow{'s' if len(rows) == 1 else ''} from it: {told}."


def _parts(rows: Sequence[Row]) -> list[str]:
    """Returns what the findings tell, those of the same kind in one part."""
    states = [row for row in rows if row["rule"] == "input"]
    made = [row for row in rows if row["rule"] in ORIGINS]
    other: dict[str, list[Row]] = {}
    for row in rows:
        if row["rule"] not in ("input", *ORIGINS):
            other.setdefault(str(row["rule"]), []).append(row)
    return [*map(_other, other.values()), *([_made(made)] if made else []), *([_states(states)] if states else [])]


def _other(rows: Sequence[Row]) -> str:
    message = str(rows[0]["message"]).removesuffix(".")
    is_word = message.split(" ")[0][1:].islower()  # and no name, such as GradScaler
    more = f" ({len(rows) - 1} more)" if len(rows) > 1 else ""
    return f"{message[:1].lower() if is_word else message[:1]}{message[1:]}{more}"


def _made(rows: Sequence[Row]) -> str:
    ops = [*dict.fromkeys(str(row["op"]) for row in rows)]
    phases = {row["phase"] for row in rows}
    where = f" ({phases.pop()})" if phases in ({"forward"}, {"backward"}) else ""
    rules = {row["rule"] for row in rows}
    what = "NaN" if rules == {"nan"} else "NaN or Inf" if "nan" in rules else "Inf"
    return f"{what} in {some(ops)}{where}"


def _states(rows: Sequence[Row]) -> str:
    names = [*dict.fromkeys(str(row["parameter"]) for row in rows if isinstance(row["parameter"], str))]
    what = units.counted(len(names), "parameter") if names else "the state of the optimizer"
    verb = "was" if len(names) < 2 else "were"
    listed = f" ({some(names)})" if names else ""
    counts = [read_evidence(row["evidence"]) for row in rows]
    held = [kind for kind, count in HELD.items() if any(one.get(count) for one in counts)]
    step = min(int(row["step"]) for row in rows)
    return f"{what} {verb} already {' or '.join(held) or 'NaN or Inf'} before step {step}{listed}"
