"""Data of a step that is far from that of a usual one."""

from nbkit.findings.steps.inputs import StepInput, unusual_inputs


def data(*largest, op="aten.addmm.default", source="train.py:8"):
    return StepInput(op, "encoder", source, "loss = model(x)", (len(largest), 4), largest)


def said(inputs, usual):
    return [one.message for one in unusual_inputs(37, inputs, 36, usual)]


def test_the_sample_is_named_with_what_is_usual():
    [finding] = unusual_inputs(37, [data(1.0, 2.0, 3000.0)], 36, [data(3.0, 1.0, 2.0)])
    assert finding.message == (
        "Sample 2 of the batch of step 37 (shape [3, 4]) holds values up to 3e+03, where step 36 has at most 3; the "
        "median of its samples is 2"
    )
    assert (finding.rule, finding.severity, finding.step, finding.source) == (
        "unusual_batch",
        "warning",
        37,
        "train.py:8",
    )
    assert (finding.module, finding.op, finding.source_text) == ("encoder", "aten.addmm.default", "loss = model(x)")
    assert finding.evidence == {"rows": [2], "largest": 3000.0}


def test_a_whole_batch_in_other_units_is_one_sentence():
    assert said([data(*[60.0] * 7)], [data(*[3.0] * 7)]) == [
        "Samples 0, 1, 2, 3, 4 ... of the batch of step 37 (shape [7, 4]) hold values up to 60, where step 36 has at "
        "most 3"
    ]


def test_twenty_times_the_largest_is_the_limit():
    assert said([data(59.9, 1.0)], [data(1.0, 3.0)]) == []
    assert len(said([data(60.0, 1.0)], [data(1.0, 3.0)])) == 1


def test_inputs_are_matched_by_op_line_and_order():
    usual = [data(1.0), data(100.0), data(1.0, op="aten.mm.default")]
    assert said([data(10.0), data(1000.0)], usual) == []
    assert len(said([data(1000.0), data(10.0)], usual)) == 1
    assert said([data(1e6, source="other.py:1")], usual) == []
    assert said([data(1e6)], [data(0.0)]) == []  # of nothing everything is a multiple


def test_what_is_infinite_in_a_usual_step_is_not_unusual():
    inf = float("inf")
    assert said([data(inf, 1.0)], [data(inf, inf)]) == []
    assert len(said([data(inf, 1.0)], [data(3.0, 1.0)])) == 1
