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


def test_ring_and_peer_are_columns_and_a_root_is_a_peer(read):
    lines = (
        "    {Out=['g']} = recv_v2(inputs={}, peer = 0, ring_id = 32)\n"
        "    {Out=['g']} = c_reduce_sum(inputs={X=['g']}, ring_id = 28, root_id = 1)\n"
        "    {Out=['g']} = c_allreduce_sum(inputs={X=['g']}, ring_id = 0)\n"
        "    {Out=['g']} = scale(inputs={X=['g']}, peer = 7, ring_id = 9)\n"
        "    send_v2(inputs={X=['g']}, peer = -1, ring_id = 99999999999999999999)\n"
    )
    nodes = read(MODERN[:-2] + lines + "}\n").nodes.tail(5)
    assert nodes[["ring", "peer"]].astype(object).where(nodes[["ring", "peer"]].notna(), None).values.tolist() == [
        [32, 0],
        [28, 1],
        [0, None],
        [None, None],
        [None, None],
    ]


def test_the_mesh_is_a_column_of_ops_and_variables(read):
    assert read(WHILE).nodes.set_index("name")["mesh"].dropna().to_dict() == {"fc.w_0": "x 2: ranks 0, 1"}
    assert read(PIR).nodes["mesh"].dropna().tolist() == ["x 2: ranks 0, 1"]


def test_an_optimizers_node_has_the_name_of_its_parameter(read):
    update = (
        "    {MomentOut=['w_moment'], ParamOut=['w']} = adamw(inputs={Param=['w'], Moment=['w_moment']}, op_role = 2)\n"
    )
    nodes = read(MODERN[:-2] + update + "}\n").nodes
    assert nodes.loc[nodes["op"] == "adamw", "name"].tolist() == ["w"]
