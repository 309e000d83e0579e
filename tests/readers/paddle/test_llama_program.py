"""Tests the LLaMA pipeline program of a real training run against the numbers that were counted by other means."""

from collections import Counter

import pytest

from tests.readers.paddle.facts import operations, own_attributes


@pytest.fixture(scope="session")
def ops(program):
    return operations(program)


def test_operations(program, ops):
    assert (len(ops), program.nodes["op"].nunique()) == (558, 60)
    assert set(program.nodes["graph"]) == {"block 0"}
    common = {"scale": 52, "cast": 49, "elementwise_mul": 48, "matmul_v2": 37, "elementwise_add": 23}
    assert dict(Counter(row["op"] for row in ops).most_common(5)) == common
    assert (ops[0]["line"], ops[-1]["line"]) == (685, 1242)
    assert sum(len(own_attributes(row)) for row in ops) == 3974


def test_junk_before_a_record_is_named_and_the_record_kept(program, ops):
    reason = "stands before a record, which was read without it"
    assert program.meta["skipped_lines"] == [{"line": 1218, "text": "1122", "reason": reason}]
    adamw = [row for row in ops if row["op"] == "adamw"]
    assert Counter(row["attributes"]["with_decay"] for row in adamw) == {True: 7, False: 2}
    assert adamw[4]["line"] == 1218


def test_roles_and_phases(ops):
    assert Counter(row["attributes"]["op_role"] for row in ops) == {0: 179, 1: 305, 2: 72, 256: 1, 257: 1}
    assert Counter(row["phase"] for row in ops) == {"forward": 180, "backward": 180, "recompute": 126, "optimizer": 72}
    role_1 = [row for row in ops if row["attributes"]["op_role"] == 1]
    kinds = Counter("grad" if row["op"].endswith("_grad") else row["phase"] for row in role_1)
    assert kinds == {"grad": 102, "recompute": 126, "backward": 77}
    segments = Counter(row["name"].rpartition(".")[2] for row in role_1 if row["phase"] == "recompute")
    assert segments == {"subprog_0": 63, "subprog_1": 63}


def test_decoder_layers_are_told_by_their_namescope(ops):
    scopes = Counter(row["attributes"].get("op_namescope") for row in ops if row["phase"] == "forward")
    assert (scopes["//auto_parallel/rc_2/"], scopes["//auto_parallel/rc_3/"]) == (64, 64)


def test_what_was_inserted(ops):
    found = Counter(row["inserted"] for row in ops if isinstance(row["inserted"], str))
    assert found == {"autograd": 139, "recompute": 126, "communication": 66, "optimizer": 48, "amp": 4}
    assert {row["phase"] for row in ops if not isinstance(row["inserted"], str)} == {"forward"}


def test_tensors(program):
    frame = program.graph_tensors
    assert len(frame) == 682
    dtypes = {"float16": 566, "float32": 56, "int64": 27, "bool": 18, "float64": 12, "int32": 3}
    assert frame["dtype"].value_counts().to_dict() == dtypes
    assert frame["kind"].value_counts().to_dict() == {"temporary": 608, "buffer": 53, "parameter": 20, "input": 1}
    assert frame["attributes"].str.contains('"persistable": true').sum() == 73
    assert frame["attributes"].str.contains('"stop_gradient": true').sum() == 120
    assert (frame["shape"] == "[]").sum() == 12
    assert frame.loc[frame["numel"].isna(), "size_bytes"].isna().tolist() == [True] * 4


def test_bytes(program):
    frame = program.graph_tensors
    parameters, state = (frame[frame["kind"] == kind] for kind in ("parameter", "buffer"))
    assert (parameters["numel"].sum(), parameters["size_bytes"].sum()) == (535_842_816, 1_071_685_632)
    assert parameters["size_bytes"].sum() + state["size_bytes"].sum() == 4_873_920_600
    for suffix in ("fp32_master_0", "_moment1_0", "_moment2_0"):
        assert state.loc[state["tensor"].str.endswith(suffix), "numel"].sum() == 316_678_144


def test_edges_lead_to_the_last_writer(program, ops):
    edges = program.edges
    between = edges[edges["src"].isin([row["node_id"] for row in ops])]
    assert (len(edges), len(between), len(between[["src", "dst"]].drop_duplicates())) == (963, 816, 808)
    outside = edges[~edges["src"].isin(between["src"])]
    assert (len(outside), outside["tensor"].nunique()) == (147, 74)
    kinds = outside["src"].map(program.nodes.set_index("node_id")["kind"])
    assert set(outside.loc[kinds == "input", "tensor"]) == {"labels"}
    assert (between["src"] < between["dst"]).all()


def test_a_chain_in_place_is_followed(program, ops):
    """matmul_v2_grad, c_reduce_sum, scale, check_finite_and_unscale: each writes the gradient that it reads."""
    edges = program.edges[program.edges["tensor"] == "linear_15.w_0@GRAD"]
    name = program.nodes.set_index("node_id")["op"]
    chain = [(name[row.src], name[row.dst]) for row in edges.head(3).itertuples()]
    assert chain == [
        ("matmul_v2_grad", "c_reduce_sum"),
        ("c_reduce_sum", "scale"),
        ("scale", "check_finite_and_unscale"),
    ]


