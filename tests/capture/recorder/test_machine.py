"""Tests what recordings say of the machine they are made on."""

import torch

from nbkit.capture.recorder.machine import machine


def test_the_recorder_is_the_one_that_would_be_used(monkeypatch):
    monkeypatch.setenv("NBKIT_RECORDER", "python")
    known = machine()
    assert known["recorder"] == "python (nbkit.build_recorder() builds the faster one)"
    assert (known["torch"], known["devices"].split(",")[0]) == (torch.__version__, "cpu")
