"""Where two runs diverge, as the tables of a summary."""

import torch
from torch import nn

import nbkit
from nbkit.units import general
from nbkit.views.sections.diff import divergence_sections
from tests.capture.diff.planted import scaled, with_fault
from tests.capture.diff.shadow.runs import against
from tests.support.fakes import small_trace


def faulty():
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 2)), torch.rand(3, 4)
    op = "aten.native_layer_norm.default"
    return with_fault(lambda: model(x).sum(), op, scaled, against="cpu:float64")


def test_the_op_at_fault_the_way_to_it_and_the_classes():
    where, chain, classes = divergence_sections(faulty())
    first = where.texts()[0]
    assert where.title == "Where the step and cpu:float64 diverge"
    assert first[:4] == ["first op at fault", "aten.native_layer_norm.default", "forward", "1"]
    assert "test_divergence.py:" in first[4]
    assert first[5].startswith("local error 0.000")
    assert [row[:4] for row in chain.texts()] == [["aten.addmm.default", "1", "forward", "0"]]
    assert dict(classes.texts()) == {"local": "1", "propagated": "2", "clean": "3"}


def test_summary_and_html_show_them():
    trace = faulty()
    assert "where the step and cpu:float64 diverge" in trace.summary()
    assert "What led to the first op at fault" in trace._repr_mimebundle_()[0]["text/html"]


def test_a_trace_recorded_before_has_the_same_sections():
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 2)), torch.rand(3, 4)
    with nbkit.optrace(values="stats", name="before") as right:
        model(x)
    model[1] = nn.ReLU()
    where, chain, classes = divergence_sections(against(lambda: model(x), right))
    assert where.title == "Where the step and before diverge"
    assert where.texts()[0][:4] == ["first op at fault", "aten.relu.default", "forward", "1"]
    assert where.texts()[0][5].startswith("the right run has another op in its place")
    assert [row[:4] + row[5:] for row in chain.texts()] == [["aten.addmm.default", "1", "forward", "0", "0"]]
    assert dict(classes.texts())["local"] == "1"


def test_an_op_that_only_the_other_run_has_leads_from_nowhere():
    with nbkit.optrace(values="stats") as right:
        torch.ones(3).mul(2).exp()
    where, _ = divergence_sections(against(lambda: torch.ones(3).exp(), right))
    assert where.texts()[0][1] == "aten.mul.Tensor"


def test_a_clean_run_says_that_no_op_is_at_fault():
    where, _ = divergence_sections(against(lambda: torch.rand(3).exp()))
    assert where.texts()[0] == [
        "first op at fault",
        *[None] * 4,
        "no op adds more than its dtype and conditioning allow",
    ]


def test_each_milestone_says_its_figures():
    """The op at which half of the digits of float16 are lost, and those where the error is largest and grows most."""
    x = torch.linspace(1, 1.003, 50, dtype=torch.float16)
    trace = against(lambda: (x * 1.1 - 1.1).exp())
    where, *_ = divergence_sections(trace)
    said = {row[0]: row[5] for row in where.texts()}
    for name, label, also in (
        ("half_precision_lost_at", "half of the digits lost", ("above", "level")),
        ("largest_growth", "largest growth", ("of its inputs", "before")),
        ("largest_error", "largest error", None),
    ):
        point = trace.meta[name]
        more = f", {also[0]} {general(point[also[1]], 3)}" if also else ""
        assert said[label] == f"total error {general(point['total_error'], 3)}{more}"


def test_traces_without_another_run_have_none():
    assert divergence_sections(small_trace()) == []
    with nbkit.opdiff() as trace:
        torch.rand(3).exp()
    assert divergence_sections(trace) == []


def test_a_loaded_trace_shows_the_same(tmp_path):
    trace = faulty()
    loaded = divergence_sections(nbkit.load(trace.save(tmp_path / "trace")))
    assert [section.texts() for section in loaded] == [section.texts() for section in divergence_sections(trace)]
