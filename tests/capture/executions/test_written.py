"""An op that writes makes a new result, and whoever reads its memory later reads the right values."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from nbkit.capture.executions.torch_execution import torch_execution
from tests.capture.executions.helper import one, output, runs_again, runs_from_inputs, value


def adds_to(x: Tensor) -> Tensor:
    y = x * 2
    view = y[0]
    y += 1
    return view * 3


def slice_assignment(x: Tensor) -> Tensor:
    cache = torch.zeros(4, 3)
    cache[1:3] = x
    cache[0] = x[1]
    return cache.sum(0) + cache[1]


def cache_by_index(x: Tensor) -> Tensor:
    cache = torch.zeros(4, 3)
    before = cache.t()
    cache.index_copy_(0, torch.tensor([2, 0]), x)
    return before @ cache


def into_out(x: Tensor) -> Tensor:
    made = torch.empty(3, 3)
    torch.mm(x.t(), x, out=made)
    torch.add(made, 1.0, out=made)
    return made.relu()


def uninitialized_halves(x: Tensor) -> Tensor:
    memory = torch.empty(4, 3)
    memory[:2].copy_(x)
    memory[2:].copy_(x * 2)
    return memory * 1.5


def foreach(x: Tensor) -> Tensor:
    made = [x * 1, x * 2]
    torch._foreach_mul_(made, 3.0)
    torch._foreach_add_(made, [made[1], x])
    return made[0] - made[1]


def masked(x: Tensor) -> Tensor:
    scores = x @ x.t()
    scores.masked_fill_(torch.ones(2, 2, dtype=torch.bool).triu(1), -1e9)
    return scores.softmax(-1)


def view_of_a_view(x: Tensor) -> Tensor:
    y = x.clone()
    flat, column = y.view(-1), y[:, 1]
    flat[1:5:2].mul_(10)
    return column + y.t()[2] + flat.view(2, 3)[:, 0]


def other_rows(x: Tensor) -> Tensor:
    y = x.clone()
    first, second = y[0], y[1]
    first.zero_()
    return second * 2


def metadata(x: Tensor) -> Tensor:
    y = x.clone()
    y.t_()
    y.add_(1)
    y.unsqueeze_(0)
    return y * 2


def expanded(x: Tensor) -> Tensor:
    y = x[:, :1].clone()
    wide = y.expand(2, 3)
    y.add_(5)
    return wide * x


def transposed_write(x: Tensor) -> Tensor:
    y = x.clone()
    y.t().copy_(torch.arange(6.0).view(3, 2))
    return y.view(6) + 1


def bits(x: Tensor) -> Tensor:
    y = x.clone()
    y.view(torch.int32).bitwise_and_(-8)
    return y + 1


def grown(x: Tensor) -> Tensor:
    y = torch.empty(0)
    torch.cat([x, x], out=y)
    return y.sum(1)


def complex_numbers(x: Tensor) -> Tensor:
    z = torch.view_as_complex(torch.cat((x, x)).view(2, 3, 2).contiguous())
    z.mul_(1j)
    return torch.view_as_real(z.conj() * z.resolve_conj())


STEPS = [
    adds_to, slice_assignment, cache_by_index, into_out, uninitialized_halves, foreach, masked, view_of_a_view,
    other_rows, metadata, expanded, transposed_write, bits, grown, complex_numbers,
]  # fmt: skip


@pytest.mark.parametrize("step", STEPS)
def test_ops_read_what_was_written(step: Callable[[Tensor], Tensor]) -> None:
    x = torch.randn(2, 3)
    execution = torch_execution(step, (x,))
    assert execution.error is None and not execution.notes
    assert torch.equal(output(execution), step(x))
    runs_again(execution)
    runs_from_inputs(execution)


def test_an_op_reads_the_tensor_it_was_given_not_a_later_one_of_the_same_elements() -> None:
    def step(x: Tensor) -> Tensor:
        first = x.exp()
        later = first.detach()
        return (first * 2) + (later * 3)

    execution = torch_execution(step, (torch.ones(2, 3),))
    first, later = one(execution, "exp").result_id, one(execution, "detach").result_id
    assert (one(execution, "mul").sources, one(execution, "mul_1").sources) == ((first,), (later,))


def test_an_op_in_place_makes_a_new_result_and_a_view_of_it_another() -> None:
    execution = torch_execution(adds_to, (torch.ones(2, 3),))
    rows = [(result.name, result.sources, result.op) for result in execution.results]
    assert rows == [
        ("x", (), None),
        ("mul", (0,), "aten.mul.Tensor"),
        ("select", (1,), "aten.select.int"),
        ("add_", (1,), "aten.add_.Tensor"),
        ("written", (2, 3), "view of written memory"),
        ("mul_1", (4,), "aten.mul.Tensor"),
    ]
    assert value(execution, "mul").tolist() == [[2.0] * 3] * 2
    assert value(execution, "written").tolist() == [3.0] * 3


def test_what_other_rows_hold_is_not_made_anew() -> None:
    execution = torch_execution(other_rows, (torch.ones(2, 3),))
    assert "view of written memory" not in [result.op for result in execution.results]
    assert one(execution, "mul").sources == (one(execution, "select_1").result_id,)


def test_uninitialized_memory_has_values_once_all_of_it_was_written() -> None:
    def halves(x: Tensor, count: int) -> Tensor:
        memory = torch.empty(4, 3)
        for half in memory.chunk(2)[:count]:
            half.copy_(x)
        return memory * 0

    x = torch.randn(2, 3)
    assert value(torch_execution(halves, (x, 2)), "written").tolist() == torch.cat((x, x)).tolist()
    assert value(torch_execution(halves, (x, 1)), "written") is None


def test_out_is_not_read() -> None:
    execution = torch_execution(into_out, (torch.ones(2, 3),))
    assert one(execution, "mm").sources == (one(execution, "t").result_id, 0)
    assert one(execution, "add").sources == (one(execution, "mm").result_id,)


def test_memory_of_the_user_is_put_back() -> None:
    cache = torch.zeros(4, 3)
    tail = cache[2:]

    def step(cache: Tensor, x: Tensor) -> Tensor:
        cache[3] = x
        return tail * 2

    execution = torch_execution(step, (cache, torch.ones(3)))
    assert cache.tolist() == torch.zeros(4, 3).tolist()
    assert output(execution).tolist() == [[0.0] * 3, [2.0] * 3]
    assert one(execution, "written").sources == (0, one(execution, "copy_").result_id)
    runs_again(execution)


def test_a_view_reads_what_was_written_through_another_view_of_the_same_elements() -> None:
    class Views(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            base = x * 2
            first, second = base[:2], base[:2]
            kept = first.neg()
            second += 1
            return kept + first.exp()

    x = torch.linspace(-1, 1, 12).reshape(3, 4)
    execution = torch_execution(Views(), (x,))
    assert torch.equal(output(execution), -2 * x[:2] + (2 * x[:2] + 1).exp())
    by_op = {result.op: result for result in execution.results}
    assert by_op["aten.exp.default"].sources == (by_op["aten.add_.Tensor"].result_id,)
    runs_again(execution)
