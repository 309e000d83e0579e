"""Makes findings of tensors that opdiff found wrong, and of captured calls that opreplay could not repeat."""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from nbkit.divergence.milestones import off_without_fault
from nbkit.findings.finding import PLACE, Finding, Rule, Severity, at_ops, counting, findings_frame, rule
from nbkit.numerics.difference_patterns import pattern_text
from nbkit.numerics.noise_ratio import HARMLESS
from nbkit.schema.message import Message, with_values

STATUSES: dict[tuple[str, ...], tuple[tuple[Severity, ...], str]] = {
    ("mismatch",): (
        ("error",),
        "A result is further from the reference than rounding explains; of a replay: from what it was.",
    ),
    ("shape", "dtype"): (("error",), "A result has another shape, or another dtype, than on the reference."),
    ("failed",): (
        ("error", "warning"),
        "The reference raised, so that the result could not be compared: a warning; a call raises when it is run "
        "again: an error.",
    ),
}
OF_STATUS = {
    name: of
    for names, about in STATUSES.items()
    for of in [Rule(names, about[0], ("opdiff", "opreplay"), about[1])]
    for name in names
}
ADVICE = {
    "mismatch": "Capture a call of it (keep=1) and run that alone (nbkit.script_of). If it is wrong there, too, its "
    "kernel is at fault.",
    "failed": "Read the message: the reference could not run the op, so that nothing is known about its result.",
}
REPRODUCE = "Reproduce: `nbkit.script_of(trace, {})`. If the op is wrong there, too, its kernel is at fault."
MODULE_ADVICE = {
    "mismatch": "Compare the ops in the module: opdiff(modules=...) with the default level names the op at fault.",
    "failed": "Read the message: the module could not be compared, so that nothing is known about its result.",
}
LOST = 0.5  # of the norm of a result: nothing of it is right
ADVICE_OFF = (
    "Rounding of this dtype adds up, or values underflow to 0. Compute what follows in a wider dtype; of gradients, "
    "scale the loss (torch.amp.GradScaler) or train in bfloat16."
)
MEASURED = ("role", "position", "dtype", "shape", "noise_ratio", "max_abs_error", "max_rel_error", "mismatch_count")


def difference_findings(
    diffs: pd.DataFrame,
    ops: pd.DataFrame,
    texts: Mapping[str, str],
    reference: str,
    captured: Collection[int] = (),
    strides: Mapping[int, Mapping[str, Sequence[int]]] = MappingProxyType({}),
) -> pd.DataFrame:
    """Returns the findings of all tensors in `diffs` that are wrong, or that could not be compared.

    `captured` are the op_ids of calls from which a script can be made, `strides` those of inputs by op_id and name with
    which a call is wrong, and right with contiguous copies. Where an op has several findings, `of_op` in
    their evidence says what its calls have in common.
    """
    findings = []
    found = [*_differences(diffs, ops, reference, ADVICE)]
    wrong = Counter(finding.rule == "mismatch" and worst["op"] for (finding, *_), worst in found)
    for (finding, _, op_ids), worst in found:
        placed = at_ops(finding, ops, op_ids, texts)
        at = next((op_id for op_id in op_ids if op_id in captured), None)
        if finding.rule == "mismatch" and at is not None:
            placed = replace(placed, advice=REPRODUCE.format(at))
        if finding.rule == "mismatch" and wrong[worst["op"]] > 1:
            placed = replace(placed, evidence={**placed.evidence, "of_op": _of_op(diffs, worst["op"])})
        if (strided := next((strides[op_id] for op_id in op_ids if op_id in strides), None)) is not None:
            placed = _with_strides(placed, strided)
        findings.append(placed)
    return findings_frame(findings)


def _with_strides(finding: Finding, strides: Mapping[str, Sequence[int]]) -> Finding:
    copies = "a contiguous copy" if len(strides) == 1 else "contiguous copies"
    listed = ", and ".join(f"{name}, whose strides are {[*sizes]}" for name, sizes in strides.items())
    return replace(
        finding,
        message=f"{finding.message}; it is right with {copies} of {listed}",
        advice=f"{finding.advice} Until that is mended, give it {copies}: .contiguous().",
        evidence={**finding.evidence, "strides": {name: [*sizes] for name, sizes in strides.items()}},
    )


