"""Time of the step that no op takes."""

from nbkit.findings.time.rules import time_findings
from tests.findings.time.steps import found, frames

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
LOADING = {"level": "range", "op": LOADER, "phase": "other", "total_time_us": 2_000.0}
OP = {"total_time_us": 100.0}


def test_loading_of_data_is_told_with_its_share() -> None:
    assert found(LOADING, OP, LOADING) == [
        ("data_loading", f"40 % of the step (4.00 ms) passes in loading data, 2 calls of {LOADER}")
    ]


def test_a_loader_that_is_fast_is_right() -> None:
    assert found(LOADING, OP, whole_us=11_000.0) == []
    assert found({**LOADING, "total_time_us": 500.0}, OP, whole_us=1_000.0) == []


def test_a_block_of_the_user_is_no_loader() -> None:
    assert found({**LOADING, "op": "load"}, OP) == []


def test_code_before_the_ops_of_a_line_is_told() -> None:
    assert found(*[{**OP, "gap_us": 900.0}] * 5) == [
        ("python_code", "45 % of the step (4.50 ms) passes outside of ops, just before this line runs one, 5 times")
    ]


def test_pauses_that_do_not_come_again_and_those_of_optimizers_are_none() -> None:
    late = {**OP, "gap_us": 900.0}
    assert found(*[late] * 3) == []
    assert found(*[{**late, "phase": "optimizer"}] * 5) == []
    assert found(*[{**late, "phase": "backward"}, late] * 5) == []
    assert found(*[{**OP, "gap_us": 250.0}] * 20) == []  # of the machine, or of the dispatcher


def test_while_other_threads_work_the_main_one_may_wait() -> None:
    assert found(*[{**OP, "gap_us": 900.0}] * 5, {**OP, "thread": 1}) == []


def test_a_wait_for_a_device_is_no_python() -> None:
    wait = {"level": "runtime", "op": "cudaDeviceSynchronize", "total_time_us": 900.0}
    assert found(*[wait, OP] * 5) == []


LONG = {**OP, "gap_us": 50_000.0}
SLEEPS = {"level": "module", "op": "S", "module": "1", "model": "Net", "total_time_us": 50_000.0}


def test_a_step_of_which_most_passes_without_an_op_is_told_by_the_module_or_the_next_op() -> None:
    assert found(OP, SLEEPS, OP, whole_us=51_500.0) == [
        ("no_op_ran", "50.0 ms of 51.5 ms of the step no op ran: S.forward()")
    ]
    ((rule, message),) = found(OP, LONG, whole_us=51_500.0)
    assert (rule, message.partition(": ")[2]) == (
        "no_op_ran",
        "outside of modules, before aten.add.Tensor at train.py:7",
    )
    last = time_findings(frames(OP, whole_us=50_100.0))
    assert "Of a single run it may be a pause of a machine with other work: repeats=5 tells." in last["advice"].iloc[0]
    assert last["message"].tolist() == ["50.0 ms of 50.1 ms of the step no op ran: after the last op"]
    assert found(OP, LONG, whole_us=51_500.0, is_slowed=True)[0][1].startswith("97 % of the step no op ran: ")


def test_what_runs_meanwhile_and_short_pauses_are_no_silence() -> None:
    meanwhile = {**OP, "thread": 1, "start_us": 100.0, "total_time_us": 50_000.0, "parent_id": None}
    assert found(OP, LONG, meanwhile, whole_us=51_500.0) == []
    assert found(OP, {**LONG, "gap_us": 19_000.0}, whole_us=20_000.0) == []  # the machine may pause
    assert found(OP, LONG, {**OP, "total_time_us": 55_000.0}, whole_us=110_000.0) == []  # less than half
    waits = {"level": "api", "op": "torch.distributed.all_reduce", "total_time_us": 50_000.0}
    assert found(OP, waits, OP, whole_us=51_500.0) == []
