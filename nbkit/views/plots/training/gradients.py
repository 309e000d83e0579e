"""Gradient flow: the norm of the gradients that each layer got, in order of depth."""

from typing import Any

import numpy as np
import pandas as pd

from nbkit import units
from nbkit.errors import OptionError
from nbkit.schema import PARAMETERS
from nbkit.trace.checks import checked_trace
from nbkit.trace.trace import Trace
from nbkit.views.plots.figures import LiveFigure, cut_names
from nbkit.views.plots.picture.live import live_picture
from nbkit.views.plots.picture.picture import MARK_COLOR, Chart, Picture, Series, log_if_wide
from nbkit.views.sections.section import module_names

# Rows at most: modules of more are drawn with what they hold.
MOST = 40
COLOR, NONE_COLOR = "#3b82f6", "#808080"
# What a layer is marked with that has no norm to be drawn, or not that of all its parameters; the worst first.
MARKS: dict[str, tuple[str, str, Any]] = {
    "non_finite": ("NaN or Inf", MARK_COLOR, "diamond"),
    "none": ("no gradient", NONE_COLOR, "x"),
    "zero": ("all zero", "#d97706", "circle"),
}


def plot_gradients(trace: Trace) -> "LiveFigure":
    """Returns live bars of the norm of each module's gradients, in the order of the model, from an audit.

    Marked are modules with a parameter whose gradient is NaN or Inf, zero, or missing. Modules of a model with many are
    drawn with what they hold. Raises OptionError for a trace without gradients.
    """
    return live_picture(gradients_picture(trace))


def gradients_picture(trace: Trace) -> Picture:
    """Describes plot_gradients."""
    known = PARAMETERS.check(checked_trace(trace).frames.get("parameters", PARAMETERS.frame()))
    known = known[known["gradient"].notna() & known["requires_grad"] & known["tied_with"].isna()]
    if not len(known):
        raise OptionError("This trace has no gradients of parameters; opaudit and `python -m nbkit audit` record them.")
    layers, depth = _layers(known)
    names = cut_names(module_names(layers))
    finite = layers["norm"] > 0
    lowest = float(layers["norm"][finite].min()) if finite.any() else 1.0
    log = log_if_wide(layers["norm"][finite].to_numpy(np.float64), "x")
    texts = [f"{name}: {row.norm:.3g}, {row.about}" for name, row in zip(names, layers.itertuples(), strict=True)]
    shown = np.flatnonzero(finite).tolist()
    bars = Series(
        "finite", layers["norm"][finite].tolist(), [names[at] for at in shown], COLOR, "bars",
        [texts[at] for at in shown],
    )  # fmt: skip
    series = [bars] if shown else []
    for state, (label, color, symbol) in MARKS.items():
        at = np.flatnonzero(layers["state"] == state).tolist()
        edge = lowest / 2 if log else 0.0
        if at:
            places, said = [names[each] for each in at], [texts[each] for each in at]
            series.append(Series(label, [edge] * len(at), places, color, "points", said, 9.0, symbol=symbol))
    title = f"Gradient norm of {units.counted(len(layers), 'module')}, in the order of the model"
    caption = f"paths of {units.counted(depth, 'part')} at most, with all that is below" if depth else ""
    height = 1.0 + 0.2 * min(max(len(names), 3), MOST)
    return Picture(title, [Chart(series, "2-norm of the gradients", "", log, names)], caption, height)


def _layers(known: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Returns model, module, norm, state and what is known of each module; and the depth of paths if it was limited."""
    depth, limit = int(known["module"].str.count(r"\.").max()) + 1, 0
    while depth > 1 and _groups(known, depth).ngroups > MOST:
        depth = limit = depth - 1
    rows = [(*name, *_of_layer(rows)) for name, rows in _groups(known, depth)]
    return pd.DataFrame(rows, columns=["model", "module", "norm", "state", "about"]), limit


def _groups(known: pd.DataFrame, depth: int) -> Any:
    paths = [".".join(path.split(".")[:depth]) for path in known["module"]]
    return known.assign(module=paths).groupby(["model", "module"], sort=False)


def _of_layer(rows: pd.DataFrame) -> tuple[float, str, str]:
    """Returns the norm of all finite gradients, the worst state of one, and how many parameters have which."""
    counts = rows["gradient"].value_counts()
    norms = rows["gradient_norm"][rows["gradient"].isin(["finite", "zero"])].to_numpy(np.float64)
    about = ", ".join(f"{str(name).replace('_', '-')} {count}" for name, count in counts.items())
    state = next((name for name in MARKS if name in counts), "finite")
    return float(np.sqrt(np.square(norms).sum())), state, f"gradients: {about}"