def test_writes_and_slots(program, ops):
    frame = program.graph_tensors
    assert (frame["writes"].sum(), (frame["writes"] > 1).sum(), frame["writes"].max()) == (735, 32, 6)
    slots = [(row["attributes"]["inputs"], row["attributes"]["outputs"]) for row in ops]
    names = [({n for names in side.values() for n in names} for side in both) for both in slots]
    assert sum(bool(read & written) for read, written in names) == 82
    empty = [sum(not names for both in slots for names in both[side].values()) for side in (0, 1)]
    assert empty == [324, 11]


def test_tensors_that_nothing_reads(program, ops):
    frame = program.graph_tensors
    slots = {n: slot for row in ops for slot, names in row["attributes"]["outputs"].items() for n in names}
    unread = frame[(frame["reads"] == 0) & (frame["writes"] > 0)]
    assert Counter(slots[name] for name in unread["tensor"]) == {"XShape": 49, "Out": 5}
    assert ((frame["reads"] == 0) & (frame["writes"] == 0)).sum() == 20
    metadata = frame[frame["numel"] == 0]
    assert Counter(slots[name] for name in metadata["tensor"]) == {"XShape": 67}
    assert metadata["size_bytes"].sum() == 0
    assert "scaled_loss_0" in set(unread["tensor"])


def test_communication(program):
    rows = program.meta["paddle"]["communication"]
    assert Counter(row["operation"] for row in rows) == {
        "recv_v2": 1,
        "send_v2": 1,
        "c_reduce_sum": 20,
        "c_broadcast": 20,
        "c_allreduce_max": 1,
        "c_allreduce_sum": 1,
    }
    assert {row["ring"] for row in rows} == {0, 28, 29, 30, 32}
    for operation in ("c_reduce_sum", "c_broadcast"):
        assert Counter(row["root"] for row in rows if row["operation"] == operation) == {0: 9, 1: 11}
    assert [row["peer"] for row in rows if row["peer"] is not None] == [0, 1]
    assert program.nodes["op"][rows[0]["node_id"]] == "recv_v2"


def test_parallelism(program, ops):
    found = program.meta["paddle"]["parallelism"]
    assert (found["dimensions"], found["ranks"]) == ({"dp": 2, "pp": 2, "mp": 1}, [0, 1, 2, 3])
    assert [(mesh["process_ids"], mesh["operations"]) for mesh in found["meshes"]] == [([0, 1, 2, 3], 2), ([1, 3], 128)]
    laid_out = [row for row in ops if "dist_attr" in row["attributes"]]
    assert (len(laid_out), {row["phase"] for row in laid_out}) == (130, {"forward"})
    assert {row["attributes"]["dist_attr"]["op type"] for row in laid_out} == {row["op"] for row in laid_out}


def test_optimizer_sharding(program):
    found = program.meta["paddle"]["sharding"]
    assert (len(found["owned"]), len(found["received"]), found["root"]) == (9, 11, 0)
    assert set(found["received"].values()) == {1}
    elements = program.graph_tensors.set_index("tensor")["numel"]
    assert elements[found["owned"]].sum() == 316_678_144


def test_casts_that_change_nothing(ops):
    casts = Counter(
        (row["attributes"]["in_dtype"], row["attributes"]["out_dtype"]) for row in ops if row["op"] == "cast"
    )
    assert sum(casts.values()) == 49
    assert {pair: n for pair, n in casts.items() if pair[0] == pair[1]} == {(4, 4): 30, (0, 0): 1}
    assert (casts[5, 4], casts[4, 5]) == (10, 2)


def test_oddities_of_the_text(program, ops):
    (bare,) = [own_attributes(row) for row in ops if row["line"] == 866]
    assert bare == {"axis": -1, "op_role": 1}
    (send,) = [row for row in ops if row["op"] == "send_v2"]
    assert (send["name"], send["attributes"]["outputs"], send["attributes"]["op_device"]) == ("send_v2", {}, "")
    assert program.complete and program.meta["error"] is None


def counts(trace):
    return {name: len(frame) for name, frame in trace.frames.items()}


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n").encode("utf-16"),
        lambda text: "".join(
            f"[1,{n % 10}]<stderr>: loading\n[1,3]<stdout>:{line}" for n, line in lines(text)
        ).encode(),
        lambda text: "".join(f"2026-11-21 09:{n % 60:02}:07,1 INFO    {line}" for n, line in lines(text)).encode(),
        lambda text: "".join(f"#     {line}" for _, line in lines(text)).encode(),
        lambda text: "".join(f"{line}\x00\x7fELF \ufffd\n" * (n % 50 == 0) or line for n, line in lines(text)).encode(),
    ],
    ids=["UTF-16 with CRLF", "rank tags", "log prefixes", "comment marks", "junk between records"],
)
def test_what_a_log_does_to_it_costs_nothing(read, program, program_path, change):
    trace = read(change(program_path.read_text()))
    assert counts(trace) == counts(program)
    assert trace.nodes["phase"].value_counts().to_dict() == program.nodes["phase"].value_counts().to_dict()
    assert trace.meta["paddle"]["sharding"] == program.meta["paddle"]["sharding"]


def lines(text):
    return list(enumerate(text.splitlines(keepends=True)))
