"""ophook: attach any recorder to chosen functions, for as long as a block runs."""

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from threading import get_ident
from types import TracebackType
from typing import Any

import torch
from torch import nn

from nbkit import units
from nbkit.capture.operators.hook.replaced import Replaced
from nbkit.capture.operators.hook.targets import Target, targets_of
from nbkit.capture.raw.patching import Patch
from nbkit.capture.raw.pausable_mode import PausableMode
from nbkit.capture.recorder.starting import Startable
from nbkit.capture.step.function_mode import FUSED_INFERENCE
from nbkit.errors import OptionError
from nbkit.trace.trace import Trace

Factory = Callable[[], AbstractContextManager[Trace]]
NOT_WANTED, OVER_LIMIT = "not wanted by when=", "over the limit"
INSIDE, OTHER_THREAD = "inside a hooked call", "in another thread"


@dataclass(frozen=True)
class HookedCall:
    """Describes a recorded call: name of the function, number of the call (from 0, all calls counted), its trace."""

    function: str
    call: int
    trace: Trace


@dataclass
class Hook:
    """Holds what an ophook has recorded: `traces`, one per call; how many calls there were, and were left out.

    `calls` counts all calls by function, `skipped` those that were not recorded by reason.
    """

    traces: list[HookedCall] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)

    def __repr__(self) -> str:
        names = ", ".join(f"{name}: {units.counted(count, 'call')}" for name, count in self.calls.items()) or "no call"
        left_out = "".join(f", {count:,} {reason}" for reason, count in self.skipped.items())
        return f"<ophook of {names}; {len(self.traces):,} recorded{left_out}>"


class ophook(Startable[Hook]):  # noqa: N801  a context manager is named like the function it stands for
    """Records the calls of chosen functions only, each with a recorder of its own; yields an object with `traces`.

    `with nbkit.ophook("torch.Tensor.softmax", nbkit.opcheck) as hook:` gives a list `hook.traces`, an entry per
    recorded call with `function` (its name), `call` (its number among all calls of the function, from 0) and `trace`;
    `hook.calls` counts the calls by function, `hook.skipped` those that were not recorded by reason.

    Of torch's own functions and `Tensor` methods the calls are seen wherever the function came from, also by
    `from torch import relu`, and nothing is replaced: `activation is torch.nn.functional.gelu` stays as it is. A call
    that such a function makes inside is not seen. Other functions, such as those of a package of your own, are replaced
    where modules or their class hold them, and put back at the end, whatever happened inside. A hook holds for the
    thread that it began in. Calls inside a hooked call belong to that one's trace. Attention and transformer layers in
    eval mode keep torch's fused path, in which no functions are called.

    Args:
        target: a function, a dotted name ("torch.Tensor.softmax", "package.module.function"), or a list of them.
        recorder: what makes a recorder for each call: a verb such as `nbkit.optrace`, or
            `lambda: nbkit.opdiff(ops="mm")`.
        when: called with the arguments of each call, `self` among them; the call is recorded if it returns true.
            torch's functions may pass on more keyword arguments than were given: `lambda x, dim, **_: dim == 0`. None
            records all.
        limit: so many calls are recorded at most; None for no limit.

    Raises:
        OptionError: before anything runs, if `target` names no function, or another option cannot be used.
    """

    def __init__(
        self,
        target: object,
        recorder: Factory,
        *,
        when: Callable[..., object] | None = None,
        limit: int | None = None,
    ) -> None:
        self.targets = targets_of(target)
        if not callable(recorder):
            raise OptionError(
                f"recorder={recorder!r} makes no recorders; give what makes one for each call, such as nbkit.optrace, "
                f"or lambda: nbkit.optrace()."
            )
        if when is not None and not callable(when):
            raise OptionError(
                f"when must be a function of a call's arguments, got {when!r}; give one, or None for all calls."
            )
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise OptionError(
                f"limit must be a number of calls above 0, got {limit!r}; give one, or None for no limit."
            )
        self.recorder, self.when, self.limit = recorder, when, limit
        self.hook: Hook | None = None

    def __enter__(self) -> Hook:
        if self.hook is not None:
            raise OptionError("This ophook has been used already; make a new one for each block.")
        self.hook, self.thread, self.is_inside = Hook(), get_ident(), False
        with ExitStack() as stack:
            if seen := [target for target in self.targets if target.holder is None]:
                stack.enter_context(HookMode(seen, self._call))
            for target in self.targets:
                if target.holder is not None:
                    replaced = Replaced(target, self._around(target.name))
                    stack.callback(replaced.remove)
                    replaced.install()
            self.exits = stack.pop_all()
        return self.hook

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.exits.close()

    def _around(self, name: str) -> Callable[[Callable[..., Any], Any, Any], Any]:
        return lambda function, args, kwargs: self._call(name, function, args, kwargs)

    def _call(self, name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Runs one call, in a recorder if it is meant."""
        if torch.compiler.is_compiling():
            return function(*args, **kwargs)
        assert self.hook is not None
        hook, number = self.hook, self.hook.calls[name]
        hook.calls[name] += 1
        reason = self._why_not(args, kwargs)
        if reason is not None:
            hook.skipped[reason] += 1
            return function(*args, **kwargs)
        self.is_inside = True
        try:
            with self.recorder() as trace:
                # Noted first: a call that raises has a trace, too.
                hook.traces.append(HookedCall(name, number, trace))
                return function(*args, **kwargs)
        finally:
            self.is_inside = False

    def _why_not(self, args: Any, kwargs: Any) -> str | None:
        assert self.hook is not None
        if get_ident() != self.thread:
            return OTHER_THREAD
        if self.is_inside:
            return INSIDE
        if self.limit is not None and len(self.hook.traces) >= self.limit:
            return OVER_LIMIT
        return None if self.when is None or self.when(*args, **kwargs) else NOT_WANTED


class HookMode(PausableMode):
    """Hands the calls of some of torch's functions over; torch takes the mode off while a call runs."""

    def __init__(self, targets: Iterable[Target], call: Callable[[str, Callable[..., Any], Any, Any], Any]) -> None:
        super().__init__()
        self.names = {target.function: target.name for target in targets}
        self.call = call
        self.patch = Patch(nn.Module, "__call__")

    def __enter__(self) -> "HookMode":
        super().__enter__()
        patch = self.patch

        def __call__(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            # On a fused path, which these leave where a function mode is on, there are no calls to be seen.
            may_fuse = isinstance(module, FUSED_INFERENCE) and not module.training
            if not may_fuse or not self._pop():
                return patch.before(module, *args, **kwargs)
            try:
                return patch.before(module, *args, **kwargs)
            finally:
                self._push()

        patch.install(__call__)
        return self

    def __exit__(self, *error: object) -> None:
        self.patch.remove()
        super().__exit__(*error)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = self.names.get(func)
        if name is None:
            return func(*args, **(kwargs or {}))
        return self.call(name, func, args, kwargs or {})
