"""The brief: what it says first, how much fits, and what nobody has looked at."""

from nbkit.findings.finding import Finding, findings_frame
from nbkit.trace.trace import Trace
from tests.fakes import small_trace

WHERE = {"module": "encoder", "source": "train.py:7", "source_text": "z = x.numpy()", "op": "aten.mm.default"}


def with_findings(*findings: Finding, **meta: object) -> Trace:
    trace = small_trace(**meta)
    trace.frames["findings"] = findings_frame(findings)
    return trace


def test_the_worst_stands_first_with_its_place_and_what_to_do() -> None:
    slow = Finding("copies", "hint", "it copies", "Copy once.", op_id=0, effect_us=1500.0, effect_bytes=2048)
    cut = Finding("no_gradient", "error", "nothing comes back", "Do not cut.", op_id=4, step=2, count=3, **WHERE)
    cut = Finding(**{**vars(cut), "evidence": {"calls": 5}})
    text = with_findings(slow, cut, verb="opcheck").brief()
    assert text.split("\n\n")[1:] == [
        "1 error, 1 hint, the worst first.",
        "1. error, no_gradient: aten.mm.default: nothing comes back (3 of 5 calls).\n"
        "   in encoder, in step 2, train.py:7: `z = x.numpy()`\n"
        "   Do not cut.",
        "2. hint, copies: it copies. It takes 1.50 ms and 2.00 KiB.\n   Copy once.",
        "Not looked at: NaN, Inf and lost precision (nbkit.opcheck); results against a reference (nbkit.opdiff); "
        "parameters, gradients and dataflow of training (nbkit.opaudit); where the time goes (nbkit.optime).",
    ]


def test_a_finding_about_several_places_counts_no_calls_of_one() -> None:
    one = Finding("loop", "hint", "so", "", count=3, evidence={"calls": 1})
    assert "1. hint, loop: so." in with_findings(one).brief()
    assert "\n\n1 hint.\n\n" in with_findings(one).brief()


def test_hints_stand_by_what_they_cost() -> None:
    findings = [Finding(f"rule{cost:g}", "hint", "so", "", effect_us=cost) for cost in (5.0, 900.0, 70.0)]
    text = with_findings(*findings).brief()
    assert [text.index(f"rule{cost}") for cost in (900, 70, 5)] == sorted(
        text.index(f"rule{cost}") for cost in (900, 70, 5)
    )


def test_what_does_not_fit_is_counted() -> None:
    trace = with_findings(*[Finding("rule", "error", "word " * 20, "") for _ in range(100)])
    text = trace.brief(tokens=300)
    assert len(text) <= 300 * 3.5
    told = text.count("error, rule")
    assert told > 2
    assert f"{100 - told} further findings in trace.findings." in text
    assert "1. error" not in trace.brief(tokens=1) and "100 further findings" in trace.brief(tokens=1)


def test_a_clean_trace_says_what_was_looked_at_and_an_unjudged_one_that_nothing_was() -> None:
    clean = small_trace(verb="opcheck", checked_tensors=14).brief()
    assert "Nothing wrong found in what was looked at: NaN, Inf and lost precision." in clean
    assert "nbkit.opcheck" not in clean and "nbkit.opdiff" in clean
    assert "Nothing was judged." in small_trace(verb="optrace").brief()
    assert "nbkit.optime" not in small_trace(verb="optime").brief()


def test_the_first_line_says_what_ran() -> None:
    first = small_trace(verb="opcheck", name="mine").brief().split("\n")[0]
    assert first == "opcheck mine: 6 aten ops, 160 µs, cpu, torch 2.13.0."
