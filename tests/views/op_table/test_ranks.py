"""The op table of a job answers by SQL what pandas has of all ranks together."""

import json

import numpy as np
import pandas as pd
import pytest

import nbkit
from nbkit.views.op_table.ranks import source as ranks
from nbkit.views.op_table.ranks.source import RanksSource
from nbkit.views.op_table.source import OpSource
from nbkit.views.op_table.widget import OpTableModel
from tests.support.fakes import fake_trace
from tests.support.jobs import all_ops, save_job

CALL_ORDER = {"sort": [{"column": "op_id", "descending": False}]}
SLOWEST = {"sort": [{"column": "self_time_us", "descending": True}]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_job(tmp_path_factory.mktemp("ranks") / "job", 4)


@pytest.fixture
def source(folder):
    return RanksSource(nbkit.load(folder))


@pytest.fixture(scope="module")
def ops(folder):
    return all_ops(folder)


FILTERED = {
    "predicates": [{"column": "op", "op": "contains", "value": "mm"}],
    "sort": [{"column": "op"}, {"column": "self_time_us", "descending": True}],
}


def rows_of(source, query, **more):
    answer = source.answer({"kind": "rows", "query": query, **more})
    assert answer["kind"] == "rows", answer
    json.dumps(answer)  # JSON data
    return answer


def numbers_of(source, query, **more):
    return [row[0] for row in rows_of(source, query, **more)["rows"]]


def test_rows_come_by_rank_and_in_call_order(source, ops):
    answer = rows_of(source, CALL_ORDER, offset=6, limit=4)
    assert (answer["matched"], answer["listed"], answer["offset"]) == (32, 32, 6)
    assert answer["amount"] == pytest.approx(ops["self_time_us"].sum())
    at = answer["columns"].index
    cells = [[row[2 + at("rank")], row[2 + at("op_id")], row[2 + at("op")]] for row in answer["rows"]]
    assert [row[0] for row in answer["rows"]] == [6, 7, 8, 9]
    assert cells == ops[["rank", "op_id", "op"]].iloc[6:10].to_numpy().tolist()


@pytest.mark.parametrize("column", ["self_time_us", "op", "module", "rank"])
@pytest.mark.parametrize("descending", [True, False])
def test_a_sort_keeps_ties_in_order_and_what_is_missing_last(source, ops, column, descending):
    keys = ops[column].where(ops[column].notna(), None)
    expected = keys.sort_values(ascending=not descending, kind="stable", na_position="last").index.tolist()
    query = {"sort": [{"column": column, "descending": descending}]}
    assert numbers_of(source, query) == expected
    assert numbers_of(source, query, offset=10, limit=5) == expected[10:15]


def test_a_filter_is_of_all_ranks_and_by_rank(source, ops):
    predicates = [
        {"column": "rank", "op": "at_least", "value": 2}, {"column": "op", "op": "contains", "value": "MM"}
    ]  # fmt: skip
    fits = (ops["rank"] >= 2) & ops["op"].str.contains("mm")
    answer = rows_of(source, {"predicates": predicates, **CALL_ORDER})
    assert [row[0] for row in answer["rows"]] == np.flatnonzero(fits).tolist()
    assert answer["matched"] == fits.sum() and answer["amount"] == pytest.approx(ops["self_time_us"][fits].sum())
    assert answer["largest"] == ops["self_time_us"][fits].max()


@pytest.mark.parametrize("by", [["rank"], ["op"], ["rank", "module", "model"], ["op", "input_shapes"]])
def test_groups_sum_over_all_ranks(source, ops, by):
    group = {"by": by, "totals": {"self_time_us": "sum"}}
    answer = rows_of(source, {**SLOWEST, "group": group})
    expected = ops.groupby(by, dropna=False)["self_time_us"].agg(["size", "sum"]).sort_values("sum", ascending=False)
    at = answer["columns"].index
    assert (answer["groups"], answer["matched"]) == (len(expected), 32)
    assert sorted(row[2 + at("calls")] for row in answer["rows"]) == sorted(expected["size"])
    assert [row[2 + at("self_time_us")] for row in answer["rows"]] == pytest.approx(expected["sum"].tolist())
    found = source.groups()
    assert isinstance(found, pd.DataFrame) and list(found.columns) == answer["columns"]


def test_a_group_has_the_texts_that_all_its_rows_have(source):
    group = {"by": ["op"], "totals": {"self_time_us": "sum"}}
    answer = rows_of(source, {**SLOWEST, "group": group})
    at = answer["columns"].index
    phases = {row[2]: row[2 + at("phase")] for row in answer["rows"]}
    assert phases["aten.addmm.default"] == "forward" and phases["torch.Tensor.backward"] == "backward"
    by_rank = rows_of(source, {**SLOWEST, "group": {**group, "by": ["rank"]}})
    assert [row[2 + by_rank["columns"].index("op")] for row in by_rank["rows"]] == ["several"] * 4


def test_a_group_opens_and_stays_open_under_a_filter(source, ops):
    group = {"by": ["rank"], "totals": {"self_time_us": "sum"}}
    closed = rows_of(source, {**SLOWEST, "group": group})
    number = -1 - closed["rows"][1][0]  # rank 2
    predicates = [{"column": "op", "op": "contains", "value": "mm"}]
    answer = rows_of(source, {**SLOWEST, "predicates": predicates, "group": {**group, "open": [number]}})
    inside = [row[0] for row in answer["rows"] if row[0] >= 0]
    fits = ops[(ops["rank"] == 2) & ops["op"].str.contains("mm")]
    assert inside == fits.sort_values("self_time_us", ascending=False, kind="stable").index.tolist()
    assert answer["listed"] == 4 + len(inside) and [row[1] for row in answer["rows"] if row[0] >= 0] == [1] * len(
        inside
    )


def test_a_filter_on_a_number_is_about_the_sums_of_groups(source, ops):
    group = {"by": ["rank"], "totals": {"self_time_us": "sum"}}
    sums = ops.groupby("rank")["self_time_us"].sum()
    predicates = [{"column": "self_time_us", "op": "above", "value": float(sums[1])}]
    answer = rows_of(source, {**SLOWEST, "predicates": predicates, "group": group})
    assert [row[2] for row in answer["rows"]] == [3, 2]


@pytest.mark.parametrize("query", [CALL_ORDER, SLOWEST, FILTERED])
def test_a_row_is_found_where_it_is_listed(source, query):
    listed = numbers_of(source, query)
    for row in range(32):
        answer = source.answer({"kind": "position", "op_id": row, "query": query})
        assert answer["position"] == (listed.index(row) if row in listed else None), (row, answer)


def test_a_row_of_a_closed_group_names_the_group(source):
    query = {**SLOWEST, "group": {"by": ["rank"], "totals": {"self_time_us": "sum"}}}
    numbers = {row[2]: -1 - row[0] for row in rows_of(source, query)["rows"]}
    answer = source.answer({"kind": "position", "op_id": 17, "query": query})
    assert (answer["position"], answer["closed"]) == (None, numbers[2])


def test_a_detail_is_of_one_op_of_one_rank(source):
    answer = source.answer({"kind": "detail", "op_id": 8 * 2 + 1})
    assert answer["op"] == "aten.addmm.default (op 1 of rank 2)" and answer["fields"]["rank"] == 2
    assert answer["links"]["called_by"] == {"links": [[16, "torch.nn.functional.linear"]], "total": 1}
    assert answer["links"]["backward"]["links"][0][0] == 8 * 2 + 6 and answer["tensors"]["total"] > 0


def test_modules_and_profiles_are_of_all_ranks(source, ops):
    answer = source.answer({"kind": "modules"})
    tree = {row[1]: row[5] for row in answer["rows"]}
    inside = ops["module"].notna()
    assert tree[""] == inside.sum() and tree["fc"] == (ops["module"] == "fc").sum()
    assert answer["outside"][0] == (~inside).sum() and answer["amount"] == pytest.approx(ops["self_time_us"].sum())
    profile = source.answer({"kind": "profile", "query": CALL_ORDER})
    assert profile["columns"]["rank"]["bins"][0] == 8 and profile["columns"]["op"]["different"] == ops["op"].nunique()


def test_the_same_ops_are_listed_as_of_one_trace(tmp_path):
    trace = fake_trace(2_000)
    trace.save(tmp_path / "job/rank=0")
    one, job = OpSource(trace), RanksSource(nbkit.load(tmp_path / "job"))
    predicates = [{"column": "module", "op": "inside", "value": "blocks.1"}]
    for query in (CALL_ORDER, SLOWEST, {"predicates": predicates, **SLOWEST}):
        for offset in (0, 100, 1_900):
            ids = [[row[0] for row in source.answer({"kind": "rows", "query": query, "offset": offset})["rows"]]
                   for source in (one, job)]  # fmt: skip
            assert ids[0] == ids[1]


def test_a_very_large_job_is_not_summed_unasked(folder, monkeypatch):
    monkeypatch.setattr(ranks, "MANY", 10)
    source = RanksSource(nbkit.load(folder))
    answer = rows_of(source, CALL_ORDER, limit=2)
    assert (answer["matched"], answer["amount"]) == (32, None) and answer["largest"] > 0
    assert source.overview()["group"] == "" and source.answer({"kind": "modules"})["total"] == 0
    assert any("module tree is left out" in note for note in source.overview()["notes"])
    assert source.answer({"kind": "profile", "query": CALL_ORDER})["columns"] == {}


def test_what_is_not_there_is_an_error(source):
    by_time = {"group": {"by": ["self_time_us"], "totals": {}}}
    unknown = [{"kind": "rows", "query": query} for query in ({"sort": [{"column": "speed"}]}, by_time)]
    for message in ({"kind": "detail", "op_id": 32}, *unknown, {"kind": "what"}):
        answer = source.answer({"id": 5, **message})
        assert (answer["kind"], answer["id"]) == ("error", 5) and answer["message"].startswith("OptionError: The")


def test_the_widget_shows_a_job(folder, ops):
    table = OpTableModel(nbkit.load(folder))
    assert set(table.overview["ways"]) >= {"rank", "op", "module"} and table.overview["looks"]["rank"][2] == "whole"
    table.answer({"kind": "rows", "query": {"predicates": [{"column": "rank", "op": "equals", "value": 3}]}})
    assert table.filtered["rank"].unique().tolist() == [3] and len(table.filtered) == 8
    table.show_within("some", np.array([1, 9]))
    assert table.answer({"kind": "rows", "query": SLOWEST})["matched"] == 2
    table.selected_op_id = 31
    with pytest.raises(Exception, match="There is no op 32; the ops of this trace are 0 to 31"):
        table.selected_op_id = 32
