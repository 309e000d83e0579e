"""Warnings under opdiff are those of the bare step: none a second time, none swallowed, filters untouched."""

import warnings

import pytest
import torch

import nbkit
from nbkit.capture.replay.muted_warnings import MutedWarnings
from tests.capture.diff.planted import compared
from tests.capture.identical import warned_of


def lone_variance():
    """torch warns of it in C++: once for the op, and once more when the reference runs it."""
    return torch.ones(1).var()


def test_a_warning_of_the_op_is_shown_once():
    with warned_of() as bare:
        lone_variance()
    with warned_of() as watched:
        trace = compared(lone_variance)
    assert trace.diffs["op"].tolist()[-1] == "aten.var.correction"
    assert watched == bare and len(bare) == 1


def test_a_warning_of_the_users_reference_function_is_not_the_steps():
    def reference(op, args, kwargs):
        warnings.warn("mine", stacklevel=1)
        return op(*args, **kwargs)

    with warned_of() as watched:
        compared(lambda: torch.ones(3).exp(), reference=reference)
    assert watched == []


def test_a_filter_that_makes_errors_of_warnings_stops_the_step_at_its_own():
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings(), pytest.raises(UserWarning, match="degrees of freedom"):
            warnings.simplefilter("error")
            compared(lone_variance)
    finally:
        torch.set_warn_always(before)


@pytest.mark.parametrize("action", ["once", "default", "module"])
def test_filters_that_count_do_not_count_those_of_the_reference(action):
    def shown(step):
        with warned_of(action) as messages:
            step()
        return messages

    assert shown(lambda: compared(lone_variance)) == shown(lone_variance) != []


def test_a_python_that_shows_warnings_by_another_function_shows_them_and_work_is_done(monkeypatch):
    monkeypatch.delattr(warnings, "_showwarnmsg", raising=False)
    with MutedWarnings() as muted:
        assert muted.run(lambda: torch.ones(2).sum().item()) == 2.0
    assert not hasattr(warnings, "_showwarnmsg")
    assert compared(lone_variance).diffs["op"].tolist()[-1] == "aten.var.correction"


def test_afterwards_warnings_are_shown_by_what_showed_them_before():
    before = warnings._showwarnmsg
    with nbkit.opdiff():
        assert warnings._showwarnmsg is not before
    assert warnings._showwarnmsg is before
