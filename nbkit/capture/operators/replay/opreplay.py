"""opreplay: run captured calls again, here, and compare what they do with what they did."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch._ops import OpOverload

from nbkit import units
from nbkit.capture.calls.collectives import RUNS
from nbkit.capture.calls.parameters import Parameters, parameter_reader
from nbkit.capture.frames.build import machine_text, now_text, versions
from nbkit.capture.operators.replay.export import export_calls
from nbkit.capture.operators.replay.frames import Replayed, replay_frames
from nbkit.capture.operators.replay.run import CallRunner
from nbkit.capture.operators.replay.verdicts import BITS, CAPTURED, Verdicts, unusable
from nbkit.capture.raw.vector_math import settle_vector_math
from nbkit.capture.replay.isolated import isolated
from nbkit.capture.replay.reference import Function
from nbkit.capture.scope.filters import EVERY_PHASE, CallNumbers, checked_calls, checked_phases
from nbkit.errors import OptionError, TraceError, first_line
from nbkit.findings.differences import difference_findings, replay_findings
from nbkit.findings.finding import with_findings
from nbkit.numerics.noise_ratio import HARMLESS, THRESHOLD
from nbkit.patterns import Patterns, op_matcher, split_patterns
from nbkit.progress import Progress
from nbkit.trace.calls.layout import Record
from nbkit.trace.calls.reading import CallFolder
from nbkit.trace.checks import checked_count
from nbkit.trace.trace import Trace

LIBRARIES = ("aten", "prims", "mkldnn", "mkl", "torchvision", "torchaudio")
# They read or write files, or hand out what an address names.
REFUSED = frozenset({"aten.from_file"})
NAME = re.compile(r"([A-Za-z_]\w*)\.([A-Za-z_]\w*)\.([A-Za-z_]\w*)", re.ASCII)
MOST_RUNS = 10**6
FILTERED = "calls that the filters leave out"
NO_PHASE = "calls whose phase the folder does not tell, as the capture did not come to its end"


def opreplay(  # noqa: PLR0913  options of a verb, by keyword
    folder: str | Path,
    *,
    against: str | Function = BITS,
    ops: Patterns = None,
    exclude_ops: Patterns = None,
    calls: CallNumbers = None,
    phases: Patterns = None,
    device: str | torch.device | None = None,
    repeats: int = 1,
    warmup: int = 0,
    tolerances: Mapping[Any, tuple[float, float]] | None = None,
    threshold: float = THRESHOLD,
    libraries: Patterns = None,
    parameters: Parameters | None = None,
    export: Path | None = None,
    name: str | None = None,
) -> Trace:
    """Runs captured calls again and compares what they do; gives a Trace with `diffs`, `replayed`, `timings`, `runs`.

    Each call runs alone, from the inputs in the folder that `nbkit.opcapture` wrote, with the generator state, threads
    and gradient mode it had; below autograd, where it was captured. Each of its results has a row in `diffs`. A call
    that cannot run, because its record is damaged, its device or op is not here, or the filters leave it out, is
    counted in `meta["skipped"]` with the reason, and the others run all the same. `meta["identical_calls"]` counts
    those that had all of the captured bits, shapes, strides and aliases.

    Nothing in the folder is executed or unpickled: values are bytes, records are JSON, and only ops that are registered
    with torch, of libraries that are known or named, are called.

    Args:
        folder: what opcapture wrote, or a trace of opdiff that was saved with values="captured".
        against: "bits", the captured results to the bit; "captured", what rounding allows around them, for another
            device or version; or a reference as in opdiff, such as "cpu:float64", or a function
            `(op, args, kwargs) -> result`.
        ops: run only ops that fit, as in optrace.
        exclude_ops: leave out ops that fit.
        calls: which calls of each op, counted from 0 in the captured step: "0", "0,2", "2:5", "10:"; all if None.
        phases: run only calls of these: forward, backward, optimizer, other; all if None.
        device: where to run; where each call was captured if None.
        repeats: how often each call runs, for its time; `runs` has the time of each run.
        warmup: how often it runs before that; these runs are left out of `timings`.
        tolerances: {op pattern | dtype | (op pattern, dtype) | "default": (atol, rtol)}, which decide instead of the
            noise ratio, as in opdiff; not with "bits".
        threshold: noise ratio above which a difference is an error; not with "bits".
        libraries: namespaces whose ops may be called beside those of torch, such as "mylib".
        parameters: the model, or its state_dict, that was captured with `parameters=`, with the values it had then.
        export: a file for the calls as BackendBench reads them: op, shapes, dtypes and arguments, equal calls once.
        name: what the trace is called where it is shown.

    Raises:
        TraceError: if the folder is absent, newer, or holds no captured calls.
        PatternError, OptionError: before anything runs.
    """
    for option, value, least in (("repeats", repeats, 1), ("warmup", warmup, 0)):
        checked_count(option, value, least, MOST_RUNS)
    wanted = Wanted(ops, exclude_ops, calls, phases)
    allowed = checked_libraries(split_patterns(libraries))
    captured = CallFolder(_path(folder), parameter_reader(parameters))
    runner = CallRunner(captured.content, _state(captured), _device(device), warmup, repeats)
    verdicts = Verdicts(against, runner, tolerances, threshold)
    settle_vector_math()
    replay = Replay(captured, wanted, allowed, runner, verdicts)
    if export is not None:
        export_calls(captured, wanted.why_not, export)
    with Progress(replay.progress, done=replay.done):
        replay.run()
    return replay.trace(name, str(against) if isinstance(against, str) else getattr(against, "__name__", repr(against)))


class Wanted:
    """Says which calls the filters mean. Raises PatternError, OptionError."""

    def __init__(self, ops: Patterns, exclude_ops: Patterns, calls: CallNumbers, phases: Patterns) -> None:
        self.include = op_matcher(ops) if split_patterns(ops) else None
        self.exclude = op_matcher(exclude_ops) if split_patterns(exclude_ops) else None
        self.calls, self.phases = checked_calls(calls), checked_phases(phases)

    def why_not(self, record: Record, place: Mapping[str, Any]) -> str | None:
        """Returns why a call is not meant, null if it is; one without a proper name or number is left for its reason
        to be told.
        """
        name, number = record.get("op"), record.get("number")
        if not isinstance(name, str) or not isinstance(number, int):
            return None
        if not self._is_named(name) or not (self.calls is None or self.calls(number)):
            return FILTERED
        if self.phases == EVERY_PHASE or (phase := place.get("phase")) in self.phases:
            return None
        return FILTERED if phase in EVERY_PHASE else NO_PHASE

    def _is_named(self, name: str) -> bool:
        is_excluded = self.exclude is not None and self.exclude(name)
        return not is_excluded and (self.include is None or self.include(name))


class Replay:
    """Runs the calls of a folder one after the other; what one of them does never ends the rest."""

    def __init__(
        self, folder: CallFolder, wanted: Wanted, libraries: Sequence[str], runner: CallRunner, verdicts: Verdicts
    ) -> None:
        self.folder, self.wanted, self.libraries = folder, wanted, libraries
        self.runner, self.verdicts = runner, verdicts
        self.skipped: Counter[str] = Counter()
        self.unreadable = 0
        self.calls: list[Replayed] = []
        self.count, self.last = 0, ""

    def progress(self) -> str:
        return f"opreplay: {units.counted(len(self.calls), 'call')} of {self.count} run again, last {self.last}"

    def done(self) -> float:
        """Returns which part of the calls has run."""
        return len(self.calls) / max(self.count, 1)

    def run(self) -> None:
        self.count = len(self.folder)
        for number, record in self.folder:
            if isinstance(record, TraceError):
                self._skip(record)
            elif (reason := self.wanted.why_not(record, self.folder.place(number))) is not None:
                self.skipped[f"not run again: {reason}"] += 1
            else:
                self._run_one(number, record)
        with isolated():
            self.verdicts.finish()

    def _run_one(self, number: int, record: Record) -> None:
        rows = len(self.verdicts.rows)
        try:
            op = registered_op(record.get("op"), self.libraries)
            self.last = str(op)
            ran = self.runner.run(record, op)
            with isolated():
                is_same = self.verdicts.add(ran, len(self.calls))
                self.calls.append(Replayed.of(ran, number, self.folder.place(number), is_same))
        except TraceError as error:
            del self.verdicts.rows[rows:]
            self._skip(error)
        except Exception as error:  # of nbkit, in comparing: told, and the rest runs
            del self.verdicts.rows[rows:]
            self._skip(TraceError(f"{record.get('op')}: {type(error).__name__}: {first_line(error)}"))

    def _skip(self, reason: TraceError) -> None:
        self.unreadable += 1
        self.skipped[unusable(reason)] += 1

    def trace(self, name: str | None, against: str) -> Trace:
        frames = replay_frames(self.calls, self.verdicts.rows, self.runner.repeats)
        diffs, head = frames["diffs"], self.folder.head
        reference = (
            f"captured {BITS}" if against == BITS else "the captured results" if against == CAPTURED else against
        )
        if against == BITS:
            found = replay_findings(diffs, frames["ops"])
        else:
            found = difference_findings(diffs, frames["ops"], {}, reference)
        meta = {
            "verb": "opreplay",
            "name": name or self.folder.path.name or "opreplay",
            "created": now_text(),
            "complete": True,
            "error": None,
            "versions": versions(),
            "machine": machine_text(),
            "devices": sorted({str(call.device) for call in self.calls}),
            "folder": self.folder.path.name,
            "capture": {
                "created": head.get("created"),
                "versions": head.get("versions"),
                "machine": head.get("machine"),
            },
            "reference": reference,
            "threshold": self.verdicts.judge.threshold,
            "repeats": self.runner.repeats,
            "warmup": self.runner.warmup,
            "captured_calls": self.count,
            "replayed_calls": len(self.calls),
            "identical_calls": sum(call.is_same for call in self.calls),
            "unusable_calls": self.unreadable,
            "compared_ops": len(self.calls),
            "mismatches": int((~diffs["status"].isin(HARMLESS)).sum()),
            "skipped": dict(self.skipped),
            "filters": {},
            "filtered_ops": 0,
            "notes": [],
        }
        return Trace(with_findings(frames, found), meta)


def _path(folder: object) -> Path:
    if not isinstance(folder, str | Path) or not str(folder):
        raise OptionError(f"folder must be a path, got {folder!r}; give the folder that opcapture wrote.")
    return Path(folder)


def _state(folder: CallFolder) -> Mapping[str, Any]:
    state = folder.head.get("state")
    return state if isinstance(state, dict) else {}


def _device(device: Any) -> torch.device | None:
    if device is None:
        return None
    try:
        found = torch.device(device)
        torch.empty(0, device=found)
    except Exception as error:
        raise OptionError(
            f"device={str(device)!r} cannot be used ({first_line(error)}); give one that is here, such as 'cpu'."
        ) from error
    return found


def checked_libraries(libraries: Collection[str]) -> tuple[str, ...]:
    """Returns the libraries whose ops may be called, those that are always known first. Raises OptionError."""
    here = {name.partition("::")[0] for name in known_names(anew=True)}
    for name in libraries:
        if name not in here:
            raise OptionError(f"No library {name!r} has registered ops with torch here; import the package that does.")
    return (*LIBRARIES, *libraries)


def registered_op(name: object, libraries: Collection[str] = LIBRARIES) -> OpOverload:
    """Returns the op; nothing is imported for it. Raises TraceError, worded as a reason, if it cannot be called."""
    match = NAME.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        raise TraceError(f"{str(name)[:60]!r} is no name of an op")
    library, packet, overload = match.groups()
    if name in RUNS:
        libraries = (*libraries, library)
    if library not in libraries:
        raise TraceError(f"{name} is of the library {library!r}, which is not known; name it in libraries= to allow it")
    if f"{library}.{packet}" in REFUSED:
        raise TraceError(f"{name} opens a file, which a replay does not")
    full = f"{library}::{packet}" if overload == "default" else f"{library}::{packet}.{overload}"
    if full not in known_names() and full not in known_names(anew=True):
        raise TraceError(f"{name} does not exist in torch {torch.__version__}")
    op: OpOverload = getattr(getattr(getattr(torch.ops, library), packet), overload)
    return op


_known: frozenset[str] = frozenset()


def known_names(*, anew: bool = False) -> frozenset[str]:
    """Returns the names of all registered ops; `anew` asks for those that a library has brought meanwhile."""
    global _known
    if anew or not _known:
        _known = frozenset(torch._C._dispatch_get_all_op_names())
    return _known
