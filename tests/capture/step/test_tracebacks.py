"""An error of a recorded step, and each error that it was raised from or during, has no frame of the recorder."""

from traceback import walk_tb

import pytest
import torch

import nbkit
from nbkit.capture.raw.source import CAPTURE
from nbkit.errors import is_own_file


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


MISTAKES = {
    "a product": lambda: torch.ones(2, 3) @ torch.ones(2, 3),
    "a view": lambda: torch.ones(3, 4).view(5, 5),
    "a target's dtype": lambda: torch.nn.functional.cross_entropy(torch.ones(3, 4), torch.ones(3)),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_shapes_alone_show_to_be_wrong_is_a_mistake_of_the_step(mistake):
    with pytest.raises(RuntimeError) as caught, nbkit.opcost() as trace:
        MISTAKES[mistake]()
    assert trace.meta["error"]["failed_in_nbkit"] is None
    assert not [frame for frame, _ in walk_tb(caught.value.__traceback__) if is_own_file(frame.f_code.co_filename)]
