"""Upgrades what older versions of nbkit saved: columns, values and meta that have other names today."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from nbkit.schema import TEXT

# Names until schema version 1, by frame.
COLUMNS = {"diffs": {"injected_error": "local_error", "inherited_error": "propagated_error"}}
ERROR_CLASSES = {"injected": "local", "inherited": "propagated", "given": "input"}
META = {
    "kept": "captured",
    "half_lost": "half_precision_lost_at",
    "inherited_ops": "propagated_ops",
    "parted_integers": "diverged_integers",
    "unread": "skipped_lines",
}
CAPTURED = {"not_kept": "not_captured"}
# Errors whose messages are nbkit's own; milestones have no type.
OURS = (None, "NonFiniteError")


def upgraded_frame(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Returns a frame of schema version 1 with the columns and values of today."""
    frame = frame.rename(columns=COLUMNS.get(name, {}))
    if "error_class" in frame:
        frame["error_class"] = frame["error_class"].replace(ERROR_CLASSES)
    if name in ("diffs", "findings"):
        frame["message_values"] = frame["message"].map(_all_of_it, na_action="ignore").astype(TEXT)
    return frame


def with_steps(frames: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Returns the frames of a trace with the column `step` of `findings`, which some of schema version 2 lack, too."""
    findings = frames.get("findings")
    if findings is None or "step" in findings or "ops" not in frames:
        return dict(frames)
    steps = frames["ops"]["step"].reindex(findings["op_id"]).to_numpy()
    findings = findings.copy()
    findings.insert(findings.columns.tolist().index("source"), "step", steps)
    return {**frames, "findings": findings}


def _all_of_it(message: str) -> str:
    """Returns `message_values` of a message that does not say where it holds elements: anywhere, for all we know."""
    return f"[[0, {len(message)}]]"


def upgraded_meta(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the meta of schema version 1 with the keys of today."""
    upgraded = {META.get(key, key): value for key, value in meta.items()}
    if isinstance(upgraded.get("captured"), dict):
        upgraded["captured"] = {CAPTURED.get(key, key): value for key, value in upgraded["captured"].items()}
    for key in ("first_divergence", "largest_growth", "half_precision_lost_at"):
        if isinstance(upgraded.get(key), dict):
            names = COLUMNS["diffs"]
            upgraded[key] = {names.get(field, field): value for field, value in upgraded[key].items()}
    for key in ("first_divergence", "largest_growth", "half_precision_lost_at", "error"):
        part = upgraded.get(key)
        if isinstance(part, dict) and isinstance(part.get("message"), str) and part.get("type") in OURS:
            upgraded[key] = {**part, "message_values": _all_of_it(part["message"])}
    return upgraded
