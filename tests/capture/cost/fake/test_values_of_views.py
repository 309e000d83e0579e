"""Values that a step asks for hold for views of one memory, whichever of them was taken or written first."""

import pytest
import torch

import nbkit

WAYS = pytest.mark.parametrize("way", ["auto", "run"])


def both_ways(step, way):
    """Returns what a step on shapes gives, and what the step gives when it runs."""
    answers = []
    nbkit.opcost(values=way).run(lambda: answers.append(step()))
    return answers[0], step()


@WAYS
def test_two_views_of_one_small_memory_have_their_own_values(way):
    base = torch.tensor([1.0, 2.0, 100.0, 200.0])
    first, second = base[:2], base[2:]
    counted, run = both_ways(lambda: (bool((first * 2).sum() > 0), (second + 0).tolist()), way)
    assert counted == run


CONJUGATE = torch.tensor([1 + 2j, 3 - 1j]).conj()


@WAYS
@pytest.mark.parametrize("step", [lambda: CONJUGATE.imag.tolist(), lambda: (CONJUGATE * 2).conj().tolist()])
def test_conjugates_have_the_values_that_reading_them_gives(step, way):
    counted, run = both_ways(step, way)
    assert counted == run


DATA = torch.tensor([[0.0, 0.0, 7.0], [3.0, 0.0, 0.0]])


def written_entry():
    lengths = torch.tensor([1, 2, 3, 4])
    lengths[0] = (DATA * 100).argmax() + 10
    return int(lengths.max())


def written_behind_a_view():
    lengths = torch.tensor([1, 2, 3, 4])
    view = lengths.view(2, 2)
    lengths.add_((DATA * 100).argmax())
    return view.tolist()


def written_slice():
    lengths = torch.tensor([1, 2, 3])
    lengths[1:] = DATA.argmax(1)
    return lengths.tolist()


@WAYS
@pytest.mark.parametrize("step", [written_entry, written_behind_a_view, written_slice])
def test_a_write_of_unknown_values_reaches_all_views_of_its_memory(step, way):
    counted, run = both_ways(step, way)
    assert counted == run


RAN = []


@torch.library.custom_op("nbkit_test::doubled", mutates_args=())
def doubled(x: torch.Tensor) -> torch.Tensor:
    RAN.append(type(x))
    return x * 2


@doubled.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def test_an_op_of_somebody_else_runs_only_where_that_is_asked_for():
    with pytest.raises(nbkit.CostError, match="ops that are not torch's and may do more; values='run' runs"):
        nbkit.opcost().run(lambda: doubled(DATA).tolist())
    assert RAN == []
    nbkit.opcost(values="run").run(lambda: doubled(DATA).tolist())
    assert [torch.Tensor] == RAN
