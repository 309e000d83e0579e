"""Tests what recordings say of the machine they are made on."""

import torch

from nbkit.capture.recorder.machine import machine


def test_the_recorder_is_the_one_that_would_be_used(monkeypatch):
    monkeypatch.setenv("NBKIT_RECORDER", "python")
    known = machine()
    assert known["recorder"] == "python (nbkit.build_recorder() builds the faster one)"
    assert (known["torch"], known["devices"].split(",")[0]) == (torch.__version__, "cpu")


def test_the_devices_of_an_accelerator_have_numbers_and_names(monkeypatch):
    monkeypatch.setattr("nbkit.capture.recorder.machine.current_accelerator", lambda: torch.device("cuda"))
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: f"Card {index}")
    assert machine()["devices"] == "cpu, cuda:0 (Card 0), cuda:1 (Card 1)"
