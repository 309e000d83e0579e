"""A finding and its row lead to each other in a notebook's widget."""

from playwright.sync_api import Page, expect

from nbkit.findings.finding import Finding, findings_frame
from nbkit.trace.trace import Trace
from nbkit.views.widgets import differences_and_ops, ops_alone
from tests.browser.composite_page import CompositePage
from tests.support.diff_frames import make_diffs
from tests.support.fakes import fake_trace, small_trace


def with_findings(trace: Trace, *findings: Finding) -> Trace:
    return Trace({**trace.frames, "findings": findings_frame(findings)}, trace.meta)


def test_the_table_opens_at_the_finding_and_both_lead_to_each_other(page: Page) -> None:
    first, second = (Finding("nan", "error", f"So it is {op_id}", "", op_id=op_id) for op_id in (7_000, 30))
    shown = CompositePage(page, ops_alone(with_findings(fake_trace(9_000, verb="opcheck"), first, second)))
    row = page.locator(".nb-row[aria-selected='true']:visible")
    expect(row).to_contain_text("7000")
    chosen = page.locator("li.nbkit-chosen")
    expect(chosen).to_contain_text("So it is 7000")
    page.get_by_role("listitem").filter(has_text="So it is 30").get_by_role("button", name="see the op").click()
    expect(row).to_contain_text("30")
    expect(chosen).to_contain_text("So it is 30")
    assert shown.widget.op_table_selected_op_id == 30
    back = page.get_by_role("button", name="The finding about this row")
    page.evaluate("document.querySelector('.nbkit-above').style.marginBottom = '3000px'")
    back.click()
    expect(chosen).to_be_in_viewport()


def test_a_row_without_a_finding_leads_to_none(page: Page) -> None:
    CompositePage(page, ops_alone(with_findings(small_trace(verb="opcheck"), Finding("r", "error", "so", "", op_id=3))))
    expect(page.locator("li.nbkit-chosen")).to_have_count(1)
    page.locator(".nb-body .nb-row:visible").first.click()
    expect(page.locator("li.nbkit-chosen")).to_have_count(0)
    expect(page.locator(".nbkit-back")).to_be_hidden()


def test_a_mismatch_leads_to_its_difference(page: Page) -> None:
    trace = small_trace(verb="opdiff")
    trace.frames["diffs"] = make_diffs({"op_id": 3}, {"op_id": 2, "status": "mismatch"})
    finding = Finding("mismatch", "error", "so", "", op_id=2, evidence={"diffs_rows": [1]})
    shown = CompositePage(page, differences_and_ops(with_findings(trace, finding)))
    assert shown.widget.diff_table_selected_row == 1
    expect(page.get_by_role("region", name="Selected difference")).to_be_visible()
    page.get_by_role("button", name="Close").first.click()
    page.get_by_role("button", name="see the op").click()
    expect(page.get_by_role("region", name="Selected difference")).to_be_visible()
