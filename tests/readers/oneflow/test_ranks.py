"""Several runs, graphs and ranks in one log keep their own graphs."""

import pytest

from tests.readers.oneflow import logs
from tests.readers.oneflow.frames import counts, nodes_of
from tests.support.graph_texts import ONEFLOW


def test_two_ranks_are_told_apart_by_their_threads(tmp_path):
    one, other = logs.traced(thread=7), logs.traced(thread=12345)
    trace = logs.read(tmp_path, logs.text([record for pair in zip(one, other, strict=True) for record in pair]))
    names = [nodes_of(trace, graph)["name"].tolist() for graph in ("Net_0 traced", "Net_0 #2 traced")]
    assert names[0] == names[1]
    assert len(names[0]) == 7
    assert [one["thread"] for one in trace.meta["oneflow"]["graphs"]] == ["7", "12345"]
    assert counts(trace.nodes["graph"]) == {"Net_0 traced": 7, "Net_0 #2 traced": 7}


def test_modules_of_mixed_ranks_are_called_by_all_of_them(tmp_path):
    mixed = [record for pair in zip(logs.built(thread=7), logs.built(thread=8), strict=True) for record in pair]
    trace = logs.read(tmp_path, logs.text(mixed))
    assert counts(trace.nodes["graph"]) == {"Net_0 traced": 7, "Net_0 #2 traced": 7}
    assert [one["class"] for one in trace.meta["oneflow"]["graphs"]] == ["Net", "Net"]  # as their stages say
    assert trace.modules["calls"].tolist() == [2, 2]
    assert trace.meta["notes"] == [
        "Module lines name no rank: calls of modules are those of all ranks whose lines are mixed."
    ]


def test_passes_of_two_ranks_have_times_of_their_own(tmp_path):
    mixed = [record for pair in zip(logs.passes(thread=7), logs.passes(thread=8), strict=True) for record in pair]
    passes = logs.read(tmp_path, logs.text(mixed)).meta["oneflow"]["passes"]
    assert [one["seconds"] for one in passes] == [0.25, 0.25]


def test_two_ranks_with_tags_may_mix_line_by_line(tmp_path):
    lines = logs.text(logs.records()).split("\n")[:-1]
    mixed = "".join(f"[1,{rank}]<stdout>:{line}\n" for line in lines for rank in (0, 1))
    trace = logs.read(tmp_path, mixed)
    assert list(counts(trace.nodes["graph"]).values()) == [10, 10, 7, 7]
    assert {"Net_0 #2 traced", "Net_0 #2 compiled"} < set(trace.nodes["graph"])
    assert [one["rank"] for one in trace.meta["oneflow"]["graphs"]] == ["0", "1"]
    assert trace.meta["skipped_lines"] == []
    assert trace.meta["oneflow"]["metric_events"] == 2


@pytest.mark.parametrize(
    "tag",
    ["[rank{}] ", "[rank{}]: ", "rank {}: ", "(Rank {}) ", "[{}] ", "worker-{} | ", "\x1b[1m2026-11-01 10:00:00 [{}] "],
)
def test_each_spelling_of_a_rank_makes_a_graph_of_its_own(tmp_path, tag):
    lines = ONEFLOW.splitlines()
    mixed = "".join(f"{tag.format(rank)}{line}\n" for line in lines for rank in (0, 1))
    trace = logs.read(tmp_path, mixed)
    assert counts(trace.nodes["graph"]) == {"net_0 compiled": 4, "net_0 #2 compiled": 4}
    assert [one["rank"] for one in trace.meta["oneflow"]["graphs"]] == ["0", "1"] and not trace.meta["notes"]


def test_a_tag_before_the_first_line_of_a_print_holds_for_all_of_it(tmp_path):
    trace = logs.read(tmp_path, f"[rank0] {ONEFLOW}[rank1] {ONEFLOW}")
    assert counts(trace.nodes["graph"]) == {"net_0 compiled": 4, "net_0 #2 compiled": 4}
    assert [one["rank"] for one in trace.meta["oneflow"]["graphs"]] == ["0", "1"]


@pytest.mark.parametrize("numbers", [[12] * 99, range(1, 99)], ids=["one number", "numbered lines"])
def test_numbers_in_brackets_that_are_no_ranks_name_none(tmp_path, numbers):
    lines = zip(numbers, ONEFLOW.splitlines(), strict=False)
    trace = logs.read(tmp_path, "".join(f"[{number}] {line}\n" for number, line in lines))
    assert counts(trace.nodes["graph"]) == {"net_0 compiled": 4}
    assert [one["rank"] for one in trace.meta["oneflow"]["graphs"]] == [None]


def test_a_bare_number_before_the_first_line_of_each_print_is_a_rank(tmp_path):
    trace = logs.read(tmp_path, f"[4] {ONEFLOW}[5] {ONEFLOW}")
    assert [one["rank"] for one in trace.meta["oneflow"]["graphs"]] == ["4", "5"]


def test_ranks_that_nothing_tells_apart_make_one_graph_with_a_note(tmp_path):
    trace = logs.read(tmp_path, "".join(f"{line}\n" * 2 for line in ONEFLOW.splitlines()))
    assert counts(trace.nodes["graph"]) == {"net_0 compiled": 4}
    assert trace.meta["notes"][0].startswith("4 lines of operators that their listing has already count once")


@pytest.mark.parametrize("threads", [(7, 7), (7, 8)])
def test_two_runs_after_each_other(tmp_path, threads):
    runs = [[*logs.built(thread=thread), logs.listing()] for thread in threads]
    trace = logs.read(tmp_path, logs.text([*runs[0], *runs[1]]))
    assert [counts(trace.nodes["graph"])[f"Net_0 #2 {kind}"] for kind in ("traced", "compiled")] == [7, 10]
    assert trace.modules["model"].tolist() == ["Net_0", "Net_0", "Net_0 #2", "Net_0 #2"]
    assert trace.modules["calls"].tolist() == [1, 1, 1, 1]


def test_two_graphs(tmp_path):
    parts = [*logs.built("Train_0"), *logs.built("Eval_1"), logs.listing("Train_0"), logs.listing("Eval_1")]
    trace = logs.read(tmp_path, logs.text(parts))
    graphs = ["Train_0 traced", "Train_0 compiled", "Eval_1 traced", "Eval_1 compiled"]
    assert trace.nodes["graph"].drop_duplicates().tolist() == graphs
    assert int(trace.edges["src"].isna().sum()) == 2


def test_listing_that_is_printed_twice_is_one(tmp_path):
    trace = logs.read(tmp_path, logs.text([*logs.built(), logs.listing(), logs.listing()]))
    assert counts(trace.nodes["graph"]) == {"Net_0 compiled": 10, "Net_0 traced": 7}
    assert trace.meta["oneflow"]["graphs"][0]["listings"] == 2


def test_listing_that_differs_is_another(tmp_path):
    other = [line.replace("size=(8, 2)", "size=(9, 2)") for line in logs.listing()]
    trace = logs.read(tmp_path, logs.text([*logs.built(), logs.listing(), other]))
    assert counts(trace.nodes["graph"])["Net_0 #2 compiled"] == 10


def test_module_that_is_called_three_times(tmp_path):
    module = ["(MODULE:model.fc:Linear(in_features=4, out_features=2, bias=False))"]
    trace = logs.read(tmp_path, logs.text([*logs.built()[:4], module, module, *logs.built()[4:], logs.listing()]))
    assert trace.modules["calls"].tolist() == [1, 3]
