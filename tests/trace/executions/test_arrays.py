"""Arrays of what users give: tensors of torch, numbers, and files of numpy."""

import numpy as np
import pytest
import torch

from nbkit.errors import OptionError
from nbkit.trace.executions.arrays import as_array, read_arrays


def test_bfloat16_comes_as_float32():
    found = as_array(torch.tensor([1.5, 2.0], dtype=torch.bfloat16, requires_grad=True))
    assert (found.dtype, found.tolist()) == (np.float32, [1.5, 2.0])


@pytest.mark.parametrize("value", [np.arange(3), [0, 1, 2], torch.arange(3)])
def test_what_is_like_an_array_is_one(value):
    assert as_array(value).tolist() == [0, 1, 2]


def test_a_file_has_its_arrays_by_name(tmp_path):
    np.savez(tmp_path / "feeds.npz", ids=np.arange(2), mask=np.ones(1))
    found = read_arrays(tmp_path / "feeds.npz")
    assert {name: array.tolist() for name, array in found.items()} == {"ids": [0, 1], "mask": [1.0]}


@pytest.mark.parametrize("content", [b"", b"no arrays", b"PK\x03\x04"])
def test_another_file_is_one_sentence(tmp_path, content):
    (tmp_path / "feeds.npz").write_bytes(content)
    with pytest.raises(OptionError, match="is no .npz file of arrays"):
        read_arrays(tmp_path / "feeds.npz")


def test_nothing_in_a_file_is_executed(tmp_path):
    np.savez(tmp_path / "feeds.npz", objects=np.array([{}], dtype=object))
    with pytest.raises(OptionError, match="write one with numpy.savez"):
        read_arrays(tmp_path / "feeds.npz")
