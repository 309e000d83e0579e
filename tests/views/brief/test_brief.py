"""The brief: what it says first, how much fits, and what nobody has looked at."""

import json

import pytest

from nbkit.errors import OptionError
from nbkit.findings.finding import Finding, findings_frame
from nbkit.trace.trace import Trace
from nbkit.views.brief.brief import brief_of
from nbkit.views.brief.html import brief_html
from tests.support.fake_graphs import training_graph
from tests.support.fakes import small_trace

WHERE = {"module": "encoder", "source": "train.py:7", "source_text": "z = x.numpy()", "op": "aten.mm.default"}


def with_findings(*findings: Finding, **meta: object) -> Trace:
    trace = small_trace(**meta)
    trace.frames["findings"] = findings_frame(findings)
    return trace


def cut_and_slow() -> Trace:
    slow = Finding("copies", "hint", "it copies", "Copy once.", op_id=0, effect_us=1500.0, effect_bytes=2048)
    cut = Finding("no_gradient", "error", "nothing comes back", "Do not cut.", op_id=4, step=2, count=3, **WHERE)
    return with_findings(slow, Finding(**{**vars(cut), "evidence": {"calls": 5}}), verb="opcheck")


MISSING = "Next: nbkit.opcheck (NaN), nbkit.opdiff (kernels), nbkit.opaudit (gradients), nbkit.optime (time)."


def test_the_worst_stands_first_with_its_place_and_what_to_do() -> None:
    assert cut_and_slow().brief().split("\n\n")[:-1] == [
        "1 error, 1 hint, the worst first. Not checked: no result was examined.",
        "1. error, no_gradient: aten.mm.default: nothing comes back (3 of 5 calls).\n"
        "   in module encoder, in step 2, train.py:7: `z = x.numpy()`\n"
        "   Do not cut.",
        "2. hint, copies: it copies. It takes 1.50 ms and 2.00 KiB.\n   in step 0\n   Copy once.",
        MISSING.replace("nbkit.opcheck (NaN), ", ""),
    ]


def test_a_place_a_count_or_a_time_that_the_message_tells_is_not_said_again() -> None:
    message = "12 casts, which take 30 % of the step (1.5 ms), at train.py:7: `z = x.numpy()`"
    one = Finding("casts", "hint", message, "Cast once.", count=12, evidence={"calls": 12}, effect_us=1500.0, **WHERE)
    assert (
        f"1. hint, casts: aten.mm.default: {message}.\n   in module encoder\n   Cast once."
        in with_findings(one).brief()
    )


def test_the_users_own_line_stands_before_that_of_a_library() -> None:
    library = "/env/lib/python3.12/site-packages/einops/_backends.py:93"
    found = Finding("nan", "error", "NaN", "", op_id=0, source=library, source_text="x", own_source="net.py:7")
    assert "   net.py:7 (in einops/_backends.py:93: `x`)" in with_findings(found).brief()


def test_a_finding_about_several_places_counts_no_calls_of_one() -> None:
    one = Finding("loop", "hint", "so", "", count=3, evidence={"calls": 1})
    assert "1. hint, loop: so." in with_findings(one).brief()
    assert with_findings(one).brief().startswith("1 hint.\n\n")


def test_the_step_is_said_where_there_are_several_or_it_is_not_the_first() -> None:
    first, later = (Finding("nan", "error", "so", "", op_id=1, step=step) for step in (0, 3))
    assert "in step" not in with_findings(first).brief()
    assert "in step 3" in with_findings(later).brief()
    both = with_findings(first, later).brief()
    assert both.index("in step 0") < both.index("in step 3")


