"""nbkit: debug PyTorch models op by op, in a notebook. `%load_ext nbkit` brings the cell magics."""

from typing import Any

from nbkit.capture.optime import optime
from nbkit.capture.optrace import optrace
from nbkit.errors import NbkitError, OptionError, PatternError, SchemaError, TraceError
from nbkit.load import load
from nbkit.trace import Trace

__version__ = "0.1.0"
__all__ = [
    "NbkitError",
    "OptionError",
    "PatternError",
    "SchemaError",
    "Trace",
    "TraceError",
    "load",
    "optime",
    "optrace",
]


class _Presenter:
    """The views layer, imported when the first trace is shown: plotly and anywidget take their time."""

    def summary(self, trace: Trace) -> str:
        from nbkit.views import display

        return display.summary(trace)

    def mimebundle(self, trace: Trace) -> tuple[dict[str, Any], dict[str, Any]]:
        from nbkit.views import display

        return display.mimebundle(trace)


Trace.presenter = _Presenter()


def load_ipython_extension(ipython: Any) -> None:
    """What `%load_ext nbkit` calls: adds the cell magics."""
    # `ipython` is typed in the magics layer, the only one that imports IPython; plain scripts do without.
    from nbkit.magics import load as load_magics

    load_magics(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """What `%unload_ext nbkit` calls: takes out all that loading added."""
    from nbkit.magics import unload as unload_magics

    unload_magics(ipython)
