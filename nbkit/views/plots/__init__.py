"""Charts of a trace: live ones with plotly (`plot_...`), and static ones with matplotlib (`draw_...`)."""

from nbkit.views.plots.cost import draw_cost, plot_cost
from nbkit.views.plots.errors import plot_errors
from nbkit.views.plots.flame import draw_flame
from nbkit.views.plots.memory import draw_memory, plot_memory
from nbkit.views.plots.metrics import draw_metrics, plot_metrics
from nbkit.views.plots.op_counts import draw_op_counts, plot_op_counts
from nbkit.views.plots.ranks import plot_ranks
from nbkit.views.plots.repeats import plot_repeats
from nbkit.views.plots.roofline import draw_roofline, plot_roofline
from nbkit.views.plots.self_time import draw_modules, draw_ops, plot_modules, plot_ops
from nbkit.views.plots.training.gradients import plot_gradients
from nbkit.views.plots.training.layers import plot_layers
from nbkit.views.plots.training.steps import plot_steps

__all__ = [
    "draw_cost",
    "draw_flame",
    "draw_memory",
    "draw_metrics",
    "draw_modules",
    "draw_op_counts",
    "draw_ops",
    "draw_roofline",
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
]
