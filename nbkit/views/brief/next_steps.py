"""Words what nobody has looked at in a step, and which verb would; a notebook says it once, without what it ran."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from weakref import ref

from nbkit.trace.trace import Trace
from nbkit.views.statements.subjects import Look


class Session:
    """Remembers which verbs' traces a notebook has shown, and below which one of them it said what comes next."""

    def __init__(self) -> None:
        self.verbs: set[str] = set()
        self.told: ref[Trace] | None = None

    def left(self, trace: Trace, missing: Sequence[Look]) -> tuple[Look, ...]:
        """Returns what to say below this trace: what no verb has looked at, unless it stands below another one."""
        self.verbs.add(str(trace.meta.get("verb")))
        looks = tuple(look for look in missing if look.verb not in self.verbs)
        if not looks or (self.told is not None and self.told() is not trace):
            return ()
        self.told = ref(trace)
        return looks


_SESSION = Session()
_IS_NOTEBOOK: ContextVar[bool] = ContextVar("is_notebook", default=False)


@contextmanager
def in_session(*, is_notebook: bool) -> Iterator[None]:
    """While a trace is shown: a notebook says once in its life what comes next."""
    token = _IS_NOTEBOOK.set(is_notebook)
    try:
        yield
    finally:
        _IS_NOTEBOOK.reset(token)


def left_to_look_at(trace: Trace, missing: Sequence[Look]) -> tuple[Look, ...]:
    """Returns what a brief says that nobody has looked at; while a notebook shows the trace, what the notebook left."""
    return _SESSION.left(trace, missing) if _IS_NOTEBOOK.get() else tuple(missing)


def next_steps(looks: Sequence[Look]) -> str:
    """Returns the line on what to run next, and for what; empty for nothing."""
    mark = "%%" if _has_magics() else "nbkit."
    return f"Next: {', '.join(f'{mark}{look.verb} ({look.short})' for look in looks)}." if looks else ""


def _has_magics() -> bool:
    """Tells whether a notebook that has the magics shows the trace."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if _IS_NOTEBOOK.get() and ipython else None
    return shell is not None and shell.find_cell_magic("opcheck") is not None
