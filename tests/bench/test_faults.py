"""The fault benchmark: a few of its faults for real, drawn by lot, and its arithmetic on literal outcomes."""

import math
from random import Random

import pytest

import nbkit
from bench.faults import clean_run, targets_missed
from bench.planted.lot import faults_of
from bench.planted.runs import Outcome, outcome_of
from bench.planted.steps import MODELS, make_step
from bench.planted.tables import Clean, share, totals, undetectable, wrong_verdicts

FAULT = nbkit.Fault("aten.mm.default", size=0.25, nth_call=2)
PLACE = ("conv", "float32")
FINE = Clean(10, 0.5, ())


def outcome(rounding_ratio, found=True, others=()):
    return Outcome(FAULT, "forward", rounding_ratio, 3.0, found, others)


@pytest.mark.parametrize(("model", "dtype", "seed"), [("conv", "float32", 1), ("attention", "bfloat16", 2)])
def test_faults_drawn_by_lot_are_the_first_and_only_mismatch(device, model, dtype, seed):
    place = device.torch_device
    faults = Random(seed).sample(faults_of(make_step(model, dtype, place), seed), 10)
    outcomes = [outcome_of(device, make_step(model, dtype, place), fault) for fault in faults]
    met = [one for one in outcomes if one is not None]
    assert sum(one.kind == "detectable" for one in met) >= 4
    assert [one for one in met if one.is_wrong] == []


@pytest.mark.parametrize("model", MODELS)
def test_every_model_makes_the_same_step_each_time(device, model):
    losses = [make_step(model, "float32", device.torch_device)._loss().item() for _ in range(2)]
    assert losses[0] == losses[1]


def test_a_fault_that_changed_nothing_is_not_counted(device):
    step = make_step(*PLACE, device.torch_device)
    assert outcome_of(device, step, nbkit.Fault("aten.relu_.default", size=0.0, nth_call=1)) is None


def test_a_step_without_a_fault_is_called_right():
    clean = clean_run("transformer", "autocast", 0)
    assert clean.wrong == ()
    assert clean.tensors > 100
    assert 0 < clean.noise_ratio < 8


def test_the_device_not_the_verdict_says_what_is_detectable():
    for found in (True, False):
        kinds = [outcome(ratio, found).kind for ratio in (math.inf, 8.1, 8.0, 1.0, math.nan)]
        assert kinds == ["detectable", "detectable", "within the margin", "within rounding", "random"]


def test_a_missed_fault_and_a_blamed_op_are_wrong_verdicts_with_a_name():
    ones = [outcome(100.0), outcome(100.0, found=False), outcome(0.5, others=("aten.exp.default",)), outcome(0.5)]
    name, ratio = "conv float32, aten.mm.default call 2, relative_error 0.25: moved", "noise ratio 3"
    assert wrong_verdicts({PLACE: ones}) == [
        f"{name} 100 times what rounding allows, {ratio}, not found",
        f"{name} 0.5 times what rounding allows, {ratio}, found, blamed: aten.exp.default",
    ]


def test_undetectable_faults_are_listed_the_largest_first():
    ones = [outcome(0.5, found=False), outcome(100.0), outcome(7.0, found=False)]
    assert [line.split(": ")[1][:9] for line in undetectable({PLACE: ones})] == ["moved 7 t", "moved 0.5"]


def test_the_share_is_of_those_found_alone():
    ones = [outcome(100.0), outcome(100.0, found=False), outcome(100.0, others=("aten.exp.default",)), outcome(9.0)]
    assert share(ones) == 0.5
    assert "| detectable        |       4 |                       2 |         1 |                 1 |" in totals(
        {PLACE: ones}, {PLACE: FINE}
    )


def test_targets_are_missed_by_a_miss_in_fifty_a_false_alarm_and_too_few_faults():
    ones = {PLACE: [outcome(100.0)] * 98 + [outcome(100.0, found=False)] * 2}
    assert list(targets_missed(ones, {PLACE: Clean(10, 9.0, ("aten.mm.default",))}, is_whole=True)) == [
        "98.00% of the detectable faults are the first and only mismatch, wanted 99%",
        "clean steps with mismatches: conv/float32",
        "100 detectable faults, wanted 120",
        "1 pairs of op and kind, wanted 25",
        "1 clean steps, wanted 12",
    ]
    assert list(targets_missed({PLACE: [outcome(100.0)] * 100}, {PLACE: FINE}, is_whole=False)) == []
