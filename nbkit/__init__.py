"""nbkit: debug PyTorch models op by op, in a notebook. `%load_ext nbkit` brings the cell magics."""

from importlib import import_module
from typing import Any

from nbkit.analysis.time.compare_times import compare_times
from nbkit.analysis.time.device import device_use, launch_delays, synchronising_calls
from nbkit.analysis.time.gaps import gaps_by_module, largest_gaps
from nbkit.analysis.time.memory import held_at_peak, memory_peaks
from nbkit.analysis.time.roofline import roofline
from nbkit.analysis.time.times import by_input_shapes, by_module_tree
from nbkit.analysis.values.compare_values import compare_values
from nbkit.analysis.values.producers import producers
from nbkit.capture.profiler.optime import optime
from nbkit.capture.recorder.optrace import optrace
from nbkit.errors import (
    NbkitError,
    NonFiniteError,
    OptionError,
    PatternError,
    RecorderError,
    SchemaError,
    TraceError,
    nearest,
)
from nbkit.flops import register_flop_formula
from nbkit.load import load
from nbkit.opgraph import opgraph
from nbkit.trace.trace import Trace

__version__ = "0.1.0"
__all__ = [
    "NbkitError",
    "NonFiniteError",
    "OptionError",
    "PatternError",
    "RecorderError",
    "SchemaError",
    "Trace",
    "TraceError",
    "by_input_shapes",
    "by_module_tree",
    "compare_times",
    "compare_values",
    "device_use",
    "gaps_by_module",
    "held_at_peak",
    "largest_gaps",
    "launch_delays",
    "load",
    "memory_peaks",
    "opgraph",
    "optime",
    "optrace",
    "producers",
    "register_flop_formula",
    "roofline",
    "synchronising_calls",
]


# Imported at first use: plotly and anywidget take their time, few processes build the recorder or simulate a device.
_AT_FIRST_USE = {
    "FAULT_KINDS": "nbkit.simulated",
    "Fault": "nbkit.simulated",
    "SimulatedDevice": "nbkit.simulated",
    "DiffTable": "nbkit.views.diff_table.widget",
    "FlameGraph": "nbkit.views.flamegraph.widget",
    "GraphView": "nbkit.views.graph.widget",
    "opcheck": "nbkit.capture.check.opcheck",
    "opdiff": "nbkit.capture.diff.opdiff",
    "OpTable": "nbkit.views.op_table.widget",
    "plot_memory": "nbkit.views.plots",
    "plot_metrics": "nbkit.views.plots",
    "plot_modules": "nbkit.views.plots",
    "plot_ops": "nbkit.views.plots",
    "call_of": "nbkit.capture.calls.call_of",
    "build_recorder": "nbkit.capture.native.build",
    "script_of": "nbkit.capture.calls.script",
    "opreport": "nbkit.views.report.opreport",
}


def __getattr__(name: str) -> Any:
    if name not in _AT_FIRST_USE:
        raise AttributeError(f"nbkit has no {name!r}; {nearest(name, [*__all__, *_AT_FIRST_USE])}")
    return getattr(import_module(_AT_FIRST_USE[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_AT_FIRST_USE])


class _Presenter:
    """The views layer, imported when the first trace is shown: plotly and anywidget take their time."""

    def summary(self, trace: Trace) -> str:
        from nbkit.views.static_html import display

        return display.summary(trace)

    def mimebundle(self, trace: Trace) -> tuple[dict[str, Any], dict[str, Any]]:
        from nbkit.views.static_html import display

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
