"""Defines a finding, the rules that find them, and makes the frame of findings."""

import inspect
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pkgutil import walk_packages
from typing import Any, Literal

import numpy as np
import pandas as pd

from nbkit.schema import FINDINGS
from nbkit.schema.findings import MOST_OPS
from nbkit.schema.message import message_values

Severity = Literal["error", "warning", "hint"]
# A hint is no fault, and ends no command with a status of its own.
WRONG: tuple[Severity, ...] = ("error", "warning")
# Of an alignment, whose first sentence it is.
DIVERGENCE = "divergence"
PLACE = ("op", "module", "phase", "source")
# The verb that applies the rules of a folder here.
VERBS = {
    "collectives": "hang",
    "dataflow": "opaudit",
    "ranks": "load",
    "steps": "audit",
    "time": "optime",
    "training": "opaudit",
    "waste": "opaudit",
}


@dataclass(frozen=True)
class Finding:
    """Describes one finding; fields as in FINDINGS."""

    rule: str
    severity: Severity
    message: str
    advice: str
    op_id: int | None = None
    op: str | None = None
    parameter: str | None = None
    module: str | None = None
    phase: str | None = None
    step: int = 0
    source: str | None = None
    source_text: str | None = None
    own_source: str | None = None
    count: int = 1
    evidence: Mapping[str, Any] = field(default_factory=dict)
    effect_us: float | None = None
    effect_bytes: int | None = None


@dataclass(frozen=True, eq=False)
class Rule:
    """Holds a rule: the names, severities and verbs of its findings, and under which `condition` there is one.

    `find` looks for them; the rules of a folder are applied in the order of their `rank`.
    """

    names: tuple[str, ...]
    severities: tuple[Severity, ...]
    verbs: tuple[str, ...]
    condition: str
    rank: int = 0
    find: Callable[..., Iterable[Finding]] | None = None

    def __post_init__(self) -> None:
        RULES.append(self)

    def __call__(self, *facts: Any, **options: Any) -> list[Finding]:
        """Returns the findings of this rule."""
        return [] if self.find is None else [*self.find(*facts, **options)]

    def finding(
        self,
        message: str,
        advice: str,
        op_id: int | None = None,
        *,
        severity: Severity | None = None,
        name: str | None = None,
        **fields: Any,
    ) -> Finding:
        """Returns a finding of this rule; of several names or severities, it has that which is given.

        Raises ValueError if it is none of the rule's.
        """
        (name,) = self.names if name is None else (name,)
        (severity,) = self.severities if severity is None else (severity,)
        if name not in self.names or severity not in self.severities:
            raise ValueError(f"The rule {self.names[0]} has no {severity} {name!r}; name it where the rule is defined.")
        return Finding(name, severity, message, advice, op_id, **fields)


RULES: list[Rule] = []


def rule(
    *severities: Severity, rank: int = 0, names: tuple[str, ...] = (), verbs: tuple[str, ...] = ()
) -> Callable[[Callable[..., Iterable[Finding]]], Rule]:
    """Makes a rule of a function; it has the function's name and the folder's verb if no others are given.

    The first paragraph of the docstring is its condition, and with it its row in docs/findings.md.
    """

    def decorate(find: Callable[..., Iterable[Finding]]) -> Rule:
        condition = inspect.cleandoc(find.__doc__ or "").partition("\n\n")[0].replace("\n", " ")
        of = verbs or (VERBS[find.__module__.split(".")[2]],)
        return Rule(names or (find.__name__,), severities, of, condition, rank, find)

    return decorate


def rules_in(package: str) -> list[Rule]:
    """Returns the rules of all modules of a package, which it imports, in the order of their rank."""
    for module in walk_packages(import_module(package).__path__, f"{package}."):
        import_module(module.name)
    mine = [one for one in RULES if one.find is not None and one.find.__module__.startswith(f"{package}.")]
    return sorted(mine, key=lambda one: one.rank)


def findings_frame(findings: Iterable[Finding]) -> pd.DataFrame:
    """Returns the frame of findings."""
    rows = [
        {
            **vars(finding),
            "message_values": message_values(finding.message),
            "evidence": json.dumps(_plain(finding.evidence)),
        }
        for finding in findings
    ]
    return FINDINGS.frame(rows)


def _plain(value: Any) -> Any:
    """Returns a value as JSON has it: numbers of numpy as Python's, and NaN and Inf, which JSON lacks, as text."""
    if isinstance(value, Mapping):
        return {_plain(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    value = value.item() if isinstance(value, np.generic) else value
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def at_ops(finding: Finding, ops: pd.DataFrame, op_ids: Sequence[int], texts: Mapping[str, str]) -> Finding:
    """Returns a finding about the ops `op_ids` of `ops`, placed at the first of them; `texts` holds lines by source.

    Of how many calls the place has, `calls` in its evidence tells.
    """
    first = ops.iloc[op_ids[0]]
    where: dict[str, Any] = {name: value if isinstance(value := first[name], str) else None for name in PLACE}
    alike = pd.Series(True, index=ops.index)
    for name, value in where.items():
        alike &= ops[name].isna() if value is None else ops[name] == value
    return replace(
        finding,
        **where,
        op_id=int(op_ids[0]),
        step=int(first["step"]),
        source_text=texts.get(where["source"] or ""),
        own_source=own if isinstance(own := first["own_source"], str) else None,
        count=len(op_ids),
        evidence={"op_ids": [*map(int, op_ids[:MOST_OPS])], "calls": int(alike.sum()), **finding.evidence},
    )


def counting(finding: Finding, count: int) -> Finding:
    """Returns a finding that stands for as many parameters, or calls of a model, not for calls of its op."""
    evidence = {key: value for key, value in finding.evidence.items() if key != "calls"}
    return replace(finding, count=count, evidence=evidence)


def calls_of(evidence: object) -> int | None:
    """Returns how many calls the place of a finding has; null where its evidence does not say, or cannot be read."""
    try:
        calls = json.loads(str(evidence))["calls"]
    except (ValueError, TypeError, KeyError):
        return None
    return calls if isinstance(calls, int) else None


def with_findings(frames: Mapping[str, pd.DataFrame], findings: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Returns the frames of a trace with more findings; those of several verbs stand in the order of their ops."""
    if before := [frames["findings"]] if "findings" in frames else []:
        both = pd.concat([*before, findings], ignore_index=True)
        findings = FINDINGS.check(both.sort_values("op_id", kind="stable", ignore_index=True))
    return {**frames, "findings": findings}


def line_texts(lines: pd.DataFrame | None) -> dict[str, str]:
    """Returns the texts of the lines of code in the frame `lines`, by source; null is a recording without."""
    if lines is None:
        return {}
    pairs = zip(lines["source"].tolist(), lines["text"].tolist(), strict=True)
    return {source: text for source, text in pairs if isinstance(text, str)}


def wrong(findings: pd.DataFrame) -> pd.DataFrame:
    """Returns the findings that are errors or warnings."""
    return findings[findings["severity"].isin(WRONG)]
