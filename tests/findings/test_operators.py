"""Calls that differ from run to run are findings, those of one place as one; what is documented is a warning."""

from nbkit.findings.operators import stability_findings
from nbkit.schema import STABILITY
from tests.support.fakes import make_ops


def test_calls_of_one_place_are_one_finding_and_documented_ops_are_warnings():
    ops = make_ops({"op": "aten.mm.default"}, {}, {"op": "aten.index_put.default", "module": "head"})
    place = [{name: ops[name].iloc[n] for name in ("op", "module", "phase", "source")} for n in range(3)]
    messages = [
        "from run to run: 2 elements differ",
        None,
        "from run to run: 1 element differs; torch documents it as nondeterministic",
    ]
    rows = [
        {"op_id": n, **place[n], "call": n, "run_to_run": verdict, "max_ulp": float(n), "message": messages[n]}
        | {"documented": "nondeterministic" if n == 2 else None}
        for n, verdict in enumerate(("differs", "same", "differs"))
    ]
    found = stability_findings(STABILITY.frame(rows), ops, {})
    assert found["rule"].tolist() == ["not_repeatable"] * 2
    assert found["severity"].tolist() == ["error", "warning"]
    assert found["message"][0] == "the same inputs give other bits each time: 2 elements differ"
    assert found["op_id"].tolist() == [0, 2]
