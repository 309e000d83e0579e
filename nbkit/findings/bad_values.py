"""Makes findings of the tensors that opcheck names: where NaN, Inf and lost precision begin."""

from collections.abc import Mapping

import pandas as pd

from nbkit.findings.dataflow.masks import MEANING
from nbkit.findings.finding import PLACE, Rule, Severity, at_ops, findings_frame

SEVERITIES: dict[str, tuple[Severity, ...]] = {
    **dict.fromkeys(("nan", "inf", "overflow"), ("error", "hint")),
    **dict.fromkeys(("underflow", "saturated", "wrapped"), ("warning",)),
    "input": ("error",),
}
CONDITIONS = {
    "nan": "An op gave NaN, and none went in.",
    "inf": "An op gave Inf from finite inputs; so would the exact computation, or it cannot be told (`out=`, in-place "
    "ops on lists).",
    "overflow": "An op gave Inf where the exact result is finite: too large for the dtype, or what the op computes on "
    "its way is.",
    "underflow": "No element of a result keeps its precision: all are below the dtype's smallest normal number.",
    "saturated": "A cast gives numbers for such as its dtype does not hold: beyond the end of a float8 without Inf, "
    "finite ones beyond an integer's range.",
    "wrapped": "Arithmetic of integers of 8 or 16 bits went beyond the end of their dtype, and on from its other end.",
    "input": "A tensor came in with NaN or Inf, or lies in memory that was never filled.",
}
RULES = {kind: Rule((kind,), of, ("opcheck",), CONDITIONS[kind]) for kind, of in SEVERITIES.items()}
HANDLE = "Guard the inputs that the message names: clamp, add an eps, or mask before this op, not after it."
# By the column `cause`.
GIVEN, RANKS = "given", "ranks"
OF_CAUSE = {
    "hidden_row": f"A row of the scores is hidden as a whole: let it show one position at least. {MEANING}",
    "no_target": "Every target is ignore_index, so that the mean is over none: leave such a batch out, or add the "
    "losses up and divide by the number of targets, at least 1.",
    GIVEN: "Put a number there, or keep it out of what the loss is made of.",
    RANKS: "Run opcheck in each rank of the group: the NaN or Inf begins in one of them.",
}
ADVICE = {
    "nan": HANDLE,
    "inf": HANDLE,
    "overflow": "Compute this op in a wider dtype (float32 or bfloat16), or scale its inputs down.",
    "underflow": "Scale the values up before this op (a loss scale), or compute it in a wider dtype.",
    "saturated": "Scale the values into the range of the dtype before the cast, or clamp them if that is meant.",
    "wrapped": "Compute in a wider dtype: x.to(torch.int32), or x.float(), before this op.",
    "input": "Look where this tensor was made: it was so before this step read it.",
}
# What a step of a GradScaler expects of its backward pass.
SCALED = "Nothing, while it happens in the first steps only: GradScaler skips such a step and lowers its scale."
# What tells two tensors that an op met, or two ops, apart.
KEYS = ("kind", "role", "item", "parameter", *PLACE)
MEASURED = ("role", "position", "dtype", "shape", "nan_count", "inf_count")


def bad_value_findings(
    bad: pd.DataFrame, ops: pd.DataFrame, texts: Mapping[str, str], *, is_scaled: bool = False
) -> pd.DataFrame:
    """Returns the findings of `bad`, which has a row per tensor: op_id, kind, MEASURED, parameter, message
    and follows_from, the op whose Inf it computed with, and `cause`, a key of OF_CAUSE or null.

    With `is_scaled`, a GradScaler looks at the gradients, so that what goes wrong in the backward pass is a hint.
    """
    of_ops = ops[list(PLACE)].iloc[bad["op_id"].to_numpy()].reset_index(drop=True)
    rows = pd.concat([bad.reset_index(drop=True), of_ops], axis="columns")
    # The results of an op are one finding; each tensor of a list is worked on by itself.
    is_together = (rows["role"] == "output") & ~rows["op"].str.contains("._foreach_", regex=False)
    rows["item"] = rows["position"].mask(is_together, 0)
    findings = []
    for _, alike in rows.groupby(list(KEYS), sort=False, dropna=False):
        first = alike.iloc[0]
        is_expected = is_scaled and first["phase"] == "backward" and first["kind"] in ("nan", "inf", "overflow")
        rule = RULES[first["kind"]]
        finding = rule.finding(
            severity="hint" if is_expected else rule.severities[0],
            message=first["message"],
            advice=SCALED if is_expected else OF_CAUSE.get(first["cause"], ADVICE[first["kind"]]),
            parameter=first["parameter"] if isinstance(first["parameter"], str) else None,
            evidence={
                **{name: first[name] for name in MEASURED},
                **({} if pd.isna(origin := first.get("follows_from")) else {"follows_from": int(origin)}),
            },
        )
        findings.append(at_ops(finding, ops, alike["op_id"].unique().tolist(), texts))
    return findings_frame(findings)


def never_scaled(findings: pd.DataFrame) -> pd.DataFrame:
    """Returns findings of steps that a GradScaler skips to the end: what it was to find a scale for is an error."""
    is_expected = findings["advice"] == SCALED
    advice = findings["rule"].map(ADVICE).where(is_expected, findings["advice"])
    return findings.assign(severity=findings["severity"].mask(is_expected, "error"), advice=advice)
