"""Where a report is read: a sandbox, paper, a browser without scripts, a dark or narrow window, with keys alone."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from nbkit.views.report.opreport import opreport
from tests.support.diff_traces import faulty_trace
from tests.support.fakes import small_trace, timed_trace

SUMMARY = "Where the time went"
# What is shown and cuts or scrolls what is in it.
CUTTING = """() => [...document.querySelectorAll("body *")].filter((element) => {
  const { overflowX, overflowY } = getComputedStyle(element);
  const isShown = element.getClientRects().length > 0 && !element.closest("svg");
  return isShown && [overflowX, overflowY].some((one) => one !== "visible");
}).map(({ outerHTML }) => outerHTML.slice(0, 80))"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    return opreport(timed_trace(name="step"), faulty_trace(), small_trace(), path=path)


def test_it_works_in_a_sandbox_that_allows_scripts_alone(page: Page, report: Path) -> None:
    host = report.with_name("host.html")
    host.write_text(f'<iframe sandbox="allow-scripts" width="900" height="850" src="{report.name}"></iframe>')
    page.goto(host.as_uri())
    frame = page.frame_locator("iframe")
    frame.locator("#t1 .nbkit-summary").get_by_role("link", name="aten.mm.default").first.click()
    expect(frame.locator("#t1-op_table .nb-row[aria-selected=true]")).to_contain_text("aten.mm.default")
    expect(frame.locator("#t1-flamegraph canvas").first).to_be_visible()


def test_on_paper_the_twins_stand_in_for_the_widgets_and_nothing_scrolls(page: Page, report: Path) -> None:
    page.goto(report.as_uri())
    expect(page.locator("#t1-flamegraph canvas").first).to_be_visible()
    page.emulate_media(media="print", color_scheme="dark")
    expect(page.locator("#t1-flamegraph canvas").first).to_be_hidden()
    expect(page.locator("#t1-flamegraph .nbkit-static-view svg")).to_be_visible()
    expect(page.locator("#t2-diff_table").get_by_role("table", name="Worst differences")).to_be_visible()
    assert page.evaluate(CUTTING) == []
    colors = page.evaluate(
        "(({ backgroundColor, color }) => [backgroundColor, color])(getComputedStyle(document.body))"
    )
    assert colors == ["rgb(255, 255, 255)", "rgb(31, 35, 40)"]


def test_without_scripts_summary_pictures_and_tables_remain(chromium: Browser, report: Path) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    expect(page.get_by_text(SUMMARY)).to_have_count(3)
    expect(page.locator("#t1-flamegraph .nbkit-static-view svg")).to_be_visible()
    for panel, table in (("t1-op_table", "Slowest calls"), ("t2-diff_table", "Worst differences")):
        expect(page.locator(f"#{panel}").get_by_role("table", name=table)).to_be_visible()
    expect(page.locator(".nbkit-live:visible")).to_have_count(0)
    page.locator("#t1 .nbkit-summary").get_by_role("link", name="aten.mm.default").first.click()
    expect(page.locator("#t1-op_table")).to_be_in_viewport()
    context.close()


@pytest.mark.parametrize(("scheme", "background"), [("light", "rgb(255, 255, 255)"), ("dark", "rgb(22, 22, 22)")])
def test_page_and_widgets_follow_the_system(page: Page, report: Path, scheme: str, background: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.goto(report.as_uri())
    expect(page.locator("#t1-op_table .nbkit")).to_have_css("background-color", background)
    expect(page.locator("body")).to_have_css("background-color", background)
    expect(page.locator("#t1-totals .nbkit-static")).to_have_css("background-color", background)


def test_the_first_600_pixels_say_what_ran_how_long_what_is_wrong_and_where(page: Page, tmp_path: Path) -> None:
    page.set_viewport_size({"width": 1100, "height": 600})
    page.goto(opreport(timed_trace(name="faulty"), faulty_trace(), path=tmp_path / "page.html").as_uri())
    step = page.locator(".nbkit-front > section").first
    expect(step.get_by_text("100 µs per step, the median of 5 runs")).to_be_in_viewport()
    expect(step.get_by_role("heading", name="Slowest modules, self time")).to_be_in_viewport()
    page.goto(opreport(faulty_trace(), path=tmp_path / "page.html").as_uri())
    verdicts = page.get_by_role("list", name="Verdicts").get_by_role("link")
    assert verdicts.all_inner_texts() == ["2 mismatches in 16 tensors"]
    for part in (
        verdicts,
        page.get_by_role("link", name="see aten.addmm.default").last,
        page.get_by_role("heading", name="Phases"),
    ):
        expect(part.first).to_be_in_viewport()


def test_keys_alone_lead_from_a_statement_to_the_widgets(page: Page, report: Path) -> None:
    page.goto(report.as_uri())
    link = page.locator("#t1 .nbkit-summary").get_by_role("link", name="aten.mm.default").first
    link.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#t1-op_table .nb-row[aria-selected=true]")).to_contain_text("aten.mm.default")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('section')?.id") == "t1-op_table"
