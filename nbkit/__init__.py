"""nbkit: debug PyTorch models op by op, in a notebook. `%load_ext nbkit` brings the cell magics."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import nbkit.compat.installed  # noqa: F401 # says first what is too old for all that follows
from nbkit.errors import (
    CostError,
    NbkitError,
    NonFiniteError,
    OptionError,
    PatternError,
    RecorderError,
    SchemaError,
    TraceError,
    nearest,
)
from nbkit.ops.flops import register_flop_formula
from nbkit.trace.trace import Trace

if TYPE_CHECKING:  # for editors and type checkers; at run time each is imported at its first use
    from nbkit.analysis.cost.compare_cost import compare_cost
    from nbkit.analysis.cost.cost_tree import cost_tree
    from nbkit.analysis.cost.module_table import module_table
    from nbkit.analysis.time.compare_times import compare_times
    from nbkit.analysis.time.device import device_use, launch_delays, synchronising_calls
    from nbkit.analysis.time.gaps import gaps_by_module, largest_gaps
    from nbkit.analysis.time.memory import held_at_peak, memory_peaks
    from nbkit.analysis.time.op_times import op_times
    from nbkit.analysis.time.roofline import roofline
    from nbkit.analysis.time.times import by_input_shapes, by_module_tree
    from nbkit.analysis.values.compare_values import compare_values
    from nbkit.analysis.values.producers import producers
    from nbkit.analysis.values.tensors_with_ops import tensors_with_ops
    from nbkit.capture.audit.leaks import leaks
    from nbkit.capture.audit.opaudit import opaudit
    from nbkit.capture.calibrate.calibrate import calibrate
    from nbkit.capture.calls.call_of import call_of
    from nbkit.capture.calls.script import script_of
    from nbkit.capture.check.opcheck import opcheck
    from nbkit.capture.cost.analyzer.cost_table import cost_table
    from nbkit.capture.cost.fake.shape_formulas import register_shape_formula
    from nbkit.capture.cost.fits.fits import fits
    from nbkit.capture.cost.opcost import opcost
    from nbkit.capture.cost.what_if.what_if import what_if
    from nbkit.capture.diff.opdiff import opdiff
    from nbkit.capture.distributed.clocks import align_clocks
    from nbkit.capture.doctor.opdoctor import opdoctor
    from nbkit.capture.hang.dump_ranks import dump_ranks
    from nbkit.capture.native.build import build_recorder
    from nbkit.capture.operators.bisect.opbisect import opbisect
    from nbkit.capture.operators.capture import opcapture
    from nbkit.capture.operators.cast import opcast
    from nbkit.capture.operators.fallback import opfallback
    from nbkit.capture.operators.hook.ophook import ophook
    from nbkit.capture.operators.replay.opreplay import opreplay
    from nbkit.capture.operators.stable.opstable import opstable
    from nbkit.capture.optrace import optrace
    from nbkit.capture.profiler.optime import optime
    from nbkit.capture.watch.opmonitor import opmonitor
    from nbkit.devices.device import Device
    from nbkit.devices.roofline import with_times
    from nbkit.simulated import FAULT_KINDS, Fault, SimulatedDevice
    from nbkit.verbs.alignment.exports import compare_exports
    from nbkit.verbs.alignment.opalign import opalign
    from nbkit.verbs.conversion.convert import convert
    from nbkit.verbs.load import load
    from nbkit.verbs.opgraph import opgraph
    from nbkit.views.alignment.text import side_by_side_text
    from nbkit.views.cost_table import cost_table_text
    from nbkit.views.diff_table.widget import DiffTable
    from nbkit.views.flamegraph.widget import FlameGraph
    from nbkit.views.graph.widget import GraphView
    from nbkit.views.module_table import module_table_text
    from nbkit.views.op_table.widget import OpTable
    from nbkit.views.plots import (
        plot_cost,
        plot_errors,
        plot_gradients,
        plot_layers,
        plot_memory,
        plot_metrics,
        plot_modules,
        plot_op_counts,
        plot_ops,
        plot_ranks,
        plot_repeats,
        plot_roofline,
        plot_steps,
    )
    from nbkit.views.report.opreport import opreport

__version__ = "0.1.0"
__all__ = [
    "FAULT_KINDS", "CostError", "Device", "DiffTable", "Fault", "FlameGraph", "GraphView", "NbkitError",
    "NonFiniteError", "OpTable", "OptionError", "PatternError", "RecorderError", "SchemaError", "SimulatedDevice",
    "Trace", "TraceError", "align_clocks", "build_recorder", "by_input_shapes", "by_module_tree", "calibrate",
    "call_of", "compare_cost", "compare_exports", "compare_times", "compare_values", "convert", "cost_table",
    "cost_table_text", "cost_tree", "device_use", "dump_ranks", "fits", "gaps_by_module", "held_at_peak",
    "largest_gaps", "launch_delays", "leaks", "load", "memory_peaks", "module_table", "module_table_text",
    "op_times", "opalign", "opaudit", "opbisect", "opcapture", "opcast", "opcheck", "opcost", "opdiff", "opdoctor",
    "opfallback", "opgraph", "ophook", "opmonitor", "opreplay", "opreport", "opstable", "optime", "optrace",
    "plot_cost", "plot_errors", "plot_gradients", "plot_layers", "plot_memory", "plot_metrics", "plot_modules",
    "plot_op_counts", "plot_ops", "plot_ranks", "plot_repeats", "plot_roofline", "plot_steps", "producers",
    "register_flop_formula", "register_shape_formula", "roofline", "script_of", "side_by_side_text",
    "synchronising_calls", "tensors_with_ops", "what_if", "with_times",
]  # fmt: skip

# Imported at first use: a trace or a dump is read without torch, and plotly and anywidget take their time.
_HOMES = {
    "nbkit.analysis.cost.compare_cost": ("compare_cost",),
    "nbkit.analysis.cost.cost_tree": ("cost_tree",),
    "nbkit.analysis.cost.module_table": ("module_table",),
    "nbkit.analysis.time.compare_times": ("compare_times",),
    "nbkit.analysis.time.device": ("device_use", "launch_delays", "synchronising_calls"),
    "nbkit.analysis.time.gaps": ("gaps_by_module", "largest_gaps"),
    "nbkit.analysis.time.memory": ("held_at_peak", "memory_peaks"),
    "nbkit.analysis.time.op_times": ("op_times",),
    "nbkit.analysis.time.roofline": ("roofline",),
    "nbkit.analysis.time.times": ("by_input_shapes", "by_module_tree"),
    "nbkit.analysis.values.compare_values": ("compare_values",),
    "nbkit.analysis.values.producers": ("producers",),
    "nbkit.analysis.values.tensors_with_ops": ("tensors_with_ops",),
    "nbkit.capture.audit.leaks": ("leaks",),
    "nbkit.capture.audit.opaudit": ("opaudit",),
    "nbkit.capture.calibrate.calibrate": ("calibrate",),
    "nbkit.capture.calls.call_of": ("call_of",),
    "nbkit.capture.calls.script": ("script_of",),
    "nbkit.capture.check.opcheck": ("opcheck",),
    "nbkit.capture.distributed.clocks": ("align_clocks",),
    "nbkit.capture.cost.analyzer.cost_table": ("cost_table",),
    "nbkit.capture.cost.fits.fits": ("fits",),
    "nbkit.capture.cost.opcost": ("opcost",),
    "nbkit.capture.cost.fake.shape_formulas": ("register_shape_formula",),
    "nbkit.capture.cost.what_if.what_if": ("what_if",),
    "nbkit.capture.diff.opdiff": ("opdiff",),
    "nbkit.capture.doctor.opdoctor": ("opdoctor",),
    "nbkit.capture.hang.dump_ranks": ("dump_ranks",),
    "nbkit.capture.native.build": ("build_recorder",),
    "nbkit.capture.operators.bisect.opbisect": ("opbisect",),
    "nbkit.capture.operators.capture": ("opcapture",),
    "nbkit.capture.operators.cast": ("opcast",),
    "nbkit.capture.operators.fallback": ("opfallback",),
    "nbkit.capture.operators.hook.ophook": ("ophook",),
    "nbkit.capture.operators.replay.opreplay": ("opreplay",),
    "nbkit.capture.operators.stable.opstable": ("opstable",),
    "nbkit.capture.optrace": ("optrace",),
    "nbkit.capture.profiler.optime": ("optime",),
    "nbkit.capture.watch.opmonitor": ("opmonitor",),
    "nbkit.devices.device": ("Device",),
    "nbkit.devices.roofline": ("with_times",),
    "nbkit.simulated": ("FAULT_KINDS", "Fault", "SimulatedDevice"),
    "nbkit.verbs.alignment.exports": ("compare_exports",),
    "nbkit.verbs.alignment.opalign": ("opalign",),
    "nbkit.verbs.conversion.convert": ("convert",),
    "nbkit.verbs.load": ("load",),
    "nbkit.verbs.opgraph": ("opgraph",),
    "nbkit.views.alignment.text": ("side_by_side_text",),
    "nbkit.views.cost_table": ("cost_table_text",),
    "nbkit.views.diff_table.widget": ("DiffTable",),
    "nbkit.views.flamegraph.widget": ("FlameGraph",),
    "nbkit.views.graph.widget": ("GraphView",),
    "nbkit.views.module_table": ("module_table_text",),
    "nbkit.views.op_table.widget": ("OpTable",),
    "nbkit.views.plots": (
        "plot_cost",
        "plot_errors",
        "plot_gradients",
        "plot_layers",
        "plot_memory",
        "plot_metrics",
        "plot_modules",
        "plot_op_counts",
        "plot_ops",
        "plot_ranks",
        "plot_repeats",
        "plot_roofline",
        "plot_steps",
    ),
    "nbkit.views.report.opreport": ("opreport",),
}
_AT_FIRST_USE = {name: home for home, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # a type checker knows each name by its import, and tells one that is not there

    def __getattr__(name: str) -> Any:
        if name not in _AT_FIRST_USE:
            # Other programs look for names of their own in every module: none of them was mistyped.
            close = "" if name.startswith("_") else f"; {nearest(name, __all__)}"
            raise AttributeError(f"nbkit has no {name!r}{close}")
        if _AT_FIRST_USE[name].startswith("nbkit.views."):
            _know_the_views()
        value = globals()[name] = getattr(import_module(_AT_FIRST_USE[name]), name)
        return value


def __dir__() -> list[str]:
    """Returns the public names alone, which is what Tab offers."""
    return sorted({*__all__, "__all__", "__doc__", "__file__", "__name__", "__version__"})


def _know_the_views() -> None:
    """Tell the views layer what the traces of each verb show."""
    import_module("nbkit.verbs.registry")


class _Presenter:
    """The views layer, imported when the first trace is shown: plotly and anywidget take their time."""

    know_the_views = staticmethod(_know_the_views)

    def summary(self, trace: Trace) -> str:
        from nbkit.views.static_html import display

        _know_the_views()
        return display.summary(trace)

    def brief(self, trace: Trace, tokens: int, form: str) -> str:
        from nbkit.views.brief import text
        from nbkit.views.brief.brief import brief_of

        writers = {"text": text.brief_text, "markdown": text.brief_markdown, "json": text.brief_json}
        if form not in writers:
            raise OptionError(f"There is no form {form!r} of a brief; {nearest(form, writers)}")
        return writers[form](brief_of(trace), tokens)

    def mimebundle(self, trace: Trace) -> tuple[dict[str, Any], dict[str, Any]]:
        from nbkit.views.static_html import display

        _know_the_views()
        return display.mimebundle(trace)

    def shower(self, trace: Trace) -> Any:
        from nbkit.views.static_html import display

        _know_the_views()
        return display.shower(trace)

    def in_marimo(self, trace: Trace) -> Any:
        from nbkit.views.static_html import display

        _know_the_views()
        return display.in_marimo(trace)


Trace.presenter = _Presenter()


def load_ipython_extension(ipython: Any) -> None:
    """Adds the magics; `%load_ext nbkit` calls it."""
    # `ipython` is typed in the magics layer, the only one that imports IPython; plain scripts do without.
    from nbkit.magics import load as load_magics

    load_magics(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """Removes all that loading added; `%unload_ext nbkit` calls it."""
    from nbkit.magics import unload as unload_magics

    unload_magics(ipython)
