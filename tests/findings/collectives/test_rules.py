"""Ranks that miss a call or make another one are named, and no rank that nothing tells to be at fault."""

import json

import nbkit
from tests.readers.flight_recorder.dumps import call, dump, write

A, B, C = call(line=10), call("broadcast", line=11), call(shape=(8,), line=12)
OWN = call(line=13, group=("1", "own"))


def found(tmp_path, dumps, **how):
    trace = nbkit.load(write(tmp_path / "dumps", dumps, **how))
    keys = ("ranks", "seq")
    return trace, [
        (row["rule"], row["severity"], *(json.loads(row["evidence"])[key] for key in keys))
        for row in trace.findings.to_dict("records")
    ]


def job(*calls, ranks=4, **others):
    """Returns dumps in which all ranks make these calls, but rank N those of rN."""
    return {rank: dump(others.get(f"r{rank}", calls)) for rank in range(ranks)}


def test_ranks_that_agree_have_no_finding(tmp_path):
    trace, rows = found(tmp_path, job(A, B, C))
    assert rows == []
    assert trace.brief().startswith(
        "Nothing wrong found. 12 calls of 4 ranks in 1 group were compared: what more than one dump holds of a call "
        "agrees, and no rank misses one."
    )


def test_a_missed_call_has_rank_and_both_lines(tmp_path):
    trace, rows = found(tmp_path, job(A, B, C, r2=[A, B]))
    assert rows == [("missing_rank", "error", [2], 3)]
    assert trace.findings["message"].tolist() == [
        "rank 2 has not made call 3 of group 0 (default_pg), all_reduce of float32 [8], which ranks 0, 1 and 3 made at "
        "/data/me/train.py:12; the last there is call 2, broadcast of float32 [4] at /data/me/train.py:11"
    ]


def test_a_call_left_out_before_equal_ones_is_told_by_the_lines(tmp_path):
    lines = [call(line=line) for line in (20, 21, 22, 23)]
    trace, rows = found(tmp_path, job(*lines, r1=[lines[0], *lines[2:]]))
    assert rows == [("missing_rank", "error", [1], 2)]
    assert trace.findings["source"].tolist() == ["/data/me/train.py:21"]


def test_another_collective_size_and_dtype_are_told_apart(tmp_path):
    _, rows = found(tmp_path / "op", job(A, B, r3=[A, C]))
    assert rows == [("other_collective", "error", [3], 2)]
    _, rows = found(tmp_path / "size", job(A, C, r3=[A, call(shape=(9,), line=12)]))
    assert rows == [("other_size", "error", [3], 2)]
    _, rows = found(tmp_path / "dtype", job(A, C, r3=[A, call(shape=(8,), line=12, dtype="Double")]))
    assert rows == [("other_dtype", "error", [3], 2)]


def test_sizes_that_may_differ_are_no_finding(tmp_path):
    uneven = [
        [
            call("all_to_all", (rank + 1,)),
            call(shape=(2, 2) if rank else (4,)),
            call("scatter", (3 * (rank == 0),), out=[[3]]),
        ]
        for rank in range(4)
    ]
    assert found(tmp_path, {rank: dump(calls) for rank, calls in enumerate(uneven)})[1] == []


def test_two_ranks_alone_blame_nobody(tmp_path):
    trace, rows = found(tmp_path, job(A, B, ranks=2, r1=[A, C]))
    assert rows == [("other_collective", "error", [], 2)]
    assert trace.findings["message"][0].endswith("train.py:12: no rank can be told to be the one that is wrong")


def test_calls_without_a_stack_beside_others_blame_nobody(tmp_path):
    # As in pytorch's issue 140563: most ranks show a call of 1,025 elements without a stack, where two have their own.
    odd = call(shape=(1025,), line=None)
    _, rows = found(tmp_path, job(A, odd, C, ranks=8, r3=[A, C, odd], r5=[A, C, odd]))
    assert rows == [("other_size", "error", [], 2)]


def test_rings_that_have_wrapped_are_compared_by_number(tmp_path):
    calls = [A, B, C] * 5
    dumps = {0: dump(calls, 3), 1: dump(calls, 8), 2: dump(calls[:-1], 5), 3: dump(calls, 14)}
    assert found(tmp_path, dumps)[1] == [("missing_rank", "error", [2], 15)]


