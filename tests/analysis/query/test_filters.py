"""Filter texts: what each form keeps."""

import numpy as np
import pandas as pd
import pytest

from nbkit.analysis.query.filters import number_mask, text_mask
from nbkit.errors import PatternError

TEXTS = pd.Series(["aten.mm.default", "aten.addmm.default", "torch.matmul", None], dtype="str")
NUMBERS = np.array([1.0, 5.0, 2000.0, np.nan])


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("MM", [0, 1]),
        ("=torch.matmul", [2]),
        ("aten.*", [0, 1]),
        ("*.m?.*", [0]),
        ("!aten", [2, 3]),
        ("!=torch.matmul", [0, 1, 3]),
        ("re:\\.mm\\b|matmul$", [0, 2]),
        ("null", [3]),
        ("!null", [0, 1, 2]),
        ("a.t", []),
    ],
)
def test_text_filters(text: str, kept: list[int]) -> None:
    assert np.flatnonzero(text_mask(TEXTS, text)).tolist() == kept


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (">1", [1, 2]),
        (">=1", [0, 1, 2]),
        ("< 5", [0]),
        ("<=5us", [0, 1]),
        ("5", [1]),
        ("=2ms", [2]),
        ("!=5", [0, 2, 3]),
        ("1..5", [0, 1]),
        ("0.001ms..1s", [0, 1, 2]),
        ("null", [3]),
        ("!null", [0, 1, 2]),
    ],
)
def test_time_filters(text: str, kept: list[int]) -> None:
    assert np.flatnonzero(number_mask(NUMBERS, text, is_time=True)).tolist() == kept


def test_counts_take_multiples() -> None:
    assert number_mask(NUMBERS, ">=2k", is_time=False).tolist() == [False, False, True, False]


@pytest.mark.parametrize("text", [">", "fast", "1..", "5kg", "2k"])
def test_number_filter_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(PatternError, match="is not a number; write >5"):
        number_mask(NUMBERS, text, is_time=True)


def test_bad_regular_expression_is_refused() -> None:
    with pytest.raises(PatternError, match="is not a regular expression"):
        text_mask(TEXTS, "re:(mm")
