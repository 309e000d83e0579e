"""Tests the ops that meta names: the first at fault, the one that lost half of the digits, the largest growth."""

import numpy as np
import pytest

from nbkit.divergence.milestones import milestones, off_without_fault
from nbkit.divergence.origins import origins
from tests.divergence.makers import make_chain, make_diffs
from tests.support.fakes import make_ops

EPS = 2.0**-23
OPS = make_ops(*({"op": f"aten.op{number}.default", "source": f"a.py:{number}"} for number in range(3)))


def found(*totals, faulty=(), noise=()):
    rows = [{"total_error": total, "local_error": EPS, "propagated_error": total} for total in totals]
    for number in faulty:
        rows[number] |= {"status": "mismatch", "message": "wrong", "noise_ratio": 50.0}
    diffs = make_diffs(*rows)
    is_noise = np.isin(np.arange(len(rows)), noise)
    return milestones(diffs, OPS, origins(diffs, make_chain(len(rows))), is_noise)


def test_the_first_row_at_fault_is_named_with_its_figures():
    first = found(EPS, 1e-3, 1e-3, faulty=[1, 2])["first_divergence"]
    assert (first["op_id"], first["source"], first["message"], first["noise_ratio"]) == (1, "a.py:1", "wrong", 50.0)
    assert (first["total_error"], first["module"]) == (1e-3, None)


def test_rounding_alone_is_no_fault_and_loses_nothing():
    meta = found(EPS / 4, EPS / 2, EPS)
    assert (meta["first_divergence"], meta["half_precision_lost_at"], meta["largest_growth"]) == (None, None, None)


def test_growth_is_over_the_errors_of_the_inputs_or_the_dtype():
    meta = found(EPS, 1e-3, 2e-3)
    assert (meta["largest_growth"]["op_id"], meta["half_precision_lost_at"]["op_id"]) == (1, 1)
    assert meta["largest_growth"]["before"] == 2 * EPS  # local and propagated
    assert meta["half_precision_lost_at"]["level"] == pytest.approx(EPS**0.5)


def test_zero_but_for_rounding_counts_for_faults_alone():
    meta = found(EPS, 5.0, EPS, faulty=[1], noise=[1])
    assert meta["first_divergence"]["op_id"] == 1
    assert (meta["largest_growth"], meta["half_precision_lost_at"]) == (None, None)


def test_no_rows_have_no_milestones():
    assert set(found().values()) == {None}


def test_the_largest_error_is_that_of_a_result_before_the_optimizer():
    diffs = make_diffs(
        *({"total_error": total, "phase": phase} for total, phase in ((0.2, "forward"), (5, "optimizer")))
    )
    meta = milestones(diffs, OPS, origins(diffs, make_chain(2)), np.array([False, False]))
    assert (meta["largest_error"]["op_id"], meta["largest_error"]["total_error"]) == (0, 0.2)
    assert off_without_fault({**meta, "against": "cpu:float64"}) == 0.2
    assert off_without_fault({**meta, "against": "cpu:bfloat16"}) is None
    assert off_without_fault({**meta, "first_divergence": {}}) is None
    assert off_without_fault({}) is None


def test_half_of_the_digits_are_those_of_the_coarsest_dtype_on_the_way():
    rows = [{"total_error": 0.01, "propagated_error": 0.01, "dtype": dtype} for dtype in ("float16", "float32")]
    diffs = make_diffs(*rows)
    meta = milestones(diffs, OPS, origins(diffs, make_chain(2)), np.array([False, False]))
    assert meta["half_precision_lost_at"] is None
    rows[1]["total_error"] = 0.1
    diffs = make_diffs(*rows)
    lost = milestones(diffs, OPS, origins(diffs, make_chain(2)), np.array([False, False]))["half_precision_lost_at"]
    assert (lost["op_id"], lost["level"]) == (1, 2.0**-5)