def test_a_call_that_all_rings_have_dropped_stands_for_the_first_that_is_left(tmp_path):
    calls = [A, B, C] * 5
    assert found(
        tmp_path, job(*calls) | {0: dump(calls, 9), 1: dump(calls[:4]), 2: dump(calls, 10), 3: dump(calls, 9)}
    )[1] == [("missing_rank", "error", [1], 10)]


def test_a_rank_whose_ring_has_dropped_its_calls_of_a_group_is_not_blamed(tmp_path):
    groups = {"1": {"name": "1", "desc": "own", "ranks": "[0, 1, 2]"}}
    dumps = {rank: dump([OWN, OWN, A, A], groups=groups) for rank in (0, 1)}
    assert found(tmp_path / "lost", {**dumps, 2: dump([OWN, OWN, A, A], 2, groups)})[1] == []
    none = [("missing_rank", "error", [2], 1)]
    assert found(tmp_path / "none", {**dumps, 2: dump([A, A], 0, groups)})[1] == none


def test_a_group_of_unknown_members_blames_no_rank_without_a_call_there(tmp_path):
    assert found(tmp_path, job(OWN, A, r2=[A], r3=[A]))[1] == []


def test_an_older_dump_is_not_blamed(tmp_path):
    dumps = job(A, B, C, r1=[A])
    trace, rows = found(tmp_path, dumps, at_s=0.0005)
    assert rows == []
    assert "was made after the dump of rank 1" in trace.meta["notes"][0]


def test_a_rank_that_is_behind_for_a_moment_is_a_hint(tmp_path):
    assert found(tmp_path, job(A, B, r1=[A]), at_s=0.5)[1] == [("missing_rank", "hint", [1], 2)]


def test_the_wrong_group_is_one_finding_that_names_both(tmp_path):
    trace, rows = found(tmp_path, job(OWN, A, B, r3=[OWN, call(line=10, group=("1", "own"))]))
    assert rows == [("missing_rank", "error", [3], 1)]
    assert (
        "; such a call was made instead as call 2 of group 1 (own), all_reduce of float32 [4]"
        in trace.findings["message"][0]
    )


def test_a_rank_that_waits_for_another_one_is_a_consequence(tmp_path):
    other = call(line=14, group=("2", "pair"))
    dumps = job(OWN, other, A, OWN, r2=[OWN, other, A, other], r3=[OWN, other, A])
    _, rows = found(tmp_path, dumps)
    assert ("missing_rank", "hint", [2, 3], 2) not in rows
    assert [row for row in rows if row[1] == "error"] == [
        ("missing_rank", "error", [2, 3], 2),
        ("missing_rank", "error", [0, 1, 3], 2),
    ]


def test_a_rank_without_a_dump_is_named_and_not_said_to_have_missed_a_call(tmp_path):
    dumps = job(A, B)
    del dumps[1]
    trace, rows = found(tmp_path, dumps)
    assert rows == [("stalled", "warning", [1], 2)]
    assert trace.findings["message"][0].endswith("there is no dump of rank 1, so that nothing is known of it")


def test_a_call_that_nobody_ends_is_stalled(tmp_path):
    last = call("all_gather", line=30, retired=False, state="started")
    trace, rows = found(tmp_path, job(A, last, r1=[A, {**last, "state": "scheduled"}]))
    assert rows == [("stalled", "warning", [1], 2)]
    assert (
        "not ended by ranks 0 to 3 (4 of 4) after 100 s; rank 1 has not begun it on the device"
        in trace.findings["message"][0]
    )


def test_a_call_that_one_rank_has_ended_is_not_stalled(tmp_path):
    # gloo marks a call as ended a moment after it returns, and a dump may be made in between.
    assert found(tmp_path, job(A, r1=[{**A, "retired": False}]))[1] == []


def test_coalesced_calls_are_compared_as_one(tmp_path):
    parts = [call("all_gather_into_tensor_coalesced"), call("all_gather_into_tensor_coalesced", (6,), in_last=True)]
    assert found(tmp_path / "same", job(A, *parts))[1] == []
    _, rows = found(tmp_path / "other", job(A, *parts, r1=[A, parts[0], {**parts[1], "output_sizes": [[7]]}]))
    assert rows == [("other_size", "error", [1], 2)]


def test_groups_without_a_name_are_compared_only_where_they_are_of_all(tmp_path):
    world, later = call(group=("", "")), call("broadcast", group=("", ""), pg_id=4)
    dumps = job(world, later, r1=[world, {**later, "profiling_name": "gloo:gather"}])
    assert found(tmp_path, dumps)[1] == []
