"""Values that are read one by one."""

from nbkit.findings.time.rules import time_findings
from tests.findings.time.steps import found, frames

READ = {"op": "aten.item.default", "total_time_us": 3.0}
ROOT = {"level": "module", "op": "Net", "model": "Net", "module": "", "total_time_us": 10.0}


def test_many_reads_of_one_line_are_one_finding_with_their_time_and_the_python_between() -> None:
    reads = [{**READ, "gap_us": 1.0} for _ in range(400)]
    table = time_findings(frames(*reads))
    assert table["rule"].tolist() == ["scalar_reads"]
    assert table["severity"].tolist() == ["hint"]
    assert table["message"].tolist() == [
        "400 values are read one by one, which takes 20 % of the step (2.00 ms) with Python around; "
        "on an accelerator each waits for the device"
    ]
    assert table["effect_us"].tolist() == [400 * 3.0 + 399 * 2 * 1.0]
    assert table[["source", "source_text", "count"]].to_numpy().tolist() == [["train.py:7", "y = fc(x)", 400]]


def test_a_few_reads_are_right_also_in_each_of_many_steps() -> None:
    assert found(*[READ] * 31) == []
    assert found(*[ROOT, READ] * 500) == []  # a loss of each batch
    assert found(*[{**READ, "step": number} for number in range(500)]) == []


def test_reads_of_an_optimizer_are_its_own() -> None:
    assert found(*[{**READ, "phase": "optimizer"}] * 500) == []


def test_reads_that_take_little_of_the_step_are_none() -> None:
    assert found(*[READ] * 500, whole_us=1e6) == []


def test_on_a_device_each_read_waits() -> None:
    kernel = {"level": "kernel", "op": "copy", "device": "cuda:0"}
    ((_, message),) = found(kernel, *[READ] * 40, whole_us=1e6)
    assert message.endswith("; each waits for the device")
