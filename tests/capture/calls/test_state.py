"""What is set around a call is read, set again around its replay, and taken back."""

import pytest
import torch

from nbkit.capture.calls.state import as_recorded, call_state

OTHER = {
    "grad": False,
    "default_dtype": "float64",
    "threads": 3,
    "matmul_precision": "medium",
    "deterministic": True,
}


@pytest.mark.parametrize("is_raising", [False, True])
@pytest.mark.parametrize("name", OTHER)
def test_a_setting_holds_inside_and_is_taken_back(name, is_raising):
    before = call_state()
    assert before[name] != OTHER[name]
    try:
        with as_recorded(before | {name: OTHER[name]}):
            assert call_state() == before | {name: OTHER[name]}
            if is_raising:
                raise KeyError(name)
    except KeyError:
        assert is_raising
    assert call_state() == before


def test_what_is_set_so_already_is_not_set_again(monkeypatch):
    """torch's function imports its compiler, which takes longer than a whole replay."""

    def not_wanted(*_, **__):
        raise AssertionError

    state = call_state()
    monkeypatch.setattr(torch, "use_deterministic_algorithms", not_wanted)
    monkeypatch.setattr(torch, "set_num_threads", not_wanted)
    with as_recorded(state | {"grad": False}):
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()


def test_inference_mode_holds_inside():
    with as_recorded(call_state() | {"inference": True}):
        assert torch.is_inference_mode_enabled()
    assert not torch.is_inference_mode_enabled()


def test_autocast_is_read_with_its_dtype():
    assert "autocast" not in call_state()
    with torch.autocast("cpu", torch.float16):
        assert call_state()["autocast"] == {"cpu": "float16"}


@pytest.mark.parametrize("threads", [0, -1, 10**9])
def test_a_number_of_threads_that_no_machine_has_is_not_set(threads):
    before = torch.get_num_threads()
    with as_recorded({"threads": threads}):
        assert torch.get_num_threads() == before
