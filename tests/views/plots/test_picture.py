"""The writers of pictures: the same in both libraries, with texts that neither reads as markup."""

from nbkit.views.plots.picture.live import live_picture
from nbkit.views.plots.picture.picture import Chart, Picture, Series, log_if_wide

HOSTILE = "<b>$x_{1$"


def test_both_draw_the_same_places_marks_and_words() -> None:
    series = [
        Series("one", [1.0, 2.0], [10.0, 1000.0], "#3b82f6"),
        Series("two", [1.0], [10.0], "#d64545", "points", ["say"], 9.0, symbol="x"),
    ]
    chart = Chart(series, "x (ms)", "y (MiB)", "y", across=[(100.0, "limit")], upright=[(2.0, "first")])
    figure = live_picture(Picture("title", [chart], "caption"))
    axes = figure.static().axes[0]
    assert [list(line.y) for line in figure.data] == [[10.0, 1000.0], [10.0]]
    assert axes.lines[0].get_ydata().tolist() == [10.0, 1000.0]
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == (axes.get_xlabel(), axes.get_ylabel())
    assert [shape.y0 for shape in figure.layout.shapes] == [100.0, 0]
    assert [note.y for note in figure.layout.annotations] == [2.0, 1]  # a logarithm where the axis is one
    assert [text.get_text().strip() for text in axes.texts] == ["limit", "first"]
    assert figure.layout.title.text == "title<br>caption" and axes.get_title(loc="left") == "title\ncaption"
    assert (axes.lines[1].get_color(), axes.lines[1].get_marker()) == ("#d64545", "x")


def test_names_are_neither_markup_nor_formulas() -> None:
    bars = Series(HOSTILE, [1.0], [HOSTILE], "#3b82f6", "bars", [HOSTILE])
    other = Series("b", [1.0], [HOSTILE], "#3b82f6", "points")
    chart = Chart([bars, other], HOSTILE, HOSTILE, rows=[HOSTILE], notes=[(HOSTILE, 1.0, 0.0)], across=[(0.0, HOSTILE)])
    figure = live_picture(Picture(HOSTILE, [chart], HOSTILE))
    figure.static().canvas.draw()
    assert figure.data[0].name == figure.data[0].y[0] == figure.data[0].text[0] == "&lt;b&gt;$x_{1$"
    assert "<b>" not in figure.to_json().replace("\\u003c", "<")


def test_bars_of_one_row_are_stacked_in_both() -> None:
    chart = Chart([Series(name, [2.0], ["row"], "#3b82f6", "bars") for name in "ab"], rows=["row"])
    figure = live_picture(Picture("t", [chart]))
    assert figure.layout.barmode == "stack"
    assert [box.get_x() for box in figure.static().axes[0].patches] == [0.0, 2.0]


def test_equal_names_of_rows_are_one_row_in_both() -> None:
    chart = Chart([Series("", [2.0, 1.0], ["row", "row"], "#3b82f6", "bars")], rows=["row", "row"])
    figure = live_picture(Picture("t", [chart]))
    assert list(figure.data[0].y) == ["row", "row"] and figure.layout.barmode == "stack"
    assert [(box.get_x(), box.get_width()) for box in figure.static().axes[0].patches] == [(0.0, 2.0), (2.0, 1.0)]


def test_of_very_many_rows_some_have_their_names() -> None:
    names = [f"r{number}" for number in range(100)]
    figure = live_picture(Picture("t", [Chart([Series("", [1.0] * 100, names, "#3b82f6", "bars")], rows=names)]))
    assert figure.layout.yaxis.dtick == 3
    assert [label.get_text() for label in figure.static().axes[0].get_yticklabels()][:2] == ["r99", "r96"]


def test_long_titles_are_wrapped_and_charts_below_each_other_share_their_x_axis() -> None:
    picture = Picture("word " * 40, [Chart([Series("", [1.0], [1.0], "#3b82f6")])] * 2)
    figure = live_picture(picture)
    assert max(map(len, figure.layout.title.text.split("<br>"))) <= 74
    assert figure.layout.xaxis.matches == "x2" and len(figure.static().axes) == 2


def test_an_axis_is_logarithmic_where_values_above_zero_are_far_apart() -> None:
    assert log_if_wide([1.0, 51.0], "y") == "y" and log_if_wide([0.0, 51.0], "y") == log_if_wide([1.0, 49.0], "y") == ""
    assert log_if_wide([float("nan")], "x") == ""
