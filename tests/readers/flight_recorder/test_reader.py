"""Dumps of the flight recorder become rows of collectives; nothing in them runs."""

import os
import pickle
from pathlib import Path

import pytest

import nbkit
from nbkit.errors import TraceError
from tests.readers.flight_recorder.dumps import STARTED_NS, call, dump, write

WORLD = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}


class Runs:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


@pytest.mark.parametrize("form", ["pickle", "json"])
def test_a_call_is_a_row(tmp_path, form):
    one = call("all_gather", (2, 3), 12, dtype="BFloat16", out=[[2, 2, 3]])
    folder = write(tmp_path / "dumps", {rank: dump([call(), one], groups=WORLD) for rank in (0, 1)}, form=form)
    trace = nbkit.load(folder)
    assert trace.collectives["rank"].tolist() == [0, 0, 1, 1]
    row = trace.collectives.iloc[3].dropna().to_dict()
    assert row == {
        "rank": 1, "op": "all_gather", "group": "0 (default_pg)", "group_ranks": "[0, 1]", "seq": 2, "is_p2p": False,
        "input_shapes": "[[2, 3]]", "output_shapes": "[[2, 2, 3]]", "input_dtypes": '["bfloat16"]',
        "output_dtypes": '["bfloat16"]', "size_bytes": 12, "start_us": 1000.0, "state": "scheduled",
        "source": "/data/me/train.py:12",
    }  # fmt: skip
    assert trace.meta["started_ns"] == STARTED_NS
    assert trace.meta["world_size"] == 2
    assert len(trace.findings) == 0


def test_json_without_stacks_is_said_and_matched_all_the_same(tmp_path):
    dumps = {rank: dump([call(line=None)] * (3 - (rank == 1))) for rank in range(3)}
    trace = nbkit.load(write(tmp_path / "dumps", dumps, form="json"))
    assert trace.collectives["source"].isna().all()
    assert trace.meta["notes"][0].startswith("No dump has stacks")
    assert trace.findings["message"].tolist() == [
        "rank 1 has not made call 3 of group 0 (default_pg), all_reduce of float32 [4], which ranks 0 and 2 made; the "
        "last there is call 2, all_reduce of float32 [4]"
    ]


def test_a_single_dump_is_read_and_compared_with_nothing(tmp_path):
    folder = write(tmp_path / "dumps", {7: dump([call()])})
    trace = nbkit.load(folder / "comm_lib_trace_rank_7")
    assert trace.meta["rank"] == 7
    assert "of one rank in 1 group: nothing to compare it with. Give the folder" in trace.brief()


def test_a_folder_with_one_dump_knows_by_an_all_gather_who_else_there_was(tmp_path):
    gathered = call("all_gather", (2, 3), out=[[3, 2, 3]])
    trace = nbkit.load(write(tmp_path / "dumps", {1: dump([call(), gathered])}))
    assert trace.meta["world_size"] == 3
    assert trace.findings["message"].str.endswith(
        "no dump of ranks 0 and 2, so that nothing is known of them"
    ).tolist() == [True]


def test_a_saved_trace_is_the_same(tmp_path):
    folder = write(tmp_path / "dumps", {rank: dump([call()] * (2 + rank)) for rank in range(3)})
    trace = nbkit.load(folder)
    again = nbkit.load(trace.save(tmp_path / "saved"))
    assert again.collectives.equals(trace.collectives)
    assert again.brief() == trace.brief()


def test_a_send_has_its_peer_by_the_members_of_the_group(tmp_path):
    group = {"5": {"name": "5", "desc": "pp", "ranks": "[2, 6]"}}
    one = call("send 0->1", group=("5", "pp"), is_p2p=True, profiling_name="nccl:send 0->1")
    trace = nbkit.load(write(tmp_path / "dumps", {2: dump([one], groups=group)}) / "comm_lib_trace_rank_2")
    assert trace.collectives[["op", "peer", "is_p2p"]].values.tolist() == [["send", 6, True]]


def test_classes_in_a_pickle_are_refused_before_they_run(tmp_path):
    marker = tmp_path / "ran"
    folder = write(tmp_path / "dumps", {0: dump([call()])})
    (folder / "rank_1").write_bytes(pickle.dumps({"version": "2.10", "entries": [Runs(marker)]}, protocol=2))
    with pytest.raises(
        TraceError, match="rank_1 cannot be read: it holds GLOBAL at byte .* could run code; expected a"
    ):
        nbkit.load(folder)
    assert not marker.exists()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda folder: (folder / "rank_0").rename(folder / "rank"), "does not say of which rank it is; let its name"),
        (lambda folder: (folder / "node_0").write_bytes((folder / "rank_0").read_bytes()), "has 2 dumps of rank 0"),
        (lambda folder: (folder / "rank_0").write_bytes((folder / "rank_0").read_bytes()[:200]), "is cut off"),
        (lambda folder: (folder / "rank_0").write_bytes(b'{"entries":[{"a": 1}], "version":'), "cut off or no JSON"),
        (lambda folder: (folder / "rank_0").write_bytes(b'{"entries":[1], "version":"2"}'), "are no calls of coll"),
        (
            lambda folder: (folder / "rank_0").write_bytes(b'{"entries":[{"process_group":3}], "version":"2"}'),
            "has an entry that is not written as torch does",
        ),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(tmp_path, make, said):
    for rank in (0, 1):
        (tmp_path / f"rank_{rank}").write_bytes(pickle.dumps(dump([call()]), protocol=2))
    make(tmp_path)
    with pytest.raises(TraceError, match=said):
        nbkit.load(tmp_path)


def test_a_pickle_is_read_where_json_of_the_rank_is_beside_it(tmp_path):
    dumps = {rank: dump([call()]) for rank in (0, 1)}
    folder = write(write(tmp_path / "dumps", dumps).parent / "dumps", dumps, form="json")
    assert len(list(Path(folder).iterdir())) == 4
    assert nbkit.load(folder).collectives["source"].notna().all()
