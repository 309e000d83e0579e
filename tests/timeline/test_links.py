"""What each event belongs to: parent, forward op, module call and phase, of a whole training step."""

import numpy as np

from nbkit.timeline.links import PHASES, launches, link, node_sequences
from nbkit.timeline.names import ACCUMULATION, BACKWARD_NODE
from tests.timeline.makers import KERNEL, MODULE, RUNTIME, events

NODE = f"{BACKWARD_NODE}MmBackward0"
STEP = (
    {"name": "Net", "start": 0, "end": 100, "kind": MODULE, "module": ""},
    {"name": "aten::linear", "start": 10, "end": 60, "sequence": 3},
    {"name": "aten::mm", "start": 20, "end": 40, "sequence": 3, "own_id": 7},
    {"name": "cudaLaunchKernel", "start": 25, "end": 30, "kind": RUNTIME, "correlation": 9},
    {"name": "aten::sum", "start": 110, "end": 120, "sequence": 4},
    {"name": "aten::zeros", "start": 130, "end": 140, "sequence": 5},
    {"name": "torch.Tensor.backward", "start": 200, "end": 300},
    {"name": f"{BACKWARD_NODE}SumBackward0", "start": 201, "end": 209, "thread": 2, "sequence": 4, "forward_thread": 1},
    {"name": NODE, "start": 210, "end": 250, "thread": 2, "sequence": 3, "forward_thread": 1},
    {"name": "aten::mm", "start": 220, "end": 240, "thread": 2},
    {"name": ACCUMULATION, "start": 260, "end": 270, "thread": 2, "sequence": -1},
    {"name": "Optimizer.step#SGD.step", "start": 400, "end": 500},
    {"name": "aten::add_", "start": 410, "end": 420},
    {"name": "gemm", "start": 45, "end": 90, "kind": KERNEL, "thread": 9, "correlation": 9},
    {"name": "copy", "start": 45, "end": 90, "kind": KERNEL, "thread": 9, "external_id": 7},
    {"name": "lost", "start": 45, "end": 90, "kind": KERNEL, "thread": 9, "external_id": 8, "correlation": 8},
)


def test_links_of_a_training_step() -> None:
    links = link(events(*STEP))
    assert links.parent.tolist() == [-1, 0, 1, 2, -1, -1, -1, -1, -1, 8, -1, -1, 11, 3, 2, -1]
    assert links.forward.tolist() == [-1, -1, -1, -1, -1, -1, -1, 4, 2, 2, -1, -1, -1, -1, -1, -1]
    assert links.owner.tolist() == [0, 0, 0, 0, -1, -1, -1, -1, 0, 0, 0, -1, -1, 0, 0, -1]
    phases = [PHASES[number] for number in links.phase]
    assert phases[:4] == ["forward"] * 4
    assert phases[4:6] == ["forward", "other"]
    assert phases[6:11] == ["backward"] * 5
    assert phases[11:] == ["optimizer", "optimizer", "forward", "forward", "other"]


def test_work_is_launched_by_the_call_of_its_correlation_else_by_its_op() -> None:
    table = events(*STEP)
    assert launches(table, np.array([13, 14, 15])).tolist() == [3, 2, -1]


def test_a_node_without_a_number_has_that_of_its_call() -> None:
    table = events(
        {"name": NODE, "start": 0, "end": 50, "sequence": -1, "forward_thread": 0},
        {"name": "hook", "start": 1, "end": 5, "sequence": 8, "forward_thread": 3},
        {"name": "MmBackward0", "start": 10, "end": 40, "sequence": 6, "forward_thread": 2},
    )
    parent = np.array([-1, 0, 0])
    sequence, thread = node_sequences(table, parent, np.array([True, False, False]))
    assert (sequence.tolist(), thread.tolist()) == ([6, 8, 6], [2, 3, 2])


def test_a_closure_in_a_step_does_forward_work() -> None:
    links = link(
        events(
            {"name": "Optimizer.step#LBFGS.step", "start": 0, "end": 100},
            {"name": "aten::mul", "start": 10, "end": 20, "sequence": 1},
            {"name": f"{BACKWARD_NODE}MulBackward0", "start": 30, "end": 40, "sequence": 1, "forward_thread": 1},
            {"name": "aten::add_", "start": 50, "end": 60, "sequence": 2},
        )
    )
    assert [PHASES[number] for number in links.phase] == ["optimizer", "forward", "backward", "optimizer"]


def test_an_op_outside_of_modules_does_forward_work_if_one_in_it_does() -> None:
    links = link(
        events(
            {"name": "aten::linear", "start": 0, "end": 50, "sequence": 1},
            {"name": "aten::t", "start": 5, "end": 10, "sequence": 1},
            {"name": "aten::mm", "start": 20, "end": 40, "sequence": 1},
            {"name": NODE, "start": 60, "end": 70, "sequence": 1, "forward_thread": 1},
            {"name": "aten::zeros", "start": 80, "end": 90, "sequence": 2},
        )
    )
    assert [PHASES[number] for number in links.phase] == ["forward"] * 3 + ["backward", "other"]
