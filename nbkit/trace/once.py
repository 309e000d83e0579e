"""Computes once what several parts of a view say of one trace: text, HTML and widget begin with the same."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from nbkit.trace.trace import Trace

Asked = ParamSpec("Asked")
Said = TypeVar("Said")
# By function, trace and options; with the trace, so that no other one takes its id.
_KNOWN: ContextVar[dict[tuple[Any, ...], tuple[Trace, Any]] | None] = ContextVar("known", default=None)


@contextmanager
def one_view() -> Iterator[None]:
    """Keeps what is computed of traces until the block ends, as nothing changes them while a view is made."""
    if _KNOWN.get() is not None:
        yield
        return
    token = _KNOWN.set({})
    try:
        yield
    finally:
        _KNOWN.reset(token)


def once_per_view(compute: Callable[Concatenate[Trace, Asked], Said]) -> Callable[Concatenate[Trace, Asked], Said]:
    """Returns the function with its result kept inside one_view(); nobody may change what it returns."""

    @wraps(compute)
    def kept(trace: Trace, /, *args: Asked.args, **kwargs: Asked.kwargs) -> Said:
        known = _KNOWN.get()
        if known is None:
            return compute(trace, *args, **kwargs)
        key = compute, id(trace), args, *kwargs.items()
        if key not in known:
            known[key] = trace, compute(trace, *args, **kwargs)
        said: Said = known[key][1]
        return said

    return kept
