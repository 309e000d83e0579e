"""Runs of graphs while a log is read."""

from nbkit.readers.oneflow.log.store import Graphs, Listing, Traced
from nbkit.readers.oneflow.text.traced import TracedOp


def names(graphs: Graphs) -> list[list[tuple[str, bool]]]:
    """The ops of each run, and whether they were taken."""
    return [[(op.name, op.is_added) for op in run.ops.values()] for run in graphs.traced]


def test_an_op_that_is_taken_twice_begins_another_run() -> None:
    graphs, key = Graphs(), ("g", "0", "1")
    graphs.tried(*key, TracedOp("a", 1))
    assert graphs.last_tried(*key) is graphs.traced[0].ops["a"]
    graphs.tried(*key, TracedOp("a", 2))
    graphs.added(*key, "a", 3)
    assert graphs.last_tried(*key) is None
    graphs.added(*key, "b", 4)
    assert names(graphs) == [[("a", True), ("b", True)]]
    graphs.tried(*key, TracedOp("a", 5))
    graphs.added(*key, "b", 6)
    assert names(graphs) == [[("a", True), ("b", True)], [("a", False), ("b", True)]]
    graphs.added(*key, "b", 7)
    assert names(graphs)[2] == [("b", True)]
    assert [run.name for run in graphs.traced] == ["g"] * 3
    graphs.added("g", "1", "1", "a", 8)
    graphs.added("h", "0", "1", "a", 8)
    assert len(graphs.traced) == 5
    graphs.clear()
    graphs.added(*key, "c", 9)
    assert names(graphs) == [[("c", True)]]


def test_what_is_printed_whole_replaces_what_was_taken_or_damaged() -> None:
    graphs, key = Graphs(), ("g", None, None)
    graphs.tried(*key, TracedOp("a", 1))
    graphs.printed(*key, TracedOp("a", 2))
    assert graphs.traced[0].ops["a"].line == 1
    graphs.printed(*key, TracedOp("a", 3))
    assert [list(run.ops) for run in graphs.traced] == [["a"], ["a"]]
    graphs.tried(*key, TracedOp("b", 4, is_damaged=True))
    graphs.printed(*key, TracedOp("b", 5))
    assert graphs.traced[1].ops["b"].line == 5


def test_an_op_of_which_only_the_name_is_known_is_told_by_it() -> None:
    graphs = Graphs()
    made = [
        graphs.added("g", None, None, name, 7)
        for name in ("_g_input.0", "_g-output_1", "model.w", "m-matmul-3", "m-FreeEagerTensor-4")
    ]
    assert [(op.kind, op.op, op.outputs) for op in made] == [
        ("input", None, ["_g_input.0/out"]),
        ("output", None, ["_g-output_1/out"]),
        ("parameter", None, ["model.w/out"]),
        ("op", "matmul", []),
        ("constant", None, ["m-FreeEagerTensor-4/out"]),
    ]  # fmt: skip
    assert {op.has_text for op in made} == {False}


def test_a_listing_that_is_printed_again_is_a_copy() -> None:
    graphs = Graphs()
    graphs.traced.append(Traced("g", "0", None))
    for hashes in ([1, 2, 3], [1, 2], [1, 4], []):
        graphs.close(Listing("g", "0", 1, hashes=hashes))
    assert [(listing.hashes, listing.copies, listing.runs) for listing in graphs.listings] == [
        ([1, 2, 3], 2, 1),
        ([1, 4], 1, 1),
        ([], 1, 1),
    ]
    graphs.close(Listing("g", "1", 1, hashes=[1, 2]))
    graphs.traced.append(Traced("g", "0", None))
    graphs.close(Listing("g", "0", 1, hashes=[1, 2]))
    assert [listing.runs for listing in graphs.listings[3:]] == [0, 2]


def test_a_tree_goes_on_until_it_is_built() -> None:
    graphs = Graphs()
    first = graphs.tree("g", "0")
    other = graphs.tree("g", "1")
    assert graphs.tree("g", "0") is first is not other
    graphs.built("g", "0")
    assert graphs.tree("g", "1") is other
    assert graphs.tree("g", "0") is not first
    assert [(name, rank) for name, rank, _ in graphs.trees] == [("g", "0"), ("g", "1"), ("g", "0")]