def _of_op(diffs: pd.DataFrame, op: str) -> str:
    """Returns what is common to the wrong calls: 'outputs 0 and 2 of all 6 calls are wrong, output 1 is right'."""
    is_wrong = ~diffs["status"].isin(HARMLESS)
    rows = diffs[(diffs["op"] == op) & (diffs["status"] != "skipped")]
    bad, calls = rows[is_wrong[rows.index]], rows["op_id"].nunique()
    wrong, right = _tensors(bad), sorted(set(_tensors(rows)) - set(_tensors(bad)))
    count = bad["op_id"].nunique()
    all_calls = f"all {calls:,} calls" if calls > 1 else "the call"
    of = all_calls if count == calls else f"{count:,} of {calls:,} calls"
    alike = {pattern_text(found["pattern"], found["pattern_evidence"]) for found in _patterns(bad)}
    others = diffs[~is_wrong & (diffs["status"] != "skipped")]
    is_in_one = bad["phase"].nunique() == 1 and (others["phase"] != bad["phase"].iloc[0]).any()
    return "".join(
        [
            f"{_listed(wrong)} of {of} {'is' if len(wrong) == 1 else 'are'} wrong",
            f", {_listed(right)} {'is' if len(right) == 1 else 'are'} right" if right else "",
            f", {bad['phase'].iloc[0]} only" if is_in_one else "",
            f": each {alike.pop()}" if len(alike) == 1 and bad["pattern"].notna().all() else "",
        ]
    )


