"""Kinds of differences between tensors that are hardly any: one element, zeros, one row, no number, nothing at all."""

from collections.abc import Callable

import numpy as np
import pytest

from nbkit.analysis.align.kinds.find import kind_of
from nbkit.analysis.align.region import Piece, Region
from nbkit.trace.executions.execution import Result

SHAPES = ((1,), (7,), (1, 1), (4, 4), (1, 8), (8, 1), (2, 4, 8), (1, 2, 4, 8), (2, 1, 6, 4), (0,), (0, 4), ())
Change = Callable[[np.ndarray], np.ndarray]


def _with(place: slice | int, value: float) -> Change:
    def changed(left: np.ndarray) -> np.ndarray:
        right = left.copy()
        right.reshape(-1)[place] = value
        return right

    return changed


CHANGES: dict[str, Change] = {
    "one element moves": lambda left: left + np.eye(1, left.size, left.size // 2, dtype=left.dtype).reshape(left.shape),
    "the first element is zero": _with(slice(0, 1), 0),
    "the last element is huge": _with(slice(-1, None), 60_000),
    "all are zero": np.zeros_like,
    "all are one number": np.ones_like,
    "all are negated": lambda left: -left,
    "all but the sign of zero": lambda left: left * 1,
    "half of them": _with(slice(None, None, 2), 3),
    "the other order": lambda left: left.reshape(-1)[::-1].reshape(left.shape),
    "another shape": lambda left: left.reshape(-1)[:1],
}
LEFTS: dict[str, Callable[[tuple[int, ...]], np.ndarray]] = {
    "ones": lambda shape: np.ones(shape, np.float32),
    "zeros": lambda shape: np.zeros(shape, np.float32),
    "random": lambda shape: np.random.default_rng(0).standard_normal(shape).astype(np.float32),
    "integers": lambda shape: np.arange(np.prod(shape, dtype=int), dtype=np.int64).reshape(shape),
    "truths": lambda shape: np.ones(shape, bool),
    "half": lambda shape: np.linspace(-3, 3, np.prod(shape, dtype=int), dtype=np.float16).reshape(shape),
}


def _piece(name: str, value: np.ndarray, kind: str = "op") -> Piece:
    return Piece(Result(0, kind, name, str(value.dtype), value.shape, op="Add" if kind == "op" else None), value)


@pytest.mark.parametrize("left", LEFTS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_difference_that_is_hardly_one_raises_nothing(left: str, change: str) -> None:
    for shape in SHAPES:
        ours = LEFTS[left](shape)
        theirs = ~ours if ours.dtype == bool else CHANGES[change](ours)
        read = tuple(
            _piece(name, value, kind)
            for name, value, kind in (
                ("x", ours, "input"),
                ("w", LEFTS[left](shape[-1:]), "parameter"),
                ("m", LEFTS[left]((*shape[-1:], *shape[-1:])), "parameter"),
            )
        )
        for kind in ("op", "parameter"):
            region = Region(
                ours,
                theirs,
                theirs,
                kind,
                read,
                read,
                (_piece("a", ours), _piece("b", ours)),
                (_piece("a", theirs), _piece("b", theirs)),
                {"x": ours, "w": read[1].value, "m": read[2].value},
            )
            found = kind_of(region)
            assert found is None or found.explained <= 1, (shape, kind)


def test_flags_that_are_no_mask_explain_no_rows_of_nan() -> None:
    left = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
    right = np.full_like(left, np.nan)

    def message(flags: np.ndarray) -> str:
        read = (_piece("flags", flags, "input"),)
        found = kind_of(Region(left, right, right, "op", read, read, (_piece("a", left),), (_piece("b", right),)))
        assert found is not None and found.name == "nan"
        return found.message

    assert "wholly masked" in message(np.ones((2, 4), bool))
    assert "wholly masked" not in message(np.ones(4, bool)) + message(np.array(True))


def test_one_number_throughout_has_no_kind_but_a_factor() -> None:
    zeros, ones = np.zeros((3, 5), np.float32), np.ones((3, 5), np.float32)
    read = (_piece("x", zeros, "input"), _piece("div", ones))
    for left, right in ((zeros, ones), (ones, zeros)):
        assert kind_of(Region(left, right, left_inputs=read, right_inputs=read, agreed={"div": ones})) is None
    found = kind_of(Region(ones, ones / 2, left_inputs=read, right_inputs=read))
    assert found is not None and found.name == "scale"
