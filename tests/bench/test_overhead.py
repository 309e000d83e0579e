"""The maths of the benchmark's tables, on literal numbers, and the floor that is shown beside them."""

import pytest
import torch
from torch._C import _len_torch_dispatch_stack, _len_torch_function_stack

from bench.harness.measure import Measurements, Reading, Sample
from bench.harness.peers import EMPTY_MODES, all_peers
from bench.harness.ratios import Figure, compare, figures_table, markdown, number, ratio, verdict
from bench.overhead import STEP, TOTAL


def sample(enter: float, step: float, finish: float) -> Sample:
    """Wall times as given, CPU times half of them."""
    return Sample(*(Reading(wall, wall / 2) for wall in (enter, step, finish)))


def test_ratio_is_the_median_of_the_ratios_of_each_round():
    assert ratio([2.0, 30.0, 4.0], [1.0, 10.0, 1.0]) == 3.0


def test_ratio_refuses_rounds_without_a_partner():
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        ratio([1.0, 2.0], [1.0])


def test_total_is_from_entering_to_the_result():
    assert sample(1.0, 20.0, 4.0).total == Reading(25.0, 12.5)


def test_compare_takes_each_part_on_each_clock():
    measured = Measurements({"bare": [sample(0, 10, 0)] * 3, "optrace": [sample(1, 20, 9)] * 3})
    assert compare(measured, "optrace", "bare", (STEP, STEP)) == Reading(2.0, 2.0)
    assert compare(measured, "optrace", "bare", (TOTAL, STEP)) == Reading(3.0, 3.0)


def test_compare_with_a_failed_peer_is_nothing():
    measured = Measurements({"bare": [sample(0, 10, 0)]}, {"torchlens": "ImportError: no"})
    assert compare(measured, "torchlens", "bare", (STEP, STEP)) is None


@pytest.mark.parametrize(
    ("value", "budget", "said"),
    [(2.5, 2.5, "met"), (0.15, 0.12, "missed by 25%"), (12.0, 10.0, "missed by 20%"), (9.0, None, "no budget")],
)
def test_verdict_says_by_how_much(value, budget, said):
    assert verdict(value, budget) == said


@pytest.mark.parametrize(("value", "text"), [(1234.5, "1,234"), (12.345, "12.3"), (1.5, "1.50"), (0.1234, "0.123")])
def test_numbers_have_three_digits(value, text):
    assert number(value) == text


def test_figures_table_judges_the_wall_clock():
    table = figures_table([Figure("the step / bare", 3.0, 2.0, "x", 2.5)]).splitlines()[-1]
    assert [cell.strip() for cell in table.strip("|").split("|")] == [
        "the step / bare", "<= 2.5 x", "3.00 x", "2.00 x", "missed by 20%",
    ]  # fmt: skip


def test_markdown_lines_up():
    assert markdown(("peer", "ms"), [("a", "1"), ("longer", "100")]) == (
        "| peer   |  ms |\n|--------|----:|\n| a      |   1 |\n| longer | 100 |"
    )


def test_empty_modes_are_on_inside_only_and_change_nothing():
    (peer,) = (peer for peer in all_peers() if peer.name == EMPTY_MODES)
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    with peer.open():
        assert (_len_torch_dispatch_stack(), _len_torch_function_stack()) == (1, 1)
        torch.nn.functional.softmax(x, dim=-1)[:, 0].sum().backward()
    assert (_len_torch_dispatch_stack(), _len_torch_function_stack()) == (0, 0)
    bare = x.detach().clone().requires_grad_()
    torch.nn.functional.softmax(bare, dim=-1)[:, 0].sum().backward()
    assert torch.equal(x.grad, bare.grad)
