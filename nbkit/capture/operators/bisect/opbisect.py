"""opbisect: find the calls of a step at fault, by running it again with ever fewer of them replaced."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Unpack

import numpy as np

from nbkit import units
from nbkit.capture.diff.opdiff import DiffObserver
from nbkit.capture.diff.options import scope
from nbkit.capture.frames.selection import Selection
from nbkit.capture.operators.bisect.chosen import Choosing, ChosenCall, Key, by_module
from nbkit.capture.operators.bisect.compiled import compiler_trials
from nbkit.capture.operators.bisect.kept_state import KeptState
from nbkit.capture.operators.bisect.search import smallest_set
from nbkit.capture.operators.bisect.trials import Trials
from nbkit.capture.operators.elsewhere import CPU, HALVES, Elsewhere
from nbkit.capture.recorder.observer import Observer
from nbkit.capture.recorder.recorder import Recorder
from nbkit.capture.replay.reference import Reference
from nbkit.capture.scope.filters import CallFilters, with_filters
from nbkit.errors import OptionError, nearest
from nbkit.findings.finding import findings_frame, line_texts
from nbkit.findings.operators import at_fault, no_culprit
from nbkit.numerics.noise_ratio import HARMLESS, THRESHOLD
from nbkit.numerics.tolerances import Tolerances
from nbkit.progress import Progress
from nbkit.trace.trace import Trace

By = str | Callable[[list[ChosenCall]], AbstractContextManager[Any]]
COMPILER = "disable compile"
# What becomes of a call, in the words of a sentence, and what it can be done to.
RAN = {"fallback": "on the CPU", "cast": "in float32"}
COULD = {
    "fallback": "no call could run on the CPU in its place",
    "cast": "no call has a tensor in float16 or bfloat16, which could be cast",
}
NOTHING: frozenset[Key] = frozenset()
ORDERS = ("local error", "call")


@with_filters
def opbisect(
    step: Callable[[], Any],
    check: Callable[[Any], Any],
    *,
    by: By = "fallback",
    state: Any = (),
    order: Literal["local error", "call"] = "local error",
    name: str | None = None,
    **filters: Unpack[CallFilters],
) -> Trace:
    """Finds the smallest set of calls of a step whose replacement repairs it; gives a Trace with `trials`.

    The step runs again and again, each time with other calls of its ops replaced, and `check` judges what it returns.
    It fails as it is and passes with all calls replaced; what is between is searched by halves, across modules first,
    then across the calls in one. With k culprits among n calls that takes 2 k log2(n) + 8 trials at most, fewer where
    the culprits have the largest local errors. `meta["culprits"]` lists them with op, module, phase, call (the how
    many-th of its op, from 0) and source; each is needed, which is tried. `meta["verdict"]` says it in a sentence. The
    frames are those of the first run, and a row of `trials` for each.

    Args:
        step: runs the step, without arguments, and returns what `check` needs, such as the loss.
        check: answers whether what the step returned is right; an AssertionError says no, as does an exception that
            the step raises.
        by: what replaces a call: "fallback" runs it on the CPU, "cast" in float32 where it is in float16 or bfloat16.
            "disable compile" has torch's own compiler bisector find the backend, pass or lowering of torch.compile
            that is at fault; the step has to call torch.compile itself. A function is given a list of calls (op, call,
            module, phase, source, op_id) and returns a context manager in which these run otherwise.
        state: what the step changes: modules, optimizers, tensors, objects with state_dict() and load_state_dict(), in
            lists as well. It is put back before each trial and at the end, with what is set in the thread and the
            generators of Python, numpy and torch, also those that the step reaches.
        order: "local error" tries first what opdiff finds far off in the first run (with "fallback" alone); "call"
            leaves that out.
        **filters: those of CallFilters.
        name: what the trace is called where it is shown.

    Raises:
        PatternError, OptionError: before anything runs.
    """
    for what, value in (("step", step), ("check", check)):
        if not callable(value):
            raise OptionError(f"{what} must be a function, got {value!r}; give one.")
    if not callable(by) and by not in (*RAN, COMPILER):
        raise OptionError(f"by={by!r} is not known; {nearest(str(by), (*RAN, COMPILER))}")
    if order not in ORDERS:
        raise OptionError(f"order={order!r} is not known; {nearest(str(order), ORDERS)}")
    kept = KeptState(state, step)
    bisection = Bisection(by, order, filters, name)
    trials = Trials(step, check, kept, bisection.opening)
    try:
        with Progress(trials.progress, done=trials.done, tells_whole=True):
            return bisection.trace(trials)
    finally:
        kept.restore()


class Recording(Recorder):
    """Records a trial."""

    verb = "opbisect"


class Bisection:
    """Lists the calls of a step, and finds those that have to be replaced."""

    def __init__(self, by: By, order: str, filters: CallFilters, name: str | None) -> None:
        self.by, self.filters, self.name = by, filters, name
        self.is_measured = order == "local error" and by == "fallback"
        self.ran = RAN.get(by, "replaced") if isinstance(by, str) else "replaced"
        self._choosing(NOTHING)  # refuses what it cannot use before anything runs
        self.calls: dict[Key, ChosenCall] = {}

    def _choosing(self, chosen: frozenset[Key] | None) -> Choosing:
        elsewhere = Elsewhere(None, dict(HALVES)) if self.by == "cast" else Elsewhere(CPU, {})
        return Choosing(elsewhere, chosen, self.filters)

    def opening(self, chosen: frozenset[Key]) -> AbstractContextManager[Any]:
        """Returns what the step runs in so that these calls are replaced."""
        if callable(self.by):
            context = self.by([call for key, call in self.calls.items() if key in chosen])
            if not hasattr(context, "__enter__"):
                raise OptionError(f"by= returned a {type(context).__name__}; it has to return a context manager.")
            return context
        return Recording(self._choosing(chosen))

    def trace(self, trials: Trials) -> Trace:
        """Returns the trace of the first run, with what all others showed."""
        first, observers = self._choosing(NOTHING), list[Observer]()
        if self.is_measured:
            observers.append(
                DiffObserver(
                    scope(Selection(), None, 1, None, THRESHOLD), Reference("cpu"), Tolerances(None), (0, 0, None)
                )
            )
        recorder = Recording(first, *observers, name=self.name or "opbisect")
        passed = trials.known[NOTHING] = trials.run("nothing", NOTHING, recorder)
        assert recorder.trace is not None
        if passed:
            return self._result(
                recorder.trace, trials, [], "The step passes the check as it is: there is nothing to find."
            )
        if self.by == COMPILER:
            culprits, verdict = compiler_trials(trials)
            return self._result(recorder.trace, trials, culprits, verdict)
        if not (candidates := self._candidates(trials, first)):
            why = COULD[self.by] if isinstance(self.by, str) else "no call could be replaced"
            return self._result(recorder.trace, trials, [], f"Nothing was found: {why}.")
        every = frozenset(candidates)
        if not trials.known[every]:
            return self._result(recorder.trace, trials, [], self._all_fail(len(every), trials.rows[-1]["message"]))
        found = self._search(trials, recorder.trace, first, candidates)
        return self._result(recorder.trace, trials, *self._confirmed(trials, found))

    def _candidates(self, trials: Trials, first: Choosing) -> dict[Key, ChosenCall]:
        """Returns the calls that can be replaced, after a trial in which all are."""
        rows = {call.key: call.op_id for call in first.listed}
        if callable(self.by):
            self.calls = {call.key: call for call in first.listed}
            if self.calls:
                trials.passes("all", frozenset(self.calls))
            return self.calls
        everything = self._choosing(None)
        passed = trials.run("all", frozenset(rows), Recording(everything))
        self.calls = {call.key: call._replace(op_id=rows.get(call.key)) for call in everything.listed}
        trials.known[frozenset(self.calls)] = passed
        return self.calls

    def _search(self, trials: Trials, trace: Trace, first: Choosing, candidates: dict[Key, ChosenCall]) -> list[Key]:
        errors = self._errors(trace, first)
        groups = [[call.key for call in group] for group in by_module([*candidates.values()], errors)]
        return smallest_set(groups, lambda chosen: trials.passes("search", chosen), trials.seeks)

    def _errors(self, trace: Trace, first: Choosing) -> dict[Key, float]:
        """Returns the largest noise ratio of the results of each call, as far as they were compared."""
        if "diffs" not in trace.frames:
            return {}
        diffs = trace.frames["diffs"]
        unknown = np.where(diffs["status"].isin(HARMLESS), 0.0, np.inf)
        ratios = diffs["noise_ratio"].fillna(dict(enumerate(unknown)))
        largest = ratios.groupby(diffs["op_id"]).max().to_dict()
        return {call.key: largest.get(call.op_id, 0.0) for call in first.listed}

    def _confirmed(self, trials: Trials, found: Sequence[Key]) -> tuple[list[ChosenCall], str]:
        """Returns the culprits and the verdict, after one more trial with them that is not remembered."""
        culprits = [self.calls[key] for key in self.calls if key in found]
        chosen = frozenset(found)
        if not trials.run("confirm", chosen, self.opening(chosen)):
            return culprits, (
                f"The step passed with {self._counted(len(found))} {self.ran} and failed when that was tried again: it "
                f"does not do the same each time; name all that it changes in state=."
            )
        alone = "without it" if len(found) == 1 else "without any one of them"
        return culprits, f"With {self._counted(len(found))} {self.ran} the step passes, {alone} it fails."

    def _counted(self, count: int) -> str:
        return "one call" if count == 1 else f"{units.count(count)} calls"

    def _all_fail(self, count: int, message: str | None) -> str:
        every = {"fallback": "every op on the CPU", "cast": "every half-precision op in float32"}
        what = every.get(self.by, "all calls replaced") if isinstance(self.by, str) else "all calls replaced"
        because = f" ({message})" if message else ""
        return f"The step fails also with {what}, {self._counted(count)}{because}: the cause is not in these."

    def _result(self, trace: Trace, trials: Trials, culprits: Sequence[Any], verdict: str) -> Trace:
        found, verdict = [call._asdict() for call in culprits], f"{trials.not_put_back()}{verdict}"
        texts = line_texts(trace.frames["lines"])
        named = at_fault(found, trace.ops, texts, self.ran) or no_culprit(verdict, passes=trials.known[NOTHING])
        meta = {
            **trace.meta,
            "complete": True,
            "error": None,
            "by": self.by if isinstance(self.by, str) else getattr(self.by, "__name__", type(self.by).__name__),
            "candidates": len(self.calls),
            "trials": len(trials.rows),
            "culprits": found,
            "verdict": verdict,
        }
        return Trace({**trace.frames, "trials": trials.frame(), "findings": findings_frame(named)}, meta)
