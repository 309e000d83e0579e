"""Upgrades what older versions of nbkit saved: columns, values and meta that have other names today."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from nbkit.findings.bad_values import MEASURED, bad_value_findings
from nbkit.findings.differences import difference_findings
from nbkit.schema import TABLES, TEXT
from nbkit.schema.message import with_values
from nbkit.schema.table import MISSING

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
BAD = ["op_id", "kind", *MEASURED, "parameter", "message", "cause"]
# Columns that versions since 3 brought, by frame.
NEW = {
    "ops": ("arguments", "input_dtypes", "input_strides", "own_source", "status"),
    "alignment": ("arguments",),
    "tensors": ("state_name",),
    "memory": ("reserved_bytes", "stream", "address", "stack_id"),
    "diffs": ("pattern", "pattern_evidence"),
    "findings": ("own_source",),
    "stability": ("max_difference_fraction", "beyond_rounding", "documented"),
}
CAPTURED = {"not_kept": "not_captured"}
# Errors whose messages are nbkit's own; milestones have no type.
OURS = (None, "NonFiniteError")


def upgraded_frame(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Returns a frame of schema version 1 with the columns and values of version 2."""
    frame = frame.rename(columns=COLUMNS.get(name, {}))
    if "error_class" in frame:
        frame["error_class"] = frame["error_class"].replace(ERROR_CLASSES)
    if name in ("diffs", "findings"):
        frame["message_values"] = frame["message"].map(_all_of_it, na_action="ignore").astype(TEXT)
    return frame


def upgraded_frames(frames: Mapping[str, pd.DataFrame], meta: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    """Returns the frames of schema version 2 as today: opcheck's findings had a row per tensor, and opdiff had none."""
    frames = dict(frames)
    if "ops" not in frames:
        return frames
    ops, bad, diffs = frames["ops"], frames.get("findings"), frames.get("diffs")
    if bad is not None:
        messages = [*map(with_values, bad["message"].tolist(), bad["message_values"].tolist())]
        bad = bad.assign(message=pd.Series(messages, dtype=object), parameter=None, cause=None)
        return {**frames, "findings": bad_value_findings(bad[BAD], ops, {})}
    if diffs is not None:
        return {**frames, "findings": difference_findings(diffs, ops, {}, str(meta.get("reference", "the CPU")))}
    return frames


def with_new_columns(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Returns a frame with the columns that its version had not yet, as null."""
    missing = [column for column in NEW.get(name, ()) if column not in frame]
    table = TABLES[name]
    if not missing or not {*table.names} <= {*frame, *missing}:  # the latter is upgraded as a whole
        return frame
    dtypes = {column.name: column.dtype for column in table.columns}
    return frame.assign(**{column: MISSING[dtypes[column]](len(frame)) for column in missing})[table.names]


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
