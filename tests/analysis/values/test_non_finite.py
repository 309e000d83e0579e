"""Results that hold NaN or Inf."""

import pandas as pd

from nbkit.analysis.values.non_finite import NonFinite, non_finite
from nbkit.schema import TENSORS
from tests.support.fakes import make_tensors


def with_counts(nan: list[int | None], inf: list[int | None]) -> pd.DataFrame:
    tensors = make_tensors((0, "input", 1), (3, "output", 2), (2, "output", 3), (5, "output", 4))
    return tensors.assign(nan_count=pd.array(nan, "Int64"), inf_count=pd.array(inf, "Int64"))


def test_results_are_counted_and_the_first_op_of_each_kind_is_named() -> None:
    assert non_finite(with_counts([9, 1, 2, 0], [9, 0, 0, 4])) == NonFinite(3, 2, 2, 1, 5)
    assert non_finite(with_counts([9, 0, 0, 0], [9, 0, 0, 0])) == NonFinite(3, 0, None, 0, None)


def test_results_whose_values_were_not_read_do_not_count() -> None:
    assert non_finite(with_counts([None, None, 0, None], [None, None, 0, None])) == NonFinite(1, 0, None, 0, None)
    assert non_finite(TENSORS.frame()) == NonFinite(0, 0, None, 0, None)
