"""An error of a recorded step, and each error that it was raised from or during, has no frame of the recorder."""

from traceback import walk_tb

import pytest
import torch

import nbkit
from nbkit.capture.raw.source import CAPTURE


def failing(*, is_chained):
    try:
        torch.mm(torch.ones(2, 3), torch.ones(2, 3))
    except RuntimeError as error:
        if is_chained:
            raise ValueError("wrong shapes") from error
        raise KeyError("while it was handled")  # noqa: B904  its context is what is tested


@pytest.mark.parametrize("recorder", ["observer", "python"])
@pytest.mark.parametrize("is_chained", [True, False])
def test_no_error_of_a_chain_shows_the_recorder(monkeypatch, is_chained, recorder):
    monkeypatch.setenv("NBKIT_RECORDER", recorder)
    with pytest.raises((ValueError, KeyError)) as caught, nbkit.optrace():
        failing(is_chained=is_chained)
    chain = [caught.value, caught.value.__cause__ or caught.value.__context__]
    assert [type(error) for error in chain] == [ValueError if is_chained else KeyError, RuntimeError]
    files = [frame.f_code.co_filename for error in chain for frame, _ in walk_tb(error.__traceback__)]
    assert not [name for name in files if name.startswith(CAPTURE)]
