import pytest

import nbkit
from tests.capture.identical import CASES, left_by

# Of each kind of step one; all of them with the marker `full`.
FEW = ["conv, adamw", "in-place", "out=", "aliases", "random draws", "warnings", "grad modes", "fused qkv, checkpoint"]


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        case if case[0] in FEW else pytest.param(*case, marks=pytest.mark.full)  # two minutes in all
        for case in CASES
    ],
)
def test_the_step_computes_the_same_bits_and_so_does_each_of_its_calls_alone(tmp_path, name, dtype):
    assert left_by(name, dtype, nbkit.opcapture(tmp_path / "calls")) == left_by(name, dtype)
    meta = nbkit.opreplay(tmp_path / "calls").meta
    assert meta["identical_calls"] == meta["captured_calls"] > 0
    assert (meta["mismatches"], meta["skipped"]) == (0, {})
