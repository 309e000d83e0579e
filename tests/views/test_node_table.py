"""The frame of cost_table is an op table of its nodes, and a report of them."""

import pandas as pd
import pytest
import torch
from torch import Tensor, nn

import nbkit
from nbkit.views.op_table.node_columns import node_trace


class Parts(nn.Module):
    """A model whose nodes return one tensor, several, and none."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.attention = nn.Linear(8, 8), nn.MultiheadAttention(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        out, _ = self.attention(x, x, self.first(x), need_weights=False)
        return torch.cat(out.split([3, 5], -1), -1)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return nbkit.cost_table(Parts(), torch.randn(2, 3, 8))


def cells(widget: nbkit.OpTable, **query: object) -> pd.DataFrame:
    answer = widget.source.answer({"kind": "rows", "query": query})
    return pd.DataFrame([row[2:] for row in answer["rows"]], columns=answer["columns"])


def test_the_widget_shows_what_the_frame_holds(table):
    shown = cells(nbkit.OpTable(table))
    names = {"op": "name", "level": "op_kind", "device": "device", "module": "module"}
    sizes = [name for name in table if name.endswith(("_bytes", "_flops"))]
    for column, name in {**names, **dict(zip(sizes, sizes, strict=True))}.items():
        assert [None if pd.isna(cell) else cell for cell in shown[column]] == [
            None if pd.isna(cell) else cell for cell in table[name]
        ]
    both = table["forward_flops"] + table["backward_flops"]
    assert shown["total_flops"].tolist() == both.tolist() and both.sum() > 0
    described = [
        None if pd.isna(shape) else f"{dtype} {shape}"
        for dtype, shape in zip(table["dtype"], table["shape"], strict=True)
    ]
    firsts = [text and text.split("], [")[0].removesuffix("]") + "]" for text in described]
    assert [None if pd.isna(cell) else cell for cell in shown["output"]] == firsts


def test_its_rows_are_filtered_and_grouped(table):
    widget = nbkit.OpTable(table)
    sort = [{"column": "incremental_bytes", "descending": True}]
    most = cells(widget, sort=sort)["op"].iloc[0]
    assert most == table["name"].iloc[table["incremental_bytes"].argmax()]
    ways = widget.overview["cost"]["ways"]
    groups = {name: cells(widget, group=way["group"], sort=way["sort"]) for name, way in ways.items()}
    assert all(
        each["total_flops"].sum() == (table["forward_flops"] + table["backward_flops"]).sum()
        for each in groups.values()
    )
    assert dict(zip(groups["kind"]["level"], groups["kind"]["calls"], strict=True)) == dict(
        table["op_kind"].value_counts()
    )
    assert widget.filtered["op"].tolist() == table["name"].tolist()
    detail = widget.source.answer({"kind": "detail", "op_id": int((table["name"] == "split").argmax())})
    assert [row[3] for row in detail["tensors"]["rows"]] == ["[2, 3, 3]", "[2, 3, 5]"]


def test_a_report_says_it_in_words_and_has_every_node(table, tmp_path):
    page = nbkit.opreport(table, path=tmp_path / "nodes.html").read_text()
    assert all(f">{name}<" in page for name in table["name"])
    assert "How much is saved" in page and table.attrs["flops"] in page
    again = nbkit.opreport(node_trace(table), path=tmp_path / "again.html").read_text()
    assert page == again


def test_the_brief_names_the_node_that_saves_most(table):
    said = node_trace(table).brief()
    assert said.startswith("It saves ") and "Not timed" not in said and "nodes" in said
    assert table["name"].iloc[table["incremental_bytes"].argmax()] in said


def test_its_trace_is_saved_and_loaded(table, tmp_path):
    trace = node_trace(table)
    loaded = nbkit.load(trace.save(tmp_path / "nodes"))
    pd.testing.assert_frame_equal(loaded.node_costs, table)
    assert loaded.summary() == trace.summary()


def test_unknown_flops_stay_unknown(table):
    unknown = table.copy()
    unknown.loc[1, "backward_flops"] = pd.NA
    assert cells(nbkit.OpTable(unknown))["total_flops"].isna().tolist() == [row == 1 for row in range(len(table))]
    assert f"FLOPs of 1 node are not known and not in it: {table['name'][1]}" in node_trace(unknown).brief().replace(
        "\n", " "
    )


def test_a_table_without_rows_or_attrs_is_shown(table, tmp_path):
    few = table.iloc[:0].reset_index(drop=True)
    few.attrs.clear()
    assert len(cells(nbkit.OpTable(few))) == 0
    with pytest.raises(nbkit.OptionError, match="nothing to report"):
        nbkit.opreport(few, path=tmp_path / "none.html")


@pytest.mark.parametrize("frame", [pd.DataFrame({"a": [1]}), nbkit.schema.OPS.frame()])
def test_another_frame_is_refused(frame, tmp_path):
    for show in (nbkit.OpTable, lambda frame: nbkit.opreport(frame, path=tmp_path / "no.html")):
        with pytest.raises(nbkit.OptionError, match=r"none of a table of nodes; give the frame that nbkit\.cost_table"):
            show(frame)
