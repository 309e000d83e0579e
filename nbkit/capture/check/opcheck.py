"""Finds the first op of a step that makes a NaN, an Inf or loses all precision (opcheck)."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import pandas as pd

from nbkit.capture.check.checker import Checker
from nbkit.capture.check.discarded import Dataflow, discarded
from nbkit.capture.check.from_ranks import written_by_ranks
from nbkit.capture.check.hidden import Held, hidden, origins_of_inf, reaches_gradients
from nbkit.capture.check.origins import NOBODY
from nbkit.capture.frames.tensor_rows import dtype_text, sizes_text
from nbkit.capture.raw.recording import Recording
from nbkit.capture.recorder.needs import check_threads
from nbkit.capture.recorder.observer import Frames, Meta, Observer
from nbkit.capture.recorder.recorder import Recorder
from nbkit.capture.step.module_calls import ModuleCalls
from nbkit.findings.bad_values import GIVEN, RANKS, bad_value_findings
from nbkit.findings.finding import line_texts, with_findings
from nbkit.schema import FINDINGS
from nbkit.trace.trace import Trace

KEYS = ["op_id", "role", "position"]
MEASURED = ("kind", "role", "position", "inf_count", "message", "reads_inf", "is_masked", "cause")
SCALED = (
    "A GradScaler looked at the gradients: where they hold NaN or Inf it skips the optimizer's step and lowers its "
    "scale, so that an overflow in the backward pass of its first steps is expected."
)


class opcheck(Recorder):  # noqa: N801  a context manager is named like the function it stands for
    """Finds the ops where NaN, Inf and lost precision begin, as a context manager; gives a Trace with `findings`.

    The trace is that of `optrace`, and what runs inside computes the same bits as without it. After every aten op,
    forward, backward and optimizer, its result is looked at. `findings` has a row for each op that goes wrong by
    itself, in call order, one for all its calls from the same line and module: a NaN though no NaN went in, an Inf
    though all that went in was finite, results that fell below what their dtype can hold; and one for each tensor that
    came in with NaN or Inf, or lies in memory that was never filled. Ops that only pass them on are counted in
    `meta["propagated_ops"]`. Expected NaN/Inf constants, such as the -inf of an attention mask, made in the step or
    before, are no finding unless a NaN of them reaches the gradients, nor is what nothing keeps: a NaN or an Inf that a
    formula of torch masks, or an Inf of which the step makes nothing but integers (`meta["discarded_ops"]`).
    `nbkit.producers(trace, op_id)` tells where the inputs came from.

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
        met = [bad for bad in self.checker.bad if bad.slot < len(op_ids)]
        rows = op_ids[np.array([bad.slot for bad in met], dtype=np.int64)]
        self.bad = pd.DataFrame(
            {
                "op_id": rows,
                **{name: pd.Series([getattr(bad, name) for bad in met], dtype=object) for name in MEASURED},
                "nan_count": np.array([bad.nan_count for bad in met], dtype=np.int64),
                "dtype": [dtype_text(bad.dtype) for bad in met],
                "shape": [sizes_text(bad.shape) for bad in met],
            }
        )
        self.held = [
            each._replace(op=int(op_ids[each.op])) for each in self.checker.held if met and each.op < len(op_ids)
        ]
        for reason, count in self.checker.skipped.items():
            self.recording.skip(f"not looked at: {reason}", count)
        self._say_where(ops, rows)
        return {}, {"checked_tensors": self.checker.checked, "propagated_ops": self.checker.propagated}

    def _say_where(self, ops: pd.DataFrame, rows: np.ndarray) -> None:
        """Adds to the error that ends the step where its op is: a traceback of a backward op shows its caller only."""
        if self.checker.error is not None and len(rows):
            last = ops.iloc[rows[-1]]
            module = f"module {last['module'] or 'root'}" if isinstance(last["module"], str) else "outside modules"
            step = f", step {last['step']}" if last["step"] else ""
            source = f", {last['source']}" if isinstance(last["source"], str) else ""
            self.checker.error.add_note(f"{last['phase']}, {module}{step}{source}")

    def completed(self, frames: Frames, meta: Meta) -> tuple[Frames, Meta]:
        bad, ops, tensors = self.bad, frames["ops"], frames["tensors"]
        bad["follows_from"] = None
        is_given = (bad["cause"] == GIVEN).to_numpy(dtype=bool)
        if meta["filtered_ops"]:  # nobody knows what became of a result
            bad = bad[~is_given].reset_index(drop=True)
        else:
            thrown_away = np.zeros(len(bad), dtype=bool)
            if len(bad):
                flow = Dataflow(ops, tensors, self.recording.registry.live_storages())
                thrown_away = discarded(bad, ops, flow) | hidden(bad, ops, flow, self.held)
                thrown_away[is_given] = ~reaches_gradients(bad[is_given], ops, flow, self.held)
            bad = bad[~(thrown_away | recomputed(bad, ops, tensors, self.held))].reset_index(drop=True)
            if bad["reads_inf"].any():
                bad["follows_from"] = pd.Series(origins_of_inf(bad, flow, self.held), dtype=object)
            meta = {**meta, "discarded_ops": int((thrown_away & ~is_given).sum())}
        if bad.empty:  # as of nearly every step
            return with_findings(frames, FINDINGS.frame()), meta
        is_scaled = bool(ops["op"].str.contains("_amp_foreach_non_finite_check_and_unscale_").any())
        writers = written_by_ranks(bad, ops, tensors, self.held)
        named = with_names(bad, ops, tensors, writers).drop(index=[row for row in writers if writers[row] is None])
        findings = bad_value_findings(
            named.reset_index(drop=True), ops, line_texts(frames["lines"]), is_scaled=is_scaled
        )
        if (findings["severity"] == "hint").any():
            meta = {**meta, "notes": [*meta["notes"], SCALED]}
        return with_findings(frames, findings), meta

    def forget(self) -> None:
        del self.recording, self.checker, self.native, self.bad, self.held


