"""The recorders that are compared: how each one is entered, runs a step and gives its result."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch.overrides import TorchFunctionMode
from torch.profiler import ProfilerActivity, profile
from torch.utils._debug_mode import DebugMode
from torch.utils._python_dispatch import TorchDispatchMode

import nbkit
from bench.harness.steps import TrainingStep

BARE, FORWARD, OPTRACE, STATS = "bare", "bare, forward only", "optrace", 'optrace, values="stats"'
OPTRACE_PYTHON = "optrace, Python recorder"
EMPTY_MODES = "empty modes"
PROFILER, PROFILER_SHAPES = "torch.profiler", "torch.profiler, record_shapes"
DEBUG_MODE, TORCHLENS = "DebugMode", "torchlens, forward only"


def nothing() -> None:
    """Does nothing: most peers need nothing before and after a measurement."""


@dataclass(frozen=True)
class Peer:
    """One recorder: open() around run(step), then finish(what open gave, what run gave) until its result is at hand.

    prepare() and restore() are called outside the timed part. `base` is the peer it is compared with.
    """

    name: str
    open: Callable[[], AbstractContextManager[Any]]
    run: Callable[[TrainingStep], Any] = TrainingStep.run
    finish: Callable[[Any, Any], Any] = lambda held, result: held
    prepare: Callable[[], None] = nothing
    restore: Callable[[], None] = nothing
    base: str = BARE


def all_peers() -> list[Peer]:
    """Returns every peer, bare ones first; one that is not installed fails when it runs."""
    return [
        Peer(BARE, nullcontext),
        Peer(FORWARD, nullcontext, TrainingStep.forward, base=FORWARD),
        Peer(EMPTY_MODES, _empty_modes),
        Peer(OPTRACE, nbkit.optrace),
        Peer(OPTRACE_PYTHON, python_recorder),
        Peer("opcheck", lambda: nbkit.opcheck()),
        Peer(STATS, partial(nbkit.optrace, values="stats")),
        Peer(PROFILER, partial(_profiler, False), finish=_events),
        Peer(PROFILER_SHAPES, partial(_profiler, True), finish=_events),
        Peer(DEBUG_MODE, partial(DebugMode, record_nn_module=True, record_stack_trace=True)),
        _torchlens(),
    ]


class _EmptyDispatchMode(TorchDispatchMode):
    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # as in optrace's own mode: the default adds 2 us per op

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **kwargs) if kwargs else func(*args)


class _EmptyFunctionMode(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **kwargs) if kwargs else func(*args)


@contextmanager
def _empty_modes() -> Iterator[None]:
    """Enters the two modes that a recorder in Python needs, recording nothing: the bound of such recorders."""
    with _EmptyFunctionMode(), _EmptyDispatchMode():  # type: ignore[no-untyped-call]
        yield


@contextmanager
def python_recorder(verb: Callable[[], AbstractContextManager[nbkit.Trace]] = nbkit.optrace) -> Iterator[nbkit.Trace]:
    """Records as a verb does without `nbkit.build_recorder()`."""
    before = os.environ.get("NBKIT_RECORDER")
    os.environ["NBKIT_RECORDER"] = "python"
    try:
        with verb() as trace:
            yield trace
    finally:
        del os.environ["NBKIT_RECORDER"]
        if before is not None:
            os.environ["NBKIT_RECORDER"] = before


def _profiler(record_shapes: bool) -> profile:
    return profile(activities=[ProfilerActivity.CPU], record_shapes=record_shapes)


def _events(profiler: profile, _: None) -> Any:
    return profiler.events()


def _torchlens() -> Peer:
    """Records one call of the model with torchlens, without the backward pass; its table is `to_pandas()`.

    It leaves all of torch wrapped after its first trace, which would slow the others down: taken off in between.
    """
    try:
        import torchlens
        from torchlens.backends.torch.wrappers import unwrap_torch, wrap_torch
    except ImportError as error:
        reason = str(error)
        return Peer(TORCHLENS, nullcontext, partial(_fail, f"cannot be imported: {reason}"), base=FORWARD)

    def run(step: TrainingStep) -> Any:
        return torchlens.trace(step.model, [step.ids, step.targets])

    return Peer(TORCHLENS, nullcontext, run, lambda _, trace: trace.to_pandas(), wrap_torch, unwrap_torch, FORWARD)


def _fail(reason: str, _: TrainingStep) -> None:
    raise ImportError(reason)