def test_hints_stand_by_what_they_cost() -> None:
    findings = [Finding(f"rule{cost:g}", "hint", "so", "", effect_us=cost) for cost in (5.0, 900.0, 70.0)]
    text = with_findings(*findings).brief()
    assert text.index("rule900") < text.index("rule70:") < text.index("rule5:")


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_what_does_not_fit_is_counted(form) -> None:
    trace = with_findings(*[Finding("rule", "error", "word " * 20, "") for _ in range(100)])
    text = trace.brief(tokens=300, form=form)
    assert len(text) <= 300 * 3.5
    told = text.count("rule")
    assert told > 2
    assert f"{100 - told} further findings in trace.findings." in text
    assert "1. " not in trace.brief(tokens=1, form=form)
    assert "100 further findings" in trace.brief(tokens=1, form=form)


def test_a_clean_trace_says_what_was_looked_at_and_an_unjudged_one_what_was_not() -> None:
    clean = small_trace(verb="opcheck", checked_tensors=14).brief()
    assert clean.startswith("Nothing wrong found. In 14 results no NaN, Inf or underflow began.\n\n")
    assert "nbkit.opcheck" not in clean and "nbkit.opdiff" in clean
    assert small_trace(verb="optrace").brief().split("\n\n")[:-1] == ["6 ops in 2 modules, 64 parameters.", MISSING]
    assert "nbkit.optime" not in small_trace(verb="optime").brief()


def test_the_first_line_says_why_it_ended_early_and_the_last_what_ran() -> None:
    last = small_trace(verb="opcheck", name="mine").brief().split("\n")[-1]
    assert last == "opcheck mine: 6 aten ops, 160 µs, cpu, torch 2.13.0."
    error = {"type": "ValueError", "message": "no.", "op_id": None, "source": None}
    assert small_trace(complete=False, error=error).brief().split("\n")[0] == "Incomplete: ValueError: no."


def test_a_graph_was_not_run_so_nothing_is_missing() -> None:
    brief = brief_of(training_graph(1))
    assert (brief.entries, brief.missing) == ((), ())
    assert brief_html(brief, 5) == '<div class="nbkit-brief"><p>53 ops.</p></div>'


def test_markdown_has_the_same_sentences_and_shows_names_as_they_are() -> None:
    odd = Finding("a_rule", "warning", "x_y <b>*z*</b> in `a_b * c` costs $5$", "Use [it].", module="m_1")
    text = with_findings(odd).brief(form="markdown")
    assert (
        "1. **warning**, `a_rule`: x\\_y \\<b\\>\\*z\\*\\</b\\> in `a_b * c` costs \\$5\\$.  \n"
        "   in module m\\_1  \n   Use \\[it\\]."
    ) in text
    assert "`" not in with_findings(Finding("r", "hint", "one ` alone", "")).brief(form="markdown").split("one ")[1][2:]


def test_json_has_the_rows_of_the_findings() -> None:
    data = json.loads(cut_and_slow().brief(form="json"))
    assert [finding["rule"] for finding in data["findings"]] == ["no_gradient", "copies"]
    first = data["findings"][0]
    assert (first["op_id"], first["step"], first["count"], first["calls"], first["effect_us"]) == (4, 2, 3, 5, None)
    assert (first["source"], first["source_text"]) == ("train.py:7", "z = x.numpy()")
    assert data["verdict"][0] == "1 error, 1 hint, the worst first."
    assert {"question": "where the time goes", "verb": "nbkit.optime"} in data["not_looked_at"]
    assert (data["further_findings"], json.loads(cut_and_slow().brief(1, form="json"))["further_findings"]) == (0, 2)


def test_an_unknown_form_is_one_sentence() -> None:
    with pytest.raises(OptionError, match="There is no form 'jsn' of a brief; did you mean 'json'"):
        small_trace().brief(form="jsn")


def test_html_escapes_names_and_leads_to_the_rows_of_a_page() -> None:
    hostile = Finding("<i>", "error", "</p><script>`<b>`", "&", op_id=4, **WHERE)
    html = brief_html(brief_of(with_findings(hostile, Finding("r", "hint", "so", ""))), 1, "t1")
    assert "<script" not in html and "<i>" not in html and "<code>&lt;b&gt;</code>" in html
    assert 'href="#t1-op_table" data-trace="t1" data-widget="op_table" data-value="4"' in html
    assert "1 further finding in trace.findings." in html
    assert "<a " not in brief_html(brief_of(with_findings(hostile)), 1)


