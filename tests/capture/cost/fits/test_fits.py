"""The answer of fits is the one that trying every set of modules gives."""

import sys
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch
from torch import nn

import nbkit
from nbkit.capture.cost.fits.candidates import Candidate, Timeline
from nbkit.capture.cost.fits.choice import Choice
from nbkit.capture.cost.fits.fits import _Search
from nbkit.capture.cost.what_if.difference import measures

WIDTHS = (256, 96, 512, 64)
NAMES = [str(number) for number in range(len(WIDTHS))]


class Block(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.mlp = nn.Sequential(nn.Linear(16, hidden), nn.GELU(), nn.Linear(hidden, 16))

    def forward(self, x):
        return x + self.mlp(self.norm(x))


def training(passes=1):
    torch.manual_seed(0)
    model, x = nn.Sequential(*map(Block, WIDTHS), nn.Linear(16, 4)), torch.randn(64, 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        optimizer.zero_grad()
        for _ in range(passes):
            model(x).sum().backward()
        optimizer.step()

    return step


def peak_and_flops(trace):
    of = measures(trace)
    return of["peak_bytes"], of["forward_flops"] + of["backward_flops"]


@pytest.fixture(scope="module")
def every():
    """Peak and FLOPs by the set of blocks that is checkpointed."""
    step = training()
    sets = [names for count in range(1, len(NAMES) + 1) for names in combinations(NAMES, count)]
    costs = {names: peak_and_flops(nbkit.what_if(step, checkpoint=names).changed) for names in sets}
    return {(): peak_and_flops(nbkit.opcost().run(step)), **costs}


def test_the_set_is_the_cheapest_of_all_that_fit(every):
    least, most = min(peak for peak, _ in every.values()), every[()][0]
    for memory in {peak for peak, _ in every.values() if peak < most} | {(least + most) // 2}:
        answer = nbkit.fits(training(), memory, checkpoint=NAMES)
        cheapest = min(flops for peak, flops in every.values() if peak <= memory)
        assert not answer and answer.is_cheapest and answer.needed_bytes <= memory
        assert every[answer.checkpoint] == (answer.needed_bytes, cheapest) == peak_and_flops(answer.trace)
        assert answer.added_flops == cheapest - every[()][1] and answer.missing_bytes == 0
        assert f"checkpoint {', '.join(map(repr, answer.checkpoint))}." in repr(answer)


def test_what_fits_as_it_is_needs_no_solver(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    answer = nbkit.fits(training(), "1 MiB")
    assert (
        answer
        and answer.peak_bytes == peak_and_flops(nbkit.opcost().run(training()))[0]
        and answer.checkpoint == ()
        and answer.added_flops == 0
    )
    assert repr(answer) == "Yes: the peak is 751 KiB of 1.00 MiB."
    with pytest.raises(nbkit.OptionError, match=r"which is not installed; install nbkit-torch\[solver\]"):
        nbkit.fits(training(), "600 KiB")


def test_where_nothing_fits_the_closest_is_told(every):
    least = min(peak for peak, _ in every.values())
    answer = nbkit.fits(training(), least - 1000, checkpoint=NAMES)
    assert not answer and answer.needed_bytes == least and answer.missing_bytes == 1000
    assert answer.added_flops == min(flops for peak, flops in every.values() if peak == least) - every[()][1]
    assert "No checkpointing of modules makes it fit" in repr(answer) and "1000 B too much" in repr(answer)


def test_where_nothing_fits_the_closest_that_was_tried_is_told():
    answer = nbkit.fits(training(), 1000, checkpoint=NAMES)
    assert not answer and answer.missing_bytes == answer.needed_bytes - 1000
    changed = nbkit.what_if(training(), checkpoint=answer.checkpoint).changed
    assert (answer.needed_bytes, set(answer.checkpoint) <= set(NAMES)) == (peak_and_flops(changed)[0], True)
    assert answer.needed_bytes < answer.peak_bytes and "No checkpointing of modules makes it fit" in repr(answer)


def test_where_no_checkpoint_lowers_the_peak_the_step_as_it_is_is_the_closest():
    model, x = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 16)), torch.randn(640, 16)

    def step():
        model(x).sum().backward()
        model(x)

    peak, _ = peak_and_flops(nbkit.opcost().run(step))
    answer = nbkit.fits(step, peak - 1)
    assert not answer and (answer.checkpoint, answer.missing_bytes) == ((), 1)


def test_smaller_modules_may_do():
    memory = peak_and_flops(nbkit.what_if(training(), checkpoint="0").changed)[0] - 100
    answers = [nbkit.fits(training(), memory, checkpoint=patterns) for patterns in ("*", NAMES)]
    assert all(answer.is_cheapest and answer.needed_bytes <= memory for answer in answers)
    assert all(f"checkpoint {', '.join(map(repr, one.checkpoint[:6]))}" in repr(one) for one in answers)
    assert answers[0].added_flops < answers[1].added_flops and not set(answers[0].checkpoint) <= set(NAMES)


def test_where_checkpoints_do_not_help():
    model = nn.Linear(16, 16)
    answer = nbkit.fits(lambda: model(torch.ones(2, 16)).sum().backward(), 100)
    assert answer.checkpoint == () and repr(answer).endswith("No checkpointing of modules lowers it.")


def test_models_that_the_step_makes_are_not_checkpointed():
    answer = nbkit.fits(lambda: Block(64)(torch.ones(8, 16)).sum().backward(), 100)
    assert not answer and answer.checkpoint == () and answer.missing_bytes == answer.peak_bytes - 100


def test_a_pattern_that_matches_nothing_is_refused():
    with pytest.raises(
        nbkit.OptionError, match="checkpoint='layers' matches no module that runs; paths are such as '0', '0.mlp'"
    ):
        nbkit.fits(training(), 100, checkpoint="layers")


def test_of_a_module_and_one_inside_it_never_both_are_chosen():
    found = [Candidate(path, flops, 0, ()) for path, flops in (("layer", 3), ("layer.inner", 1), ("other", 4))]
    choice = Choice(found, Timeline(np.array([100]), np.array([[10, 6, 5]])))
    cheapest = [choice.cheapest(limit) for limit in (94, 90, 89, 85)]
    assert [chosen.tolist() for chosen in cheapest] == [[0, 1, 0], [1, 0, 0], [0, 1, 1], [1, 0, 1]]
    assert choice.cheapest(84) is None  # which all three would keep
    closest = []
    while (chosen := choice.smallest()) is not None:
        closest.append(chosen.tolist())
        choice.refuse(chosen)
    assert closest == [[1, 0, 1], [0, 1, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]] and choice.is_proven


def test_where_the_model_of_memory_promises_too_much_more_is_asked_for():
    class Optimistic(_Search):
        """Needs 4 bytes more than its linear model says."""

        def __init__(self, found, memory, limit):
            self.found, self.memory, self.limit, self.margin, self.runs = found, memory, limit, 0, []
            self.choice = Choice(found, memory)

        def _run(self, chosen):
            self.runs.append(chosen.tolist())
            self.margin = 4
            self.choice.refuse(chosen)
            return self.memory.peak_bytes(chosen) + 4

    found = [Candidate(path, flops, 0, ()) for path, flops in (("first", 1), ("second", 2), ("third", 9))]
    memory = Timeline(np.array([100]), np.array([[10, 11, 30]]))
    search = Optimistic(found, memory, 91)
    assert search._fitting(4) and search.runs == [[1, 0, 0], [0, 1, 0], [1, 1, 0]]
    search = Optimistic(found, memory, 90)
    assert not search._fitting(1) and search._fitting(1, with_margin=True)
    assert search.runs == [[1, 0, 0], [1, 1, 0]]


def test_gradients_summed_over_several_passes():
    plain = nbkit.fits(training(passes=2), "1 GB")
    answer = nbkit.fits(training(passes=2), plain.peak_bytes - 20_000, checkpoint=NAMES)
    assert not answer and answer.missing_bytes == 0 and answer.is_cheapest
    of_one = nbkit.what_if(training(), checkpoint=answer.checkpoint).difference.set_index("measure")
    assert answer.added_flops == 2 * of_one.loc["backward_flops", "change"]


def test_a_pass_that_is_not_backpropagated_has_nothing_to_free():
    model, x = nn.Sequential(Block(64), Block(64)), torch.randn(64, 16)

    def step():
        model(x).sum().backward()
        with torch.no_grad():
            model(x)

    peak = measures(nbkit.opcost().run(step))["peak_bytes"]
    answer = nbkit.fits(step, peak - 1000, checkpoint=["0", "1"])
    assert answer.checkpoint and answer.missing_bytes == 0 and answer.peak_bytes == peak


def test_an_empty_step_needs_nothing():
    answer = nbkit.fits(lambda: None, 100)
    assert (answer.peak_bytes, bool(answer)) == (0, True)
    assert set(measures(answer.trace).values()) == {0}


def test_conditions_hold_for_all_that_is_tried():
    half = nbkit.what_if(training(), batch_size=32).changed
    answer = nbkit.fits(training(), measures(half)["peak_bytes"] - 20_000, batch_size=32)
    assert answer.peak_bytes == measures(half)["peak_bytes"] and not answer and answer.missing_bytes == 0
    assert "Inputs of the shape [64, 16] were seen as [32, 16]." in answer.trace.meta["notes"]


@pytest.mark.parametrize("memory", ["24 cows", "-1 GB", None, True, "GiB"])
def test_a_size_that_is_none_is_refused(memory):
    with pytest.raises(nbkit.OptionError, match="is no size of memory; give bytes as a number, or such as '24 GiB'"):
        nbkit.fits(training(), memory)


def test_a_step_that_cannot_be_called_is_refused():
    with pytest.raises(nbkit.OptionError, match="this is a int; give a function without arguments"):
        nbkit.fits(3, "1 GB")


def test_of_many_modules_the_first_are_named_and_the_rest_are_counted():
    paths = tuple(f"layers.{number}" for number in range(8))
    answer = replace(nbkit.fits(training(), "1 GB"), memory_bytes=1000, checkpoint=paths)
    assert f"{', '.join(map(repr, paths[:6]))} and 2 more modules" in repr(answer)
