"""Calls as the options of a verb name them."""

import torch

import nbkit
from nbkit.capture.operators.bisect.chosen import in_call_numbers


def test_numbers_in_a_row_are_ranges_and_others_stand_alone():
    keys = [("mm", 7), ("add", 2), ("mm", 3), ("mm", 4), ("mm", 5), ("mm", 0), ("mm", 8)]
    assert in_call_numbers(keys) == {"add": "2", "mm": "0,3:6,7:9"}


def test_a_call_that_cannot_run_otherwise_is_no_candidate():
    library = torch.library.Library("nbkit_half_only", "DEF")
    library.define("double(Tensor x) -> Tensor")

    def double(x):
        if x.dtype is not torch.float16:
            raise RuntimeError("halves only")
        return x * 2

    library.impl("double", double, "CompositeExplicitAutograd")
    x = torch.ones(3, dtype=torch.float16)
    try:
        trace = nbkit.opbisect(lambda: torch.ops.nbkit_half_only.double(x).exp(), lambda value: False, by="cast")
    finally:
        library._destroy()
    assert trace.meta["candidates"] == 1


def test_what_no_trial_can_replace_is_counted():
    class Own(torch.Tensor):
        pass

    def step():
        torch.ones(2, device="meta").exp(), torch.ones(2).as_subclass(Own).exp(), torch.ones(2).exp()

    trace = nbkit.opbisect(step, lambda value: True, ops="exp")
    for reason in ("tensors without values (meta, fake)", "tensor subclasses"):
        assert trace.meta["skipped"][f"not replaced: {reason}"] == 1
