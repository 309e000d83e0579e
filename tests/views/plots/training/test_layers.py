"""The heat map of the layers over the steps of a watched run."""

import numpy as np
import pytest

from nbkit.errors import OptionError
from nbkit.schema import METRICS
from nbkit.trace.trace import Trace
from nbkit.views.plots import plot_layers
from nbkit.views.plots.training.layers import COLUMNS


def watched(steps, value=lambda layer, step: float(layer + 1)):
    rows = [
        {"step": step, "name": f"gradient_norm/layers.{layer}", "value": value(layer, step)}
        for step in steps
        for layer in range(3)
    ]
    return Trace({"metrics": METRICS.frame(rows)}, {"verb": "opaudit"})


def test_each_layer_is_a_row_and_each_step_a_column():
    figure = plot_layers(watched(range(4), lambda layer, step: layer + step / 10))
    (heat,) = figure.data
    assert list(heat.x) == [0, 1, 2, 3] and list(heat.y) == ["layers.0", "layers.1", "layers.2"]
    assert np.asarray(heat.z)[2].tolist() == pytest.approx([2.0, 2.1, 2.2, 2.3])
    axes = figure.static().axes
    assert [label.get_text() for label in axes[0].get_yticklabels()] == ["layers.0", "layers.1", "layers.2"]


def test_steps_of_a_long_run_share_columns_and_a_spike_stays_visible():
    (heat,) = plot_layers(watched(range(0, 100_000, 50), lambda layer, step: 1e4 if step == 50_050 else 1.0)).data
    cells = np.asarray(heat.customdata)
    assert cells.shape == (3, COLUMNS)
    assert cells.max() == 1e4 and (cells == 1e4).sum() == 3
    column = int(np.flatnonzero(cells[0] == 1e4)[0])
    assert heat.x[column] <= 50_050 < heat.x[column + 1]
    assert np.asarray(heat.z).max() == 4.0  # the power of ten


def test_what_is_not_finite_is_an_empty_cell():
    (heat,) = plot_layers(watched(range(2), lambda layer, step: float("nan") if step else 1.0)).data
    assert np.isnan(np.asarray(heat.z)).tolist() == [[False, True]] * 3


def test_another_value_and_a_trace_without_layers_are_refused():
    with pytest.raises(OptionError, match="There is no value 'gradient_nrom' of layers"):
        plot_layers(watched([0]), "gradient_nrom")
    with pytest.raises(OptionError, match="This trace has no weight_norm of layers; opmonitor and"):
        plot_layers(watched([0]), "weight_norm")
