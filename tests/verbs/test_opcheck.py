from nbkit.schema import FINDINGS
from nbkit.verbs.opcheck import OPCHECK
from nbkit.views.op_table.widget import OpTable
from tests.fakes import small_trace


def test_findings_stand_above_the_op_table() -> None:
    trace = small_trace()
    trace.frames["findings"] = FINDINGS.frame()
    tables, ops = OPCHECK.view.widget(trace).children
    assert "nbkit" in tables.value
    assert isinstance(ops, OpTable)
