"""All rules of time over one step: their order, whole rows, and the limits of what is told."""

from typing import Any

from nbkit.findings.time.rules import time_findings
from tests.findings.time.steps import found, frames

LOADER = "enumerate(DataLoader)#Iter.__next__"
LOADING = {"level": "range", "op": LOADER, "phase": "other", "total_time_us": 4_000.0}
READ = {"op": "aten.item.default", "total_time_us": 20.0}
ROOT = {"level": "module", "op": "Net", "model": "Net", "module": "", "total_time_us": 8_000.0}
COLUMNS = ["rule", "severity", "op_id", "op", "module", "phase", "source", "source_text", "count", "effect_us"]


def rows(*given: dict[str, Any], whole_us: float = 10_000.0) -> list[list[Any]]:
    """The findings of a step: rule, severity, place, how many ops, and their time; not what passes after its rows."""
    table = time_findings(frames(*given, whole_us=whole_us))
    table = table[~table["message"].str.endswith("no op ran: after the last op")]
    return table[COLUMNS].astype(object).where(table[COLUMNS].notna(), None).to_numpy().tolist()


def test_findings_stand_in_the_order_of_their_ops() -> None:
    place = ["train.py:7", "y = fc(x)"]
    assert rows(*[READ] * 256, LOADING) == [
        ["scalar_reads", "hint", 1, "aten.item.default", None, "forward", *place, 256, 256 * 20.0],
        ["data_loading", "hint", 257, LOADER, None, "other", *place, 1, 4_000.0],
    ]


def test_a_step_of_one_row_has_none() -> None:
    assert rows() == []


def test_one_load_is_one_call() -> None:
    assert found(LOADING) == [
        ("data_loading", f"40 % of the step (4.00 ms) passes in loading data, 1 call of {LOADER}")
    ]


def test_an_op_that_is_called_as_a_loader_is_none() -> None:
    assert found({**LOADING, "level": "aten"}, {}) == []


def test_a_pause_while_torch_compiles_is_no_python() -> None:
    late = {"total_time_us": 100.0, "gap_us": 900.0}
    compiling = {"level": "range", "op": "Torch-Compiled Region: 0/0", "phase": "other", "total_time_us": 9_000.0}
    assert found(*[late] * 5)[0][0] == "python_code"
    assert found(compiling, *[{**late, "parent_id": 1}] * 5) == []


def test_pauses_of_a_line_that_is_not_known_are_not_told() -> None:
    late = {"total_time_us": 100.0, "gap_us": 900.0}
    assert found(*[{**late, "source": None}] * 5) == []
    assert found(*[late] * 4)[0][0] == "python_code"


def test_a_loop_stands_at_the_line_of_its_first_op_and_counts_its_backward_pass() -> None:
    cells = []
    for _ in range(64):
        row = len(cells) + 2
        cells.append({"level": "module", "op": "Cell", "model": "Net", "module": "cell", "total_time_us": 50.0})
        cells[-1] |= {"parent_id": 1, "source": None}
        cells.append({"op": "aten.mm.default", "parent_id": row, "source": "train.py:7", "total_time_us": 20.0})
    backward = {"op": "aten.mm.default", "phase": "backward", "forward_op_id": 3, "total_time_us": 800.0}
    assert rows(ROOT, *cells, backward) == [
        ["python_loop", "hint", 2, "Cell", "cell", "forward", "train.py:7", "y = fc(x)", 64, 64 * 50.0 + 800.0]
    ]
    assert found(ROOT, *cells, backward)[0][1] == (
        "module cell is called 64 times in one forward pass, "
        "and takes 40 % of the step (4.00 ms), with its backward pass"
    )


def test_the_loop_outside_is_told_and_not_the_one_within_it() -> None:
    outer = {"level": "module", "op": "Cell", "model": "Net", "module": "cell", "total_time_us": 40.0, "parent_id": 1}
    inner = {**outer, "op": "Gate", "module": "cell.gate", "total_time_us": 0.5}
    given = [ROOT]
    for _ in range(64):
        given += [outer, *[{**inner, "parent_id": len(given) + 1}] * 64]
    assert [row[4] for row in rows(*given)] == ["cell"]


def test_copies_of_a_line_count_with_their_backward_pass() -> None:
    given = []
    for _ in range(4):
        given.append({"op": "aten.to.dtype", "total_time_us": 300.0})
        given.append({"op": "aten.copy_.default", "total_time_us": 290.0, "parent_id": len(given)})
    back = {"op": "aten.to.dtype", "phase": "backward", "forward_op_id": 1, "total_time_us": 800.0}
    given.append(back)
    place = ["forward", "train.py:7", "y = fc(x)"]
    assert rows(*given) == [["casts", "hint", 1, "aten.to.dtype", None, *place, 4, 2_000.0]]
    assert found(*given)[0][1] == "4 casts to another dtype take 20 % of the step (2.00 ms), with their backward pass"
    assert found(*given, whole_us=41_000.0) == []  # less than 5 %


def test_advice_names_what_the_optimizer_can_do() -> None:
    for name, how in [("AdamW", "fused=True): one call"), ("RMSprop", "foreach=True): one call of each kind")]:
        call = {"level": "api", "op": f"torch.optim.{name}.step", "phase": "optimizer", "total_time_us": 2_000.0}
        table = time_findings(frames(call, *[{"phase": "optimizer", "parent_id": 1}] * 200))
        assert table["advice"].tolist() == [f"Use {name}(..., {how} updates many parameters."]


def test_reads_on_a_cpu_are_told_where_they_take_time_or_are_very_many() -> None:
    assert [row[8:] for row in rows(*[READ] * 50)] == [[50, 1_000.0]]
    few = [{**READ, "total_time_us": 5.0}]
    assert rows(*few * 199) == []  # not 1 ms
    assert rows(*few * 200, whole_us=21_000.0) == []  # not 5 %
    assert [row[8:] for row in rows(*[{**READ, "total_time_us": 1.0}] * 256, whole_us=5_100.0)] == [[256, 256.0]]


def test_python_counts_only_between_reads_of_the_same_line_that_follow_each_other() -> None:
    reads = [{**READ, "gap_us": 10.0}] * 32 + [{**READ, "source": "train.py:9", "gap_us": 10.0}] * 32
    kernel = {"level": "kernel", "op": "copy", "device": "cuda:0"}
    effects = {row[6]: row[9] for row in rows(kernel, *reads, whole_us=1e6)}
    assert effects == {"train.py:7": 32 * 20.0 + 31 * 2 * 10.0, "train.py:9": 32 * 20.0 + 31 * 2 * 10.0}
    pauses = [{**READ, "gap_us": 51.0}] * 32
    assert [row[9] for row in rows(kernel, *pauses, whole_us=1e6)] == [32 * 20.0]
