"""The diff table in a browser: filters, sliders, the detail of a row, the copied script, and many or hostile rows."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from nbkit.trace.trace import Trace
from tests.browser.diff_page import DiffPage
from tests.browser.work import work
from tests.processes import PYTHON
from tests.support.diff_traces import faulty_trace, hostile_diffs, large_diffs

ROOT = Path(__file__).parents[3]


@pytest.fixture
def faulty(page: Page) -> DiffPage:
    return DiffPage(page, faulty_trace())


@pytest.fixture(scope="module")
def many() -> Trace:
    return large_diffs(100_000)


@pytest.fixture
def large(page: Page, many: Trace) -> DiffPage:
    return DiffPage(page, many)


def test_the_worst_stand_first_and_are_counted(faulty: DiffPage) -> None:
    faulty.wait_for_count("16 tensors")
    assert faulty.column("status", 3) == ["mismatch", "mismatch", "ok"]
    assert faulty.column("op", 2) == ["aten.addmm.default"] * 2
    expect(faulty.diff.get_by_role("status").first).to_have_text("16 tensors shown, 2 of them mismatched")


def test_verdict_phase_dtype_and_module_are_chosen(large: DiffPage) -> None:
    page = large.page
    large.diff.get_by_label("verdicts", exact=True).select_option("mismatch")
    large.wait_for_count("16,666 of 100,000 tensors")
    large.diff.get_by_label("phases", exact=True).select_option("backward")
    large.diff.get_by_label("dtypes", exact=True).select_option("bfloat16")
    expect(large.row(0)).to_contain_text("backward")
    assert set(large.column("dtype", 8)) == {"bfloat16"}
    large.diff.get_by_role("treeitem", name="blocks").click()
    expect(large.row(0).locator("[data-name='module']")).to_contain_text("blocks.")
    page.locator("#diff").get_by_role("button", name="Clear filters").click()
    large.wait_for_count("100,000 tensors")


def test_op_text_is_filtered_and_a_column_sorted(faulty: DiffPage) -> None:
    faulty.diff.get_by_label("Filter op", exact=True).fill("*mm*")
    faulty.wait_for_count("5 of 16 tensors")
    faulty.diff.get_by_role("columnheader", name="max abs error").click()
    expect(faulty.row(0).locator("[data-name='rank']")).to_have_text("1")
    faulty.diff.get_by_role("columnheader", name="max abs error").click()
    expect(faulty.row(4).locator("[data-name='rank']")).to_have_text("1")


def test_a_slider_leaves_the_rows_above_its_threshold(faulty: DiffPage) -> None:
    slider = faulty.slider("noise ratio")
    slider.focus()
    for _ in range(3):
        faulty.page.keyboard.press("ArrowLeft")
    expect(slider).to_have_attribute("aria-valuetext", "any")
    faulty.page.keyboard.press("End")
    faulty.wait_for_count("1 of 16 tensors")
    expect(faulty.diff.locator(".nb-slider .nb-threshold").first).to_have_text("≥ 2.6e+4")
    faulty.page.keyboard.press("Home")
    faulty.wait_for_count("16 tensors")


def test_a_histogram_above_a_slider_marks_the_threshold_and_what_is_left_out(faulty: DiffPage) -> None:
    picture = faulty.diff.get_by_role("img", name="noise ratio:")
    expect(picture).to_have_accessible_name(
        re.compile(r"on a logarithmic axis, most from .*, 2 above the threshold 8$")
    )
    bars, line = picture.locator(".nb-histogram span"), picture.locator(".nb-spread-threshold")
    expect(bars).to_have_count(30)
    expect(faulty.diff.locator(".nb-spread-threshold:visible")).to_have_count(1)
    slider = faulty.slider("noise ratio")
    slider.focus()
    faulty.page.keyboard.press("End")
    faulty.wait_for_count("1 of 16 tensors")
    expect(picture.locator("[data-below]")).to_have_count(29)
    axis, thumb, mark = picture.locator(".nb-spread-axis").bounding_box(), slider.bounding_box(), line.bounding_box()
    assert axis and thumb and mark
    # The axis ends where the middle of the thumb does.
    assert abs(thumb["x"] + thumb["width"] - 8 - axis["x"] - axis["width"]) < 1
    assert axis["x"] < mark["x"] < axis["x"] + axis["width"]
    faulty.page.keyboard.press("Home")
    faulty.wait_for_count("16 tensors")


def test_a_row_opens_plots_and_worst_elements_and_selects_its_op(faulty: DiffPage) -> None:
    faulty.row(0).click()
    faulty.wait_for_plots()
    expect(faulty.detail.get_by_role("img", name="Histogram of |actual - expected|: 288 elements")).to_be_visible()
    expect(faulty.detail.get_by_role("img", name="Heat map of the largest errors")).to_be_visible()
    worst = faulty.detail.get_by_role("region", name="Worst elements").get_by_role("row")
    expect(worst.nth(1)).to_contain_text("[4, 6]-1.89035487-1.871638530.01870.01")
    expect(worst).to_have_count(21)
    selected = faulty.page.locator("#table .nb-body [aria-selected='true']")
    expect(selected).to_contain_text("aten.addmm.default")
    assert faulty.table.selected_op_id == faulty.differences.source.trace.diffs["op_id"][0]


def test_an_op_selected_below_selects_its_difference(faulty: DiffPage) -> None:
    op_id = int(faulty.differences.source.trace.diffs["op_id"][2])
    faulty.page.locator(f"#table .nb-body .nb-row[aria-rowindex='{op_id + 3}']").click()
    expect(faulty.row(1)).to_have_attribute("aria-selected", "true")
    expect(faulty.detail).to_contain_text(f"#{op_id} aten.addmm.default")


def test_a_plot_is_read_with_pointer_and_keys(faulty: DiffPage) -> None:
    faulty.row(0).click()
    faulty.wait_for_plots()
    cell = faulty.detail.locator(".nb-plot-cell").nth(0)
    cell.hover()
    said = faulty.detail.locator(".nb-plot-value").nth(2)
    expect(said).to_have_text(re.compile(r"row 0, column 0: .+"))
    faulty.detail.get_by_role("img", name="Histogram").focus()
    faulty.page.keyboard.press("End")
    faulty.page.keyboard.press("ArrowLeft")
    expect(faulty.detail.locator(".nb-plot-value").nth(0)).to_have_text(re.compile(r".+ to .+: \d+ elements?"))
    expect(faulty.detail).to_be_visible()


def test_a_plot_is_zoomed_by_dragging_and_by_keys_and_shown_whole_again(faulty: DiffPage) -> None:
    faulty.row(0).click()
    faulty.wait_for_plots()
    plot, cells = faulty.detail.get_by_role("img", name="Heat map"), faulty.detail.locator(".nb-plot-cell")
    cells.first.wait_for(state="attached")
    whole = cells.count()
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    x, y, mouse = box["x"] + box["width"] / 2, box["y"] + 60, faulty.page.mouse
    mouse.move(x, y)
    mouse.down()
    mouse.move(x + 40, y + 60)
    mouse.up()
    assert 0 < cells.count() < whole
    plot.dblclick()
    expect(cells).to_have_count(whole)
    plot.focus()
    faulty.page.keyboard.press("+")
    assert 0 < cells.count() < whole
    faulty.page.keyboard.press("0")
    expect(cells).to_have_count(whole)


def test_the_copied_script_prints_the_difference_of_the_row(faulty: DiffPage, tmp_path: Path) -> None:
    faulty.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    faulty.row(0).click()
    faulty.detail.get_by_role("button", name="Copy script").click()
    expect(faulty.detail.get_by_role("status").filter(has_text="Copied.")).to_be_visible()
    script = faulty.detail.get_by_label("Script that runs the op alone").input_value()
    (tmp_path / "alone.py").write_text(script)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([*PYTHON, tmp_path / "alone.py"], env=environment, capture_output=True, text=True)
    error = faulty.differences.source.trace.diffs["max_abs_error"][0]
    assert done.stderr == ""
    assert f"largest difference: {error:.9g} at [4, 6]" in done.stdout
    assert f"That is what the trace says ({error:.9g})." in done.stdout


def test_a_row_without_values_says_so_and_how_to_keep_them(faulty: DiffPage) -> None:
    faulty.row(2).click()
    # Which op comes third depends on the rounding of the machine's kernels.
    message = re.compile(r"it is not a mismatch; record with keep_ops='aten\.\w+\.default' to keep")
    expect(faulty.detail).to_contain_text(message)
    expect(faulty.detail.get_by_role("button", name="Copy script")).to_have_count(0)
    expect(faulty.detail.locator(".nb-plot")).to_have_count(0)


def test_hostile_names_stay_text(page: Page) -> None:
    shown = DiffPage(page, hostile_diffs())
    shown.row(0).click()
    expect(shown.detail.get_by_role("heading", level=3)).to_contain_text("<img src=x onerror=alert(1)>\\u202e")
    expect(shown.detail).to_contain_text("<script>alert(2)</script>")
    assert page.locator("#diff img, #diff script, #diff b").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 1000


def test_a_hundred_thousand_rows_stay_fluent(large: DiffPage) -> None:
    assert large.page.locator("#diff .nb-body .nb-row").count() < 40
    large.slider("noise ratio").focus()
    keys = [lambda key=key: large.page.keyboard.press(key) for key in ("End", "ArrowLeft", "ArrowLeft")]
    filtered = large.diff.locator(".nb-count strong", has_text=" of 100,000 tensors")
    assert work(large.page, "slider", *keys, filtered.wait_for) < 3
    large.slider("noise ratio").press("Home")
    large.wait_for_count("100,000 tensors")
    large.diff.get_by_label("Filter op", exact=True).press("ArrowDown")
    large.page.keyboard.press("Control+End")
    expect(large.row(99_999).locator("[data-name='rank']")).to_have_text("100000")
    assert max(large.sizes) < 50_000


def test_closing_the_widget_takes_everything_away(faulty: DiffPage) -> None:
    faulty.row(0).click()
    faulty.wait_for_plots()
    faulty.page.evaluate("window.cleanUps.diff()")
    assert faulty.page.locator("#diff *").count() == 0


def test_equal_mismatches_are_one_row_that_opens_to_its_calls(page: Page) -> None:
    shown = DiffPage(page, faulty_trace(), is_grouped=True)
    expect(shown.diff.locator(".nb-count strong")).to_have_text(re.compile(r"^16 tensors in \d+ groups$"))
    diffs = shown.differences.source.trace.diffs
    wrong = diffs[diffs["status"] == "mismatch"]
    group = shown.row(0)
    assert [group.locator(f"[data-name='{name}']").inner_text() for name in ("op", "status", "calls", "of")] == [
        wrong["op"].iloc[0],
        "mismatch",
        str(len(wrong)),
        str((diffs["op"] == wrong["op"].iloc[0]).sum()),
    ]
    assert group.get_attribute("aria-expanded") == "false"
    group.click()
    expect(shown.row(1)).to_have_attribute("aria-level", "2")
    expect(shown.row(1)).to_contain_text(f"#{wrong['op_id'].iloc[0]} {wrong['op'].iloc[0]}")
    shown.row(1).click()
    assert shown.differences.selected_row in wrong.index
    expect(shown.diff.locator(".nb-detail")).to_be_visible()
