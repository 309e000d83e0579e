import pandas as pd

from nbkit.analysis.graph.memory_writes import is_write, memory_of
from tests.support.fakes import make_tensors


def test_a_tensor_without_a_storage_shares_memory_with_no_storage():
    tensors = make_tensors((0, "input", 3), (0, "output", 2), (1, "input", 0))
    tensors["storage_id"] = pd.array([None, 2, None], "Int64")
    assert memory_of(tensors).tolist() == [-4, 2, -1]


def test_a_view_is_not_written_and_what_an_op_changed_is():
    tensors = make_tensors((0, "input", 1), (0, "output", 2), (1, "input", 1), (1, "output", 1), (2, "output", 3))
    tensors["storage_id"] = pd.array([7, 7, 7, 7, 8], "Int64")
    assert is_write(tensors).tolist() == [False, False, False, True, True]
