"""The bench of correct models tells silence, findings, other bits, an error and the end of a process apart."""

import os

import pytest
import torch
from torch import nn

from bench import correct_models
from bench.correct_models import ended, measured, report
from bench.families import FAMILIES


def with_loss(loss):
    def family():
        torch.manual_seed(0)
        model = nn.Linear(2, 1)
        return model, lambda: loss(model(torch.ones(3, 2)))

    return family


FORMS = {
    "right": (with_loss(lambda out: out.square().mean()), "silent"),
    "wrong": (with_loss(lambda out: (out.mean() * 0).log() * 0 + out.sum()), "findings"),
    "random": (with_loss(lambda out: out.sum() * int.from_bytes(os.urandom(2))), "other bits under opdiff, opcheck"),
    "impossible": (with_loss(lambda out: out[7]), "not run"),
    "ends": (with_loss(lambda out: os.kill(os.getpid(), 9)), "THE PROCESS ENDS (-9)"),
}


@pytest.mark.parametrize("form", FORMS)
def test_what_is_said_of_a_model(form, monkeypatch, capfd):
    family, verdict = FORMS[form]
    monkeypatch.setitem(FAMILIES, form, family)
    result = measured(form, "float32")
    assert verdict in result["verdict"]
    assert f"| {form} | float32 | {result['verdict']} |" in list(report([result]))


def test_a_model_that_hangs(monkeypatch, capfd):
    monkeypatch.setattr(correct_models, "SECONDS", 1)
    monkeypatch.setitem(FAMILIES, "endless", with_loss(lambda out: [None for _ in iter(int, 1)]))
    assert measured("endless", "float32")["verdict"] == "HANGS (over 1 s)"


def test_ends_of_processes():
    assert ended(0) == "THE PROCESS ENDS (0)"


def test_there_are_thirty_families():
    assert len(FAMILIES) >= 30
