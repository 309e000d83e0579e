"""The op table on a page with a stand-in model: front end and kernel code together, in headless Chromium."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from nbkit.trace.trace import Trace
from tests.browser.table_page import TablePage
from tests.support.fakes import fake_trace, make_ops, make_trace, small_trace

Open = Callable[[Trace], TablePage]


@pytest.fixture
def show(page: Page) -> Open:
    return lambda trace: TablePage(page, trace)


def test_header_shows_counts_phases_cost_and_what_is_missing(show: Open) -> None:
    shown = show(small_trace(name="step", skipped={"vmap": 3}, filtered_ops=2, filters={"exclude_ops": "view"}))
    figures = shown.page.get_by_role("definition").all_inner_texts()
    assert figures == ["8", "6", "2", "160 µs", "about 64.0 µs (40.0 %)", "cpu", "2.13.0"]
    phases = shown.page.get_by_role("list", name="Phases: self time of aten ops").get_by_role("listitem")
    assert phases.all_text_contents() == [
        "forward48.0 µs3 aten ops",
        "backward70.0 µs2 aten ops",
        "optimizer2.00 µs1 aten op",
    ]
    notes = shown.page.get_by_role("list", name="Notes").get_by_role("listitem")
    assert notes.all_inner_texts() == ["left out by filters: 2 ops (exclude_ops=view)"]
    shown.page.get_by_text("What is not shown").click()
    assert shown.page.locator(".nb-skipped li").all_inner_texts() == ["skipped 3: vmap"]
    expect(shown.page.locator(".nb-incomplete")).to_have_count(0)


def test_incomplete_trace_says_so_with_its_error(show: Open) -> None:
    error = {"type": "ValueError", "message": "bad", "op_id": 7, "source": "Cell In[7], line 3"}
    shown = show(small_trace(complete=False, error=error))
    expect(shown.page.locator(".nb-incomplete")).to_have_text(
        "INCOMPLETE ValueError: bad (at op 7, Cell In[7], line 3)"
    )


def test_rows_come_in_call_order_with_missing_values_marked(show: Open) -> None:
    shown = show(small_trace())
    assert shown.column("op_id", 8) == [str(n) for n in range(8)]
    assert shown.column("module", 4) == ["fc", "fc", "(root)", "null"]
    assert shown.page.get_by_role("grid").get_attribute("aria-rowcount") == "10"


def test_click_on_a_header_sorts_and_a_second_one_turns_it_around(show: Open) -> None:
    shown = show(small_trace())
    shown.header("self time").click()
    expect(shown.header("self time")).to_have_attribute("aria-sort", "descending")
    assert shown.column("self_time_us", 3) == ["62.0 µs", "40.0 µs", "20.0 µs"]
    shown.header("self time").click()
    expect(shown.header("self time")).to_have_attribute("aria-sort", "ascending")
    assert shown.column("self_time_us", 2) == ["2.00 µs", "3.00 µs"]


def test_filters_of_two_columns_hold_together(show: Open) -> None:
    shown = show(small_trace())
    shown.filter("op").fill("aten.*")
    shown.wait_for_count("6 of 8 ops")
    shown.filter("self time").fill(">=0.04ms")
    shown.wait_for_count("2 of 8 ops")
    assert shown.column("op", 2) == ["aten.addmm.default", "aten.mm.default"]
    assert shown.page.get_by_role("status").inner_text() == "2 of 8 ops shown, self time 102 µs"


def test_bad_filter_is_marked_and_explained_and_leaves_the_rows(show: Open) -> None:
    shown = show(small_trace())
    shown.filter("self time").fill("fast")
    expect(shown.filter("self time")).to_have_attribute("aria-invalid", "true")
    expect(shown.page.locator(".nb-filter-error")).to_contain_text("self time: 'fast' is not a number; write >5")
    expect(shown.rows()).to_have_count(8)


def test_search_finds_in_op_module_and_source(show: Open) -> None:
    shown = show(small_trace())
    shown.page.get_by_role("searchbox").fill("fc train.py:7")
    shown.wait_for_count("3 of 8 ops")  # its backward op stands at its line, too
    shown.page.get_by_role("button", name="Clear filters").click()
    shown.wait_for_count("8 ops")
    assert shown.page.get_by_role("searchbox").input_value() == ""


def test_search_without_a_match_says_so(show: Open) -> None:
    shown = show(small_trace())
    shown.page.get_by_role("searchbox").fill("conv")
    shown.wait_for_count("0 of 8 ops")
    expect(shown.page.get_by_text("No op matches.")).to_be_visible()
    expect(shown.rows()).to_have_count(0)


def test_level_and_phase_choices_filter(show: Open) -> None:
    shown = show(small_trace())
    shown.page.get_by_label("Level", exact=True).select_option("aten")
    shown.page.get_by_label("Phase", exact=True).select_option("backward")
    shown.wait_for_count("2 of 8 ops")
    assert shown.column("op", 2) == ["aten.threshold_backward.default", "aten.mm.default"]


def test_module_tree_filters_by_what_is_below(show: Open) -> None:
    shown = show(fake_trace(900, layers=4))
    blocks = shown.page.get_by_role("treeitem", name="blocks")
    blocks.locator(".nb-twist").click()
    expect(shown.page.get_by_role("treeitem", name="2 Linear")).to_have_count(0)
    blocks.locator(".nb-twist").click()
    shown.page.get_by_role("treeitem", name="2 Linear").click()
    shown.wait_for_count("207 of 900 ops")
    assert set(shown.column("module", 10)) == {"blocks.2.ln1", "blocks.2.att.key"}
    shown.page.get_by_role("treeitem", name="All ops").click()
    shown.wait_for_count("900 ops")


def test_ops_outside_modules_can_be_chosen(show: Open) -> None:
    shown = show(small_trace())
    shown.page.get_by_role("treeitem", name="Outside modules").click()
    shown.wait_for_count("3 of 8 ops")
    assert shown.column("op_id", 3) == ["3", "4", "7"]


def test_selected_row_shows_its_tensors_and_links(show: Open) -> None:
    shown = show(small_trace())
    shown.row(2).click()
    detail = shown.page.get_by_role("region", name="Selected op")
    expect(detail.get_by_role("heading", level=3)).to_have_text("#2 aten.relu.default")
    for title, link in (
        ("Inputs come from", "#1 aten.addmm.default"),
        ("Outputs go to", "#3 aten.sum.default"),
        ("Gradient computed by", "#5 aten.threshold_backward.default"),
    ):
        expect(detail.locator(".nb-link-list", has_text=title).get_by_role("button", name=link)).to_be_visible()
    expect(detail.locator("tbody tr")).to_have_count(2)
    expect(detail.locator(".nb-fields")).to_contain_text("train.py:8")


def test_links_jump_to_the_other_op(show: Open) -> None:
    shown = show(small_trace())
    shown.row(2).click()
    shown.page.get_by_role("button", name="#1 aten.addmm.default").click()
    expect(shown.page.get_by_role("heading", level=3)).to_have_text("#1 aten.addmm.default")
    expect(shown.row(1)).to_have_attribute("aria-selected", "true")
    expect(shown.page.locator("td", has_text="fc.weight")).to_be_visible()
    assert shown.focused()["role"] == "h3"


def test_a_selected_op_that_the_filters_hide_can_be_brought_back(show: Open) -> None:
    shown = show(small_trace())
    shown.filter("op").fill("relu")
    shown.wait_for_count("1 of 8 ops")
    shown.select_from_python(6)
    expect(shown.page.get_by_text("This op is hidden by the filters.")).to_be_visible()
    shown.page.locator(".nb-hidden-note button").click()
    expect(shown.row(6)).to_have_attribute("aria-selected", "true")
    expect(shown.page.get_by_text("This op is hidden by the filters.")).to_be_hidden()


def test_selection_goes_both_ways(show: Open) -> None:
    shown = show(fake_trace(5000))
    shown.row(3).click()
    shown.page.get_by_role("heading", name="#3").wait_for()
    assert shown.table.selected_op_id == 3
    shown.select_from_python(4321)
    expect(shown.row(4321)).to_have_attribute("aria-selected", "true")
    shown.page.get_by_role("button", name="Close details").click()
    expect(shown.page.get_by_role("region", name="Selected op")).to_be_hidden()
    assert shown.table.selected_op_id is None


def test_hostile_names_are_only_text(show: Open) -> None:
    name = "</ScRiPt><img src=x onerror=window.broken=1><script>window.broken=1</script>\u202e\n"
    row = {"op": name, "module": name, "model": name, "source": name, "phase": name, "device": name}
    shown = show(make_trace(make_ops(row, {}), name=name, skipped={name: 1}))
    shown.row(0).click()
    shown.page.get_by_role("heading", level=3).wait_for()
    expect(shown.row(0).locator("[data-name='op']")).to_contain_text("<img src=x onerror=window.broken=1>")
    expect(shown.row(0).locator("[data-name='op']")).to_contain_text("\\u202e\\n")
    assert shown.page.evaluate("window.broken") is None
    assert shown.page.locator("img").count() == 0


def test_trace_without_ops_shows_an_empty_table(show: Open) -> None:
    shown = show(make_trace(make_ops()))
    expect(shown.page.get_by_text("No op matches.")).to_be_visible()
    shown.wait_for_count("0 ops")


def test_clean_up_leaves_neither_elements_nor_listeners(show: Open) -> None:
    shown = show(small_trace())
    assert shown.page.evaluate("window.listenerCount()") == 3
    shown.page.evaluate("window.cleanUp()")
    assert shown.page.evaluate("window.listenerCount()") == 0
    assert shown.page.locator("#host > *").count() == 0


STATUS = "(status) => { window.model.widget_manager = { kernel: { status } }; }"


def test_a_busy_kernel_is_waited_for_until_its_answer_comes(show: Open, page: Page) -> None:
    shown = show(small_trace())
    page.evaluate(STATUS, "busy")
    shown.is_kernel_alive = False
    page.get_by_label("Search op, module and source").fill("relu")
    expect(page.get_by_text("Waiting for the kernel, which is busy.")).to_be_visible()
    expect(page.locator(".nb-problem")).to_be_hidden()
    shown.answer_late()
    expect(page.get_by_text("1 of 8 ops").first).to_be_visible()
    expect(page.locator(".nb-waiting")).to_be_hidden()


def test_only_a_dead_kernel_is_a_problem(show: Open, page: Page) -> None:
    shown = show(small_trace())
    page.evaluate(STATUS, "dead")
    shown.is_kernel_alive = False
    page.get_by_label("Search op, module and source").fill("relu")
    expect(page.get_by_role("alert").filter(has_text="The kernel no longer runs")).to_be_visible()
    expect(page.locator(".nb-waiting")).to_be_hidden()


def test_error_of_the_kernel_is_shown(show: Open) -> None:
    shown = show(small_trace())
    shown.page.evaluate("window.model.set('selected_op_id', 999)")
    expect(shown.page.locator(".nb-problem")).to_have_text("OptionError: There is no op 999; the last one is 7.")
