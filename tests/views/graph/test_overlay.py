"""What `color_by` joined, as the view of a graph gets it: columns of nodes and parts, units, and a caption."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from torch import nn

import nbkit
from nbkit.trace.trace import Trace
from nbkit.views.graph.data import graph_data
from nbkit.views.graph.overlay import overlay_in
from nbkit.views.graph.widget import GraphView
from nbkit.views.report.leaving import leaving
from tests.views.graph.test_widget import outline_of


def tree() -> Trace:
    return nbkit.opgraph(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))


def colored(column: str, values: list[Any], **options: Any) -> Trace:
    return tree().color_by(
        pd.DataFrame({"module": ["0", "0", "1", "x"][: len(values)], column: values}), column, **options
    )


@pytest.mark.parametrize(
    ("column", "kind", "expected"),
    [
        ("self_time_us", "duration", 3.0), ("t_ns", "duration", 0.003), ("t_ms", "duration", 3000.0),
        ("time_s", "duration", 3e6), ("size_bytes", "data_size", 3.0), ("flops", "flops", 3.0), ("calls", "count", 3.0),
        ("total_fraction", "share", 2.0), ("noise_ratio", "ratio", 2.0), ("loss", "number", 2.0),
    ],
)  # fmt: skip
def test_units_come_from_the_name_of_a_column(column: str, kind: str, expected: float) -> None:
    overlay = overlay_in(colored(column, [1.0, 2.0]))
    assert overlay is not None and overlay.value is not None
    assert (overlay.label, overlay.value.format, overlay.value.is_scaled) == (column, kind, True)
    np.testing.assert_allclose(overlay.numbers["parts"]["overlay"], [np.nan, expected, np.nan])
    assert overlay.numbers["parts"]["overlay_rows"].tolist()[1] == 2.0
    assert np.isnan(overlay.numbers["nodes"]["overlay"]).all()


def test_a_caption_says_what_a_box_has_and_what_of_the_frame_is_here() -> None:
    captions = [
        overlay_in(colored("t_us", [1, 2, 3])),
        overlay_in(colored("ratio", [1, 2, 3, 4])),
        overlay_in(colored("t_us", [1, 2], how="mean")),
        overlay_in(tree().color_by(tree().modules, "params")),
        overlay_in(colored("status", ["a", "b"])),
    ]
    assert [overlay and overlay.caption for overlay in captions] == [
        "t_us: sum of all in a box",
        "ratio: largest in a box; 2 of 3 modules of the frame are here",
        "t_us: mean in a box",
        "params: of each module itself",
        "status",
    ]
    assert overlay_in(tree()) is None


def test_texts_are_packed_with_nodes_and_parts() -> None:
    data = outline_of(graph_data(colored("status", ["a", "a", "b"])))
    assert data["overlay"] == {"label": "status", "caption": "status", "isInclusive": False}
    assert data["parts"]["texts"]["overlay"]["values"] == ["a", "b"]
    assert [value["name"] for value in data["values"]] == ["counted_params"]
    assert data["nodes"]["texts"]["overlay"]["values"] == []


def test_numbers_come_first_of_what_colors() -> None:
    values = outline_of(graph_data(colored("ratio", [1.0, 2.0])))["values"]
    assert [(value["name"], value["label"], value["center"]) for value in values] == [
        ("overlay", "ratio", 1.0),
        ("counted_params", "parameters", None),
    ]


def test_a_widget_is_colored_in_place_and_plain_again() -> None:
    view = GraphView(tree())
    plain = view.graph
    assert view.color_by(tree().modules, "params") is view and view.graph != plain
    assert outline_of(view.graph)["overlay"]["label"] == "params"
    assert view.color_by(None).graph == plain


def test_paths_in_texts_are_short_in_a_report() -> None:
    trace = leaving(colored("file", [f"{Path.home()}/model.py"]), values=False)
    assert trace.overlay["category"].tolist() == ["~/model.py"]


def test_of_two_graphs_each_side_has_its_caption_and_numbers_have_one_scale() -> None:
    def rows(*values: Any) -> pd.DataFrame:
        return pd.DataFrame({"module": ["0", "1", "x"][: len(values)], "t_us": values})

    pair = nbkit.opgraph(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), against=nn.Sequential(nn.Linear(2, 2)))
    overlay = outline_of(graph_data(pair.color_by((rows(1.0), rows(2.0, 3.0, 4.0)), "t_us")))["overlay"]
    assert [side["caption"] for side in overlay["sides"]] == [
        "t_us: sum of all in a box; one scale for both sides",
        "t_us: sum of all in a box; one scale for both sides; 1 of 3 modules of the frame are here",
    ]
    alone = outline_of(graph_data(pair.color_by((None, rows(2.0)), "t_us")))["overlay"]
    assert alone["sides"] == [None, {"caption": "t_us: sum of all in a box", "isInclusive": False}]
    texts = overlay_in(pair.color_by((rows("a"), rows("b")), "t_us"))
    assert texts is not None and texts.sides is not None and texts.caption == "t_us: of each module itself"
