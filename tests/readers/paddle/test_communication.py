"""Tests collectives, meshes and the sharding of the optimizer."""

from tests.readers.paddle.texts import MODERN, PIR, WHILE

BROADCAST = "    {{Out=['{0}']}} = c_broadcast(inputs={{X=['{0}']}}, op_role = 2, ring_id = 3, root = {1})\n"


def test_rings_peers_and_roots(read):
    lines = (
        "    {Out=['g']} = recv_v2(inputs={}, peer = 0, ring_id = 32)\n"
        "    {Out=['g']} = c_reduce_sum(inputs={X=['g']}, ring_id = 28, root_id = 1)\n"
        "    send_v2(inputs={X=['g']}, peer = 1, ring_id = 30)\n"
    )
    rows = read(MODERN[:-2] + lines + "}\n").meta["paddle"]["communication"]
    assert [(row["operation"], row["ring"], row["peer"], row["root"], row["tensors"]) for row in rows] == [
        ("recv_v2", 32, 0, None, ["g"]),
        ("c_reduce_sum", 28, None, 1, ["g"]),
        ("send_v2", 30, 1, None, ["g"]),
    ]


def test_collectives_of_pir(read):
    trace = read(PIR)
    (row,) = trace.meta["paddle"]["communication"]
    assert (row["operation"], row["ring"], row["tensors"]) == ("pd_op.all_reduce_", 36, ["%12"])
    assert trace.nodes["op"][row["node_id"]] == "pd_op.all_reduce_"
    mesh = {"shape": [2], "process_ids": [0, 1], "dim_names": ["x"], "operations": 1}
    assert trace.meta["paddle"]["parallelism"] == {"dimensions": {"x": 2}, "ranks": [0, 1], "meshes": [mesh]}


def test_meshes_of_variables_count_no_operations(read):
    found = read(WHILE).meta["paddle"]["parallelism"]
    mesh = {"shape": [2], "process_ids": [0, 1], "dim_names": ["x"], "operations": 0}
    assert found == {"dimensions": {"x": 2}, "ranks": [0, 1], "meshes": [mesh]}


def test_parameters_that_are_only_received(read):
    trace = read(MODERN[:-2] + BROADCAST.format("w", 0) + BROADCAST.format("v", 1) + "}\n")
    assert trace.meta["paddle"]["sharding"] == {"owned": ["w"], "received": {"v": 1}, "root": 0}


def test_one_process_says_nothing_of_others(read):
    found = read(MODERN).meta["paddle"]
    assert (found["communication"], found["parallelism"], found["sharding"]) == ([], {}, {})