def _patterns(rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    return filter(None, (pattern_of(row) for _, row in rows.iterrows()))


def _tensors(rows: pd.DataFrame) -> list[tuple[str, int]]:
    return sorted({(_what(row).rpartition(" ")[0], int(row["position"])) for _, row in rows.iterrows()})


def _listed(tensors: Sequence[tuple[str, int]]) -> str:
    """Returns 'outputs 0 and 2'."""
    parts = []
    for what in dict.fromkeys(what for what, _ in tensors):
        numbers = [str(position) for other, position in tensors if other == what]
        names = f"{', '.join(numbers[:-1])} and {numbers[-1]}" if len(numbers) > 1 else numbers[0]
        noun = what if len(numbers) == 1 else what.replace("output", "outputs").replace("input", "inputs")
        parts.append(f"{noun} {names}")
    return " and ".join(parts)


def module_difference_findings(
    diffs: pd.DataFrame, ops: pd.DataFrame, texts: Mapping[str, str], reference: str
) -> pd.DataFrame:
    """Returns the same where each row of `diffs` is a tensor of a module's call, at its first op."""
    findings = []
    for (finding, _, op_ids), worst in _differences(diffs, ops, reference, MODULE_ADVICE):
        place = {name: worst[name] for name in ("op", "module", "phase")}
        findings.append(counting(replace(at_ops(finding, ops, op_ids, texts), **place), len(op_ids)))
    return findings_frame(findings)


def _differences(
    diffs: pd.DataFrame, ops: pd.DataFrame, reference: str, advice: Mapping[str, str]
) -> Iterator[tuple[tuple[Finding, pd.DataFrame, list[int]], pd.Series]]:
    """Yields each finding with `ops` and the op_ids it is at, and the worst row of `diffs` that it stands for."""
    at = np.flatnonzero(~diffs["status"].isin(HARMLESS))
    if not len(at):  # as nearly always, and to group no rows takes as long as to compare an op
        return
    rows = diffs.iloc[at].assign(row=at)
    rows["source"] = ops["source"].to_numpy(object)[rows["op_id"].to_numpy()]
    for _, alike in rows.groupby(["status", "role", "position", "pattern", *PLACE], sort=False, dropna=False):
        worst = alike.iloc[int(alike["noise_ratio"].fillna(np.inf).to_numpy().argmax())]
        finding = OF_STATUS[worst["status"]].finding(
            name=worst["status"],
            severity="warning" if worst["status"] == "failed" else "error",
            message=_message(worst, reference),
            advice=advice.get(worst["status"], advice["mismatch"]),
            evidence={
                "diffs_rows": alike["row"].tolist(),
                **{name: worst[name] for name in MEASURED if not pd.isna(worst[name])},
                **pattern_of(worst),
            },
        )
        yield (finding, ops, alike["op_id"].tolist()), worst


@rule("warning", "hint", verbs=("opdiff",))
def lost_precision(meta: Mapping[str, Any], ops: pd.DataFrame, texts: Mapping[str, str]) -> list[Finding]:
    """No op is at fault, and the result of one before the optimizer is off from the run `against` by a tenth of its
    norm (hint) or half of it: rounding adds up, or gradients underflow to 0.

    `meta` has the milestones. It stands at the op where half of the digits were lost.
    """
    off = off_without_fault(meta)
    if off is None:
        return []
    largest = meta["largest_error"]
    lost = meta["half_precision_lost_at"] or largest
    finding = lost_precision.finding(
        severity="warning" if off >= LOST else "hint",
        message=f"no op is at fault, but results are off from {meta['against']} by up to {off:.3g} of their norm "
        f"({largest['op']}, {largest['phase']}); half of the digits are lost here",
        advice=ADVICE_OFF,
        evidence={"total_error": off, "at_op_id": largest["op_id"], "lost_error": lost["total_error"]},
    )
    return [at_ops(finding, ops, [lost["op_id"]], texts)]


def _message(row: pd.Series, reference: str) -> str:
    """Returns what is wrong with a tensor, in one sentence."""
    what = _what(row)
    if row["status"] == "failed":
        return Message(what, " could not be compared: ", with_values(str(row["message"]), row["message_values"]))
    if row["status"] != "mismatch":
        return f"{what} has another {row['status']} than on {reference}"
    distance = _distance(row, reference)
    if found := pattern_of(row):
        return f"{what} {pattern_text(found['pattern'], found['pattern_evidence'])}, and {distance}"
    return f"{what} {distance}"


def _what(row: pd.Series) -> str:
    """Returns what a row is about; of a module's parameters and buffers the message begins with the name."""
    if row["role"] == "parameter_gradient" and isinstance(row["message"], str):
        return str(row["message"]).partition(";")[0]
    if row["role"] == "buffer" and isinstance(row["message"], str):
        return f"buffer {str(row['message']).partition(';')[0]}"
    return f"{'gradient of input' if row['role'] == 'input_gradient' else row['role']} {row['position']}"


def _distance(row: pd.Series, reference: str) -> str:
    """Returns the predicate that says how far off a mismatched tensor is."""
    if np.isinf(row["noise_ratio"]):
        return f"has NaN, Inf or integers where {reference} has others"
    if pd.isna(row["noise_ratio"]):
        return f"differs from {reference} by more than the tolerance that was set"
    ratio = float(f"{row['noise_ratio']:.3g}")
    times = f"{ratio:,.0f}" if 100 <= ratio < 1e9 else f"{ratio:.3g}"
    device, _, dtype = reference.partition(":")
    where = ", ".join(filter(None, (device.upper() if device == "cpu" else device, dtype)))
    return f"is off by {times}x the rounding error (reference: {where})"


def pattern_of(row: pd.Series) -> dict[str, Any]:
    """Returns the pattern of a row of `diffs` and its evidence as data; nothing where it has none."""
    if not isinstance(row["pattern"], str):
        return {}
    return {"pattern": row["pattern"], "pattern_evidence": json.loads(row["pattern_evidence"])}


REPEAT = (
    "Run the call again with repeats, and with threads and device as they were: a result that changes from run to run "
    "is the kernel's; one that is always this one comes from what differs between the two places (torch, CPU, device)."
)


def replay_findings(diffs: pd.DataFrame, ops: pd.DataFrame) -> pd.DataFrame:
    """Returns a finding for each op, module and line whose replayed results are not the captured ones."""
    at = np.flatnonzero(~diffs["status"].isin(HARMLESS))
    rows = diffs.iloc[at].assign(row=at)
    rows["source"] = ops["source"].to_numpy(object)[rows["op_id"].to_numpy()]
    findings = []
    for _, alike in rows.groupby(["status", "role", "position", *PLACE], sort=False, dropna=False):
        first = alike.iloc[0]
        finding = OF_STATUS[first["status"]].finding(
            name=first["status"],
            severity="error",
            message=Message(
                f"{first['role']} {first['position']} is not what it was in the step: ",
                with_values(str(first["message"]), first["message_values"]),
            ),
            advice=REPEAT,
            evidence=evidence_of(alike),
        )
        findings.append(at_ops(finding, ops, alike["op_id"].tolist(), {}))
    return findings_frame(findings)


def evidence_of(rows: pd.DataFrame) -> Mapping[str, object]:
    """Returns where the rows are in `diffs`, and how far off the first one is, as far as that was measured."""
    measured = ("noise_ratio", "max_abs_error", "max_ulp", "mismatch_count")
    known = {name: rows[name].iloc[0] for name in measured if not pd.isna(rows[name].iloc[0])}
    return {"diffs_rows": rows["row"].tolist(), **known}
