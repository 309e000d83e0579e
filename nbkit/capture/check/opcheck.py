"""Finds the first op of a step that makes a NaN, an Inf or loses all precision (opcheck)."""

from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from typing import Any, Literal

import numpy as np
import pandas as pd

from nbkit.capture.check.checker import Checker
from nbkit.capture.check.discarded import discarded
from nbkit.capture.frames.tensor_rows import dtype_text, sizes_text
from nbkit.capture.raw.recording import OP_FIELDS, Recording
from nbkit.capture.recorder.needs import check_threads
from nbkit.capture.recorder.observer import Frames, Meta, Observer
from nbkit.capture.recorder.recorder import Recorder
from nbkit.capture.step.module_calls import ModuleCalls
from nbkit.schema import FINDINGS, TEXT
from nbkit.schema.message import message_values
from nbkit.trace.trace import Trace

KEYS = ["op_id", "role", "position"]
FROM_OPS = ["op", "module", "phase", "step", "source"]
SCALED = (
    "A GradScaler looked at the gradients: where they hold NaN or Inf it skips the optimizer's step and lowers its "
    "scale, so that an overflow in the backward pass of its first steps is expected."
)


class opcheck(Recorder):  # noqa: N801  a context manager is named like the function it stands for
    """Finds the ops where NaN, Inf and lost precision begin, as a context manager; gives a Trace with `findings`.

    The trace is that of `optrace`, and what runs inside computes the same bits as without it. After every aten op,
    forward, backward and optimizer, its result is looked at. `findings` has a row for each op that goes wrong by
    itself, in call order: a NaN though no NaN went in, an Inf though all that went in was finite, results that fell
    below what their dtype can hold; and one for each tensor that came in with NaN or Inf, or lies in memory that was
    never filled. Ops that only pass them on are counted in `meta["propagated_ops"]`. Expected NaN/Inf constants, such
    as the -inf of an attention mask, made in the step or before, are no finding, nor is an Inf of which the step makes
    nothing but integers (`meta["discarded_ops"]`). `nbkit.producers(trace, op_id)` tells where the inputs came from.

    Args:
        stop: raise NonFiniteError right after the first op that goes wrong; the trace so far is kept.
        threads: "all" looks at the ops of every thread of the process, as optrace(threads="all") records them; not with
            `stop`.
        name: what the trace is called where it is shown.

    Raises:
        NonFiniteError: with `stop`, from the op that went wrong.

    On a device each result is waited for, which makes the step as slow as with synchronous launches.
    """

    verb = "opcheck"

    def __init__(
        self, *, stop: bool = False, threads: Literal["current", "all"] = "current", name: str | None = None
    ) -> None:
        check_threads(threads, stop)
        super().__init__(CheckObserver(stop), threads=threads, name=name)


