"""One selection in a report: links of the summary, flame graph, op table and diff table."""

from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from nbkit.views.report.opreport import opreport
from tests.browser.linked_page import drag_range
from tests.support.diff_traces import faulty_trace
from tests.support.fakes import small_trace, timed_trace


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    return opreport(timed_trace(name="step"), faulty_trace(), small_trace(), path=path, values=True)


@pytest.fixture
def opened(page: Page, report: Path) -> Page:
    page.goto(report.as_uri())
    return page


def chosen(page: Page, panel: str) -> Locator:
    """The name of the selected row's op; in a group it stands behind the op's number."""
    return page.locator(f"#{panel} .nb-row[aria-selected=true] [data-name=op]")


def test_a_link_of_the_summary_selects_its_op(opened: Page) -> None:
    opened.locator("#t1 .nbkit-summary").get_by_role("link", name="aten.add_.Tensor").first.click()
    expect(chosen(opened, "t1-op_table")).to_have_text("#7 aten.add_.Tensor")
    expect(opened.locator("#t1-op_table .nb-detail h3")).to_contain_text("#7")
    expect(opened.locator("#t1-op_table")).to_be_in_viewport()
    expect(opened.locator("#t1-flamegraph .nb-detail")).to_contain_text("aten.add_.Tensor")


def test_a_row_leads_back_to_its_finding_and_others_to_none(opened: Page) -> None:
    opened.locator(".nbkit-front").get_by_role("link", name="see aten.addmm.default").first.click()
    expect(chosen(opened, "t2-diff_table")).to_contain_text("aten.addmm.default")
    back = opened.locator("#t2").get_by_role("button", name="The finding about this row").first
    back.click()
    expect(opened.locator(".nbkit-front li").filter(has_text="aten.addmm.default").first).to_be_in_viewport()
    opened.locator("#t2-op_table .nb-body").get_by_text("aten.gelu.default").click()
    expect(back).to_be_hidden()


def test_a_link_leads_to_a_trace_that_was_not_drawn_yet(opened: Page) -> None:
    opened.locator(".nbkit-front").get_by_role("link", name="see aten.addmm.default").last.click()
    expect(opened.locator(".nb-row[aria-selected=true] [data-name=op]").first).to_contain_text("aten.addmm.default")


def test_a_difference_selects_its_op_and_the_other_way_round(opened: Page) -> None:
    opened.locator(".nbkit-front").get_by_role("link", name="see aten.addmm.default").first.click()
    expect(chosen(opened, "t2-diff_table")).to_contain_text("aten.addmm.default")
    expect(chosen(opened, "t2-op_table")).to_have_text("aten.addmm.default")
    expect(opened.locator("#t2-diff_table .nb-plot > svg")).to_have_count(3)
    opened.locator("#t2-op_table .nb-body").get_by_text("aten.gelu.default").click()
    expect(chosen(opened, "t2-diff_table")).to_contain_text("aten.gelu.default")


def test_a_frame_limits_the_op_table_to_what_is_inside(opened: Page) -> None:
    flame, table = opened.locator("#t1-flamegraph"), opened.locator("#t1-op_table")
    flame.get_by_role("button", name="Table", exact=True).click()
    flame.get_by_role("region", name="Frames as a table").get_by_role("button", name="fc (Linear)").first.click()
    expect(table.locator(".nb-count strong")).to_have_text("4 of 9 ops in 4 groups")
    table.get_by_role("button", name="fc (Linear) (4 ops)").click()
    expect(table.locator(".nb-count strong")).to_have_text("9 ops in 7 groups")


def test_a_range_limits_the_op_table_to_its_calls_until_it_is_cleared(opened: Page) -> None:
    flame, table = opened.locator("#t1-flamegraph"), opened.locator("#t1-op_table")
    drag_range(opened, flame, 0.275, 0.38)
    expect(flame.get_by_role("region", name="Selected range")).to_contain_text("5 calls, 5 cut by an edge")
    expect(table.locator(".nb-count strong")).to_have_text("5 of 9 ops in 5 groups")
    limit = table.get_by_role("button", name="in range 27.5 µs to 38.0 µs (5 ops)")
    expect(limit).to_be_visible()
    flame.get_by_role("button", name="Clear the range").click()
    expect(table.locator(".nb-count strong")).to_have_text("9 ops in 7 groups")
    drag_range(opened, flame, 0.275, 0.38)
    limit.click()
    expect(table.locator(".nb-count strong")).to_have_text("9 ops in 7 groups")
    expect(flame.get_by_role("region", name="Selected range")).to_be_hidden()
    expect(opened.locator("#t3-op_table .nb-within")).to_be_hidden()


def test_traces_have_selections_of_their_own(opened: Page) -> None:
    opened.locator("#t1 .nbkit-summary").get_by_role("link", name="aten.mm.default").first.click()
    opened.locator("#t3 .nbkit-summary").get_by_role("link", name="aten.addmm.default").first.click()
    expect(chosen(opened, "t1-op_table")).to_contain_text("aten.mm.default")
    expect(chosen(opened, "t3-op_table")).to_have_text("aten.addmm.default")
