"""Draws a picture with plotly."""

from typing import Any

import numpy as np

from nbkit.views.plots.figures import INK, MAX_NAME, LiveFigure, live_figure, on_any_page, translucent, without_markup
from nbkit.views.plots.picture.picture import MARK_COLOR, NAMED, Chart, Picture, Series, quartiles
from nbkit.views.plots.picture.static import static_picture
from nbkit.views.summary.facts import phase_color
from nbkit.views.summary.names import shown

# Pixels of an inch of a picture, of a line of its heading, of what stands below its axes.
INCH, LINE, BELOW = 110, 19, 45
# From this ratio on, each power of ten is enough on a logarithmic axis.
DECADES = 100.0
MODES = {"line": "lines+markers", "points": "markers"}


def live_picture(picture: Picture) -> "LiveFigure":
    """Makes a live figure of the picture, with a static view of the same."""
    from plotly.subplots import make_subplots

    heading, count = picture.heading(), len(picture.charts)
    top, legend = 26 + LINE * len(heading), BELOW * picture.has_legend
    drawn = INCH * picture.height * count
    gap = 0.04 if picture.shares_x else min(70 / drawn, 0.4)
    weights = [chart.weight for chart in picture.charts]
    look = {"shared_xaxes": picture.shares_x, "vertical_spacing": gap if count > 1 else 0, "row_heights": weights}
    grid = make_subplots(rows=count, cols=1, **look)
    title = {"text": "<br>".join(map(without_markup, heading)), "yref": "container", "y": 1.0, "yanchor": "top"}
    figure = live_figure([], "", round(drawn) + top + legend + BELOW, "").update_layout(grid.layout)
    figure.update_layout(title={**title, "pad_t": 10, "font_size": 14}, margin_t=top, barmode="stack")
    figure.update_layout(showlegend=picture.has_legend, legend={"orientation": "h", "y": -70 / drawn, "yanchor": "top"})
    for number, chart in enumerate(picture.charts, 1):
        _add(figure, chart, "" if number == 1 else str(number))
    return on_any_page(figure).with_static_view(lambda: static_picture(picture))


def _add(figure: "LiveFigure", chart: Chart, axis: str) -> None:
    for series in chart.series:
        figure.add_trace(_trace(series, axis))
    x, y = figure.layout[f"xaxis{axis}"], figure.layout[f"yaxis{axis}"]
    x.update(title_text=chart.x_title, type="log" if "x" in chart.log else "linear")
    y.update(title_text=without_markup(chart.y_title), type="log" if "y" in chart.log else "linear", automargin=True)
    for ax, name in ((x, "x"), (y, "y")):
        if name in chart.log:
            values = [value for series in chart.series for value in getattr(series, name) if value]
            ax.update(exponentformat="power", dtick=1 if values and max(values) > DECADES * min(values) else None)
    if chart.rows:
        names = [without_markup(name) for name in chart.rows][::-1]
        y.update(type="category", categoryorder="array", categoryarray=names, dtick=-(-len(names) // NAMED))
    if chart.from_zero:
        y.update(rangemode="tozero")
    _mark(figure, chart, f"x{axis}", f"y{axis}")


def _mark(figure: "LiveFigure", chart: Chart, x: str, y: str) -> None:
    line = {"color": MARK_COLOR, "dash": "dot", "width": 1.5}
    lines = [
        *({"xref": f"{x} domain", "x0": 0, "x1": 1, "yref": y, "y0": at, "y1": at} for at, _ in chart.across),
        *({"xref": x, "x0": at, "x1": at, "yref": f"{y} domain", "y0": 0, "y1": 1} for at, _ in chart.upright),
    ]
    for place in lines:
        figure.add_shape(type="line", line=line, **place)
    for at, text in chart.across:
        height = np.log10(at) if "y" in chart.log else at  # of annotations alone
        figure.add_annotation(xref=f"{x} domain", x=1, xanchor="right", yref=y, y=height, **_note(text, MARK_COLOR))
    for at, text in chart.upright:
        note = {**_note(text, MARK_COLOR), "yanchor": "top"}
        figure.add_annotation(xref=x, x=at, yref=f"{y} domain", y=1, xanchor="left", **note)
    for phase, first, last in chart.bands:
        figure.add_shape(
            type="rect", xref=x, yref=f"{y} domain", x0=first, x1=last, y0=1.0, y1=1.03, line_width=0,
            fillcolor=phase_color(phase),
        )  # fmt: skip
    for phase, first, last in chart.long_bands():
        name = _note(shown(phase, MAX_NAME), INK)
        figure.add_annotation(xref=x, x=(first + last) / 2, yref=f"{y} domain", y=1.03, **name)


def _note(text: str, color: str) -> dict[str, Any]:
    return {"text": without_markup(text), "showarrow": False, "font": {"color": color, "size": 11}, "yanchor": "bottom"}


def _trace(series: Series, axis: str) -> Any:
    from plotly import graph_objects

    is_named, color = series.kind in ("bars", "boxes"), series.color
    y = [without_markup(value) if isinstance(value, str) else value for value in series.y]
    shared: dict[str, Any] = {
        "name": without_markup(series.name), "showlegend": bool(series.name), "xaxis": f"x{axis}", "yaxis": f"y{axis}",
        "y": y,
    }  # fmt: skip
    if series.texts:
        shared |= {"text": [*map(without_markup, series.texts)], "hovertemplate": "%{text}<extra></extra>"}
    if is_named:
        shared["orientation"] = "h"
    if series.kind == "boxes":
        names = ("lowerfence", "q1", "median", "q3", "upperfence")
        values = zip(*map(quartiles, series.x), strict=True)
        return graph_objects.Box(**shared, **dict(zip(names, values, strict=True)), line_color=color, line_width=1.5)
    shared["x"] = [*series.x]
    if series.kind == "bars":
        return graph_objects.Bar(**shared, marker_color=color, textposition="none")
    shape = "hv" if series.kind in ("steps", "area") else "linear"
    shared |= {"mode": MODES.get(series.kind, "lines"), "line": {"color": color, "shape": shape}}
    if series.is_dotted:
        shared |= {"mode": "lines", "line_dash": "dot"}
    if series.kind == "area":
        shared |= {"stackgroup": "all", "line_width": 0.5, "fillcolor": translucent(color, 0.7)}
    fill = color if isinstance(series.sizes, float) else translucent(color, 0.6)
    marker = {"size": series.sizes, "color": fill, "symbol": series.symbol, "line": {"width": 0}}
    return graph_objects.Scatter(**shared, marker=marker)