def recomputed(bad: pd.DataFrame, ops: pd.DataFrame, tensors: pd.DataFrame, held: list[Held]) -> np.ndarray:
    """Returns of each bad tensor whether a backward op read it as what its forward op had made, of this form, before.

    Checkpointing computes it again, and ends that by an exception inside the last op, of which no result is seen.
    """
    told = np.zeros(len(bad), dtype=bool)
    inputs = np.flatnonzero(bad["kind"] == "input")
    if not len(inputs):
        return told
    held_at = pd.DataFrame({"op_id": [each.op for each in held], "position": [each.position for each in held]})
    made = tensors[tensors["role"] == "output"].merge(held_at, on=["op_id", "position"])
    forms = set(zip(made["op_id"], made["dtype"], made["shape"], strict=True))
    forward = ops["forward_op_id"].fillna(-1).to_numpy(dtype=np.int64)[bad["op_id"].to_numpy(dtype=np.int64)]
    for row in inputs:
        told[row] = (forward[row], bad["dtype"].iloc[row], bad["shape"].iloc[row]) in forms
    return told


def with_names(
    bad: pd.DataFrame,
    ops: pd.DataFrame,
    tensors: pd.DataFrame,
    writers: Mapping[int, str | None] = MappingProxyType({}),
) -> pd.DataFrame:
    """Returns `bad` with the parameter or buffer that an input is, also where an op read a view of it.

    The message begins with its name; else with what it probably is, from where it came in. `writers` has by row what
    other processes wrote.
    """
    parameters: list[str | None] = [None] * len(bad)
    messages, causes = bad["message"].tolist(), bad["cause"].tolist()
    inputs = np.flatnonzero(bad["kind"] == "input").tolist()
    if inputs:
        named = tensors[["storage_id", "name"]].dropna().drop_duplicates().drop_duplicates("storage_id", keep=False)
        names = dict(zip(named["storage_id"].tolist(), named["name"].tolist(), strict=True))
        known = tensors.drop_duplicates(KEYS).set_index(KEYS)["storage_id"]
    for row in inputs:
        key = tuple(bad[KEYS].iloc[row])
        parameters[row] = names.get(known.get(key))
        if row in writers:
            messages[row] = f"{parameters[row] or f'input {key[2]}'} {writers[row]}: {_bad_counts(bad.iloc[row])}"
            causes[row] = RANKS
        elif owner := parameters[row] or _guess(ops.iloc[key[0]]):
            what, is_outside, rest = messages[row].removeprefix(f"input {key[2]} is ").partition(NOBODY)
            if parameters[row] and is_outside:
                messages[row] = f"{owner} was already {what} before this step{rest}"
            else:
                messages[row] = f"{owner} {f'is {what}{NOBODY}{rest}' if is_outside else what}"
    return bad.assign(
        parameter=pd.Series(parameters, dtype=object, index=bad.index),
        message=pd.Series(messages, dtype=object, index=bad.index),
        cause=pd.Series(causes, dtype=object, index=bad.index),
    )


def _bad_counts(row: pd.Series) -> str:
    """Returns '3 NaN, shape [4]'."""
    counts = [f"{row[name]:,} {what}" for name, what in (("nan_count", "NaN"), ("inf_count", "Inf")) if row[name]]
    return f"{' and '.join(counts)}, shape {row['shape']}"


def _guess(op: pd.Series) -> str | None:
    """Returns what a tensor without a name probably is, from the op that it came into."""
    if op["phase"] == "optimizer":
        return "a gradient or the state of the optimizer"
    is_added = op["phase"] == "backward" and op["op"] == "aten.add_.Tensor"
    return "the gradient of an earlier backward pass" if is_added else None
