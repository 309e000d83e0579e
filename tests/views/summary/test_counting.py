from nbkit.views.summary.counting import counted_ops
from tests.support.fakes import make_ops

API, STEP, KERNEL = {"level": "api"}, {"level": "range", "op": "step"}, {"level": "kernel"}


def counted(*rows):
    ops, words = counted_ops(make_ops(*rows))
    return len(ops), words


def test_totals_count_aten_ops_and_of_a_timeline_all_of_the_host():
    assert counted({}, {}) == (2, "ops")
    assert counted(API, {}, {}) == (2, "aten ops")
    assert counted(API, API) == (2, "ops")
    assert counted(STEP, API, {}, KERNEL) == (3, "calls")