class CheckObserver(Observer):
    """Checks what each op returns and writes; adds the frame `findings`."""

    def __init__(self, stop: bool = False) -> None:
        self.stop = stop

    def is_around(self) -> bool:
        # What torch's observer calls cannot end the step.
        return self.stop

    def below(self, recording: Recording, modules: ModuleCalls) -> AbstractContextManager[object]:
        self.recording, self.checker = recording, Checker(recording, self.stop)
        self.native = self.checker.native
        return closing(self.checker)

    def around(self, func: Any, run: Callable[..., Any]) -> Callable[..., Any]:
        return self.checker.around(func, run)

    def frames(self, trace: Trace, ops: pd.DataFrame, op_ids: np.ndarray) -> tuple[Frames, Meta]:
        recorded = [finding for finding in self.checker.findings if finding.slot // OP_FIELDS < len(op_ids)]
        rows = op_ids[np.array([finding.slot // OP_FIELDS for finding in recorded], dtype=np.int64)]
        known = ops[FROM_OPS].iloc[rows].reset_index(drop=True)
        findings = FINDINGS.frame(
            {
                "op_id": rows,
                **{name: known[name].array for name in FROM_OPS},
                "kind": [finding.kind for finding in recorded],
                "role": [finding.role for finding in recorded],
                "position": [finding.position for finding in recorded],
                "dtype": [dtype_text(finding.dtype) for finding in recorded],
                "shape": [sizes_text(finding.shape) for finding in recorded],
                "nan_count": [finding.nan_count for finding in recorded],
                "inf_count": [finding.inf_count for finding in recorded],
                "message": [finding.message for finding in recorded],
                "message_values": [message_values(finding.message) for finding in recorded],
            }
        )
        for reason, count in self.checker.skipped.items():
            self.recording.skip(f"not looked at: {reason}", count)
        self._say_where(findings)
        return {"findings": findings}, {
            "checked_tensors": self.checker.checked,
            "propagated_ops": self.checker.propagated,
            "notes": [SCALED] if _is_scaled(findings, ops) else [],
        }

    def _say_where(self, findings: pd.DataFrame) -> None:
        """Adds to the error that ends the step where its op is: a traceback of a backward op shows its caller only."""
        if self.checker.error is not None and len(findings):
            last = findings.iloc[-1]
            module = f"module {last['module'] or 'root'}" if isinstance(last["module"], str) else "outside modules"
            step = f", step {last['step']}" if last["step"] else ""
            source = f", {last['source']}" if isinstance(last["source"], str) else ""
            self.checker.error.add_note(f"{last['phase']}, {module}{step}{source}")

    def completed(self, frames: Frames, meta: Meta) -> tuple[Frames, Meta]:
        findings, tensors = frames["findings"], frames["tensors"]
        if not meta["filtered_ops"]:  # else nobody knows what became of a result
            alive = self.recording.registry.live_storages()
            thrown_away = discarded(findings, frames["ops"], tensors, alive)
            findings = findings[~thrown_away].reset_index(drop=True)
            meta = {**meta, "discarded_ops": int(thrown_away.sum())}
        return {**frames, "findings": with_names(findings, tensors)}, meta

    def forget(self) -> None:
        del self.recording, self.checker, self.native


def with_names(findings: pd.DataFrame, tensors: pd.DataFrame) -> pd.DataFrame:
    """Returns findings whose messages name the parameter or buffer an input is, also where an op read a view of it."""
    is_input = (findings["kind"] == "input").to_numpy()
    if not is_input.any():
        return findings
    named = tensors[["storage_id", "name"]].dropna().drop_duplicates().drop_duplicates("storage_id", keep=False)
    names = dict(zip(named["storage_id"].tolist(), named["name"].tolist(), strict=True))
    known = tensors.drop_duplicates(KEYS).set_index(KEYS)["storage_id"]
    messages = []
    for row, came_in in zip(findings.itertuples(index=False), is_input, strict=True):
        owner = None
        if came_in:
            storage = known.get((row.op_id, row.role, row.position))
            owner = names.get(storage) or _guess(str(row.op), str(row.phase))
        messages.append(row.message if owner is None else f"{owner} {row.message}")
    return FINDINGS.check(findings.assign(message=pd.Series(messages, dtype=TEXT)))


def _guess(op: str, phase: str) -> str | None:
    """Returns what a tensor without a name probably is, from where it came in."""
    if phase == "optimizer":
        return "a gradient or the state of the optimizer"
    return "the gradient of an earlier backward pass" if phase == "backward" and op == "aten.add_.Tensor" else None


def _is_scaled(findings: pd.DataFrame, ops: pd.DataFrame) -> bool:
    """Returns whether something went wrong in a backward pass whose gradients a GradScaler looked at."""
    is_backward = (findings["phase"] == "backward") & findings["kind"].isin(["nan", "inf", "overflow"])
    return bool(is_backward.any()) and bool(ops["op"].str.contains("_amp_foreach_non_finite_check_and_unscale_").any())