def test_a_mismatch_leads_to_the_row_of_the_diff_table() -> None:
    one = Finding("mismatch", "error", "so", "", op_id=4, evidence={"diffs_rows": [7, 9]})
    assert 'data-widget="diff_table" data-value="7"' in brief_html(brief_of(with_findings(one)), 1, "t1")


def test_lines_of_a_summary_keep_code_whole() -> None:
    text = "loss = torch.nn.functional.cross_entropy(model(batch.inputs), batch.targets, label_smoothing=0.1)"
    one = Finding("nan", "error", "word " * 40, "", **{**WHERE, "source_text": text})
    lines = with_findings(one).summary().splitlines()
    assert any(text in line for line in lines)
    (first,) = (number for number, line in enumerate(lines) if line.startswith("1. "))
    assert all(line.startswith("   ") and len(line) <= 100 for line in lines[first + 1 : first + 3])


def test_what_an_audit_of_a_script_could_not_do_and_what_it_did_is_said() -> None:
    meta = {"limits": ["Step 3 was not run again."], "recordings": [{"verb": "opdiff"}, {"verb": "optime"}]}
    trace = small_trace(verb="audit", checked_tensors=3, **meta)
    assert trace.brief().split("\n\n")[:-1] == [
        "Nothing wrong found. In 3 results no NaN, Inf or underflow began.",
        "Step 3 was not run again. Next: nbkit.opaudit (gradients).",
    ]
    assert json.loads(trace.brief(form="json"))["limits"] == meta["limits"]


def test_a_check_of_one_training_step_that_found_nothing_wrong_says_where_to_look_further() -> None:
    later = (
        "One step was checked, and faults often begin later: watch several with %%opaudit or "
        "`python -m nbkit audit SCRIPT --step STEP`. Next: "
    )
    meta = {"verb": "opcheck", "checked_tensors": 14}
    hint = with_findings(Finding("inf", "hint", "so", ""), **meta)
    assert all(trace.brief().split("\n\n")[-2].startswith(later) for trace in (small_trace(**meta), hint))
    summary = small_trace(**meta).summary()
    assert "`python -m nbkit audit SCRIPT --step STEP`" in summary and "faults often begin later" in summary
    several, forward = small_trace(**meta), small_trace(**meta)
    several.ops.loc[several.ops.index[-1], ["phase", "step"]] = ["backward", 2]
    forward.ops["phase"] = "forward"
    others = [
        small_trace(verb="opdiff", checked_tensors=14),
        small_trace(verb="opcheck"),
        small_trace(**meta, complete=False),
        with_findings(Finding("nan", "error", "so", ""), **meta),
        several,
        forward,
    ]
    assert not any("faults often begin later" in trace.brief() for trace in others)


def test_hints_at_what_may_be_wrong_stand_before_those_at_what_could_be_saved() -> None:
    slow = Finding("copies", "hint", "it copies", "", effect_us=1500.0)
    large = Finding("kept", "hint", "it keeps", "", effect_bytes=4096)
    odd = Finding("shown_next", "hint", "it shows", "")
    _, *found = with_findings(slow, large, odd, verb="opcheck", checked_tensors=3).brief().split("\n\n")
    assert [text.partition(":")[0] for text in found[:3]] == ["1. hint, shown_next", "2. hint, copies", "3. hint, kept"]


def test_what_has_hints_is_not_called_right() -> None:
    odd = Finding("shown_next", "hint", "it shows", "")
    verdict, *_ = with_findings(odd, verb="opcheck", checked_tensors=3).brief().split("\n\n")
    assert verdict == "No errors and no warnings. 1 hint. 3 results checked for NaN, Inf and underflow."
