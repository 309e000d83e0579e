"""Groups of the op table, its columns, and its rows taken along."""

import csv
from pathlib import Path

import pandas as pd
import pytest
import torch
from playwright.sync_api import Page, expect

import nbkit
from tests.browser.table_page import TablePage
from tests.support.fakes import fake_trace, small_trace, timed_trace


@pytest.fixture
def small(page: Page) -> TablePage:
    return TablePage(page, small_trace())


@pytest.fixture
def layers(page: Page) -> TablePage:
    return TablePage(page, fake_trace(2000, layers=4))


def group_by(shown: TablePage, label: str) -> None:
    shown.page.get_by_label("Group by").select_option(label)
    shown.page.locator(".nb-grid[role='treegrid']").wait_for()


def test_a_timed_step_opens_by_op_the_slowest_first(page: Page) -> None:
    trace = timed_trace()
    shown = TablePage(page, trace)
    expect(page.locator(".nb-count")).to_contain_text("9 ops in 7 groups")
    sums = trace.ops.groupby("op", sort=False)["self_time_us"].sum().sort_values(ascending=False, kind="stable")
    assert shown.column("op", 3) == sums.index[:3].tolist()
    assert shown.header("self time").get_attribute("aria-sort") == "descending"
    page.get_by_label("Group by").select_option("no groups")
    expect(page.locator(".nb-count strong")).to_have_text("9 ops")
    assert shown.column("op", 1) == ["step"]


def test_a_group_opens_and_closes_by_mouse_and_key(layers: TablePage) -> None:
    group_by(layers, "op")
    calls = int(layers.column("calls", 1)[0])
    name = layers.column("op", 1)[0]
    layers.row(0).click()
    expect(layers.row(0)).to_have_attribute("aria-expanded", "true")
    expect(layers.row(1)).to_have_attribute("aria-level", "2")
    assert layers.row(1).locator("[data-name='op']").inner_text().endswith(name)
    assert layers.page.locator(".nb-grid").get_attribute("aria-rowcount") == str(6 + calls + 2)
    assert layers.table.selected_op_id is None
    layers.page.keyboard.press("Enter")
    expect(layers.row(0)).to_have_attribute("aria-expanded", "false")
    assert layers.page.locator(".nb-grid").get_attribute("aria-rowcount") == str(6 + 2)


def test_rows_inside_a_group_are_selected_as_others(layers: TablePage) -> None:
    group_by(layers, "op")
    layers.row(0).click()
    expect(layers.row(1)).to_have_attribute("aria-level", "2")
    layers.row(1).click()
    slowest = layers.table.source.trace.ops
    first = slowest[slowest["op"] == slowest.groupby("op")["self_time_us"].sum().idxmax()]
    expect(layers.page.locator(".nb-detail h3")).to_contain_text(f"#{first['self_time_us'].idxmax()} ")
    assert layers.table.selected_op_id == first["self_time_us"].idxmax()


def test_an_op_that_is_selected_elsewhere_opens_its_group(layers: TablePage) -> None:
    group_by(layers, "source line")
    layers.select_from_python(1234)
    row = layers.page.locator(".nb-body .nb-row[aria-selected='true']")
    expect(row).to_contain_text("#1234 ")
    expect(row).to_have_attribute("aria-level", "2")


def stacked_trace() -> nbkit.Trace:
    """A timed step of a model with three equal blocks."""
    model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU()) for _ in range(3)))
    with nbkit.optime() as trace:
        model(torch.randn(2, 8)).sum().backward()
    return trace


def test_repeated_layers_are_one_row_with_the_spread_of_the_layers(page: Page) -> None:
    trace = stacked_trace()
    shown = TablePage(page, trace)
    group_by(shown, "layer")
    ops = trace.ops.dropna(subset="module")
    sums = ops.assign(layer=ops["module"].str.replace(r"^\d+", "*", regex=True).replace("", "(root)"))
    sums = sums.groupby(["layer", "module"])["self_time_us"].sum().groupby("layer").agg(["size", "min", "max"])
    groups = shown.table.groups
    assert groups is not None
    found = groups.set_index("layer").loc[sums.index]
    assert found["instances"].to_dict() == sums["size"].to_dict() == {"(root)": 1, "*": 3, "*.0": 3, "*.1": 3}
    for name in ("min", "max"):
        assert found[name].tolist() == pytest.approx(sums[name].tolist())
    rows = [shown.column(name, len(groups)) for name in ("layer", "instances")]
    assert dict(zip(*rows, strict=True))["*.0"] == "3"


def test_what_is_outside_modules_is_told_apart(small: TablePage) -> None:
    group_by(small, "module")
    names = set(small.column("location", small.rows().count()))
    assert names >= {"fc", "(root)", "(backward outside modules)", "(loss and other forward ops)"}


def test_filters_and_search_leave_the_groups_of_what_they_leave(layers: TablePage) -> None:
    group_by(layers, "op")
    layers.filter("op").fill("mm")
    layers.page.locator(".nb-count", has_text="in 2 groups").wait_for()
    assert sorted(layers.column("op", 2)) == ["aten.addmm.default", "aten.mm.default"]
    assert layers.page.get_by_label("Filter calls").count() == 0
    layers.page.get_by_role("button", name="Clear filters").first.click()
    layers.page.locator(".nb-count", has_text="in 6 groups").wait_for()


def test_a_filter_over_a_sum_leaves_out_groups_and_not_the_calls_in_them(page: Page) -> None:
    shown = TablePage(page, timed_trace())
    # The two calls of add_ take 10 and 5 us.
    shown.filter("self time").fill(">12us")
    page.locator(".nb-count", has_text="in 4 groups").wait_for()
    assert shown.column("op", 4)[-1] == "aten.add_.Tensor"
    assert shown.column("self_fraction", 4)[-1] == "12.0 %"
    shown.filter("%").fill(">30 %")
    page.locator(".nb-count", has_text="in 2 groups").wait_for()
    assert sorted(shown.column("op", 2)) == ["aten.mm.default", "torch.autograd.backward"]


def test_a_second_column_sorts_what_the_first_leaves_equal(small: TablePage) -> None:
    small.header("phase").click()
    small.header("self time").click(modifiers=["Shift"])
    expect(small.header("self time")).to_have_attribute("aria-sort", "descending")
    ops = small.table.source.trace.ops
    wanted = ops.sort_values("self_time_us", ascending=False, kind="stable").sort_values("phase", kind="stable")
    expect(small.row(0)).to_contain_text(wanted["op"].iloc[0])
    assert small.table.filtered.index.tolist() == wanted.index.tolist()


def test_columns_hide_and_come_back(small: TablePage) -> None:
    small.page.locator(".nb-columns summary").click()
    small.page.get_by_role("checkbox", name="module").uncheck()
    expect(small.header("module")).to_have_count(0)
    assert small.column("phase", 1) == ["forward"]
    small.page.keyboard.press("Escape")
    expect(small.page.get_by_role("checkbox", name="module")).to_be_hidden()
    small.header("self time").click()
    expect(small.header("module")).to_have_count(0)
    small.page.locator(".nb-columns summary").click()
    small.page.get_by_role("checkbox", name="module").check()
    expect(small.header("module")).to_be_visible()


def test_a_column_is_made_wider_by_mouse_and_key(small: TablePage) -> None:
    op = small.header("op")
    before = op.bounding_box()
    assert before is not None
    edge = before["x"] + before["width"] - 3
    small.page.mouse.move(edge, before["y"] + 10)
    small.page.mouse.down()
    small.page.mouse.move(edge + 60, before["y"] + 10)
    small.page.mouse.up()
    assert op.evaluate("at => at.offsetWidth") == round(before["width"]) + 60
    assert op.get_attribute("aria-sort") == "none"
    op.focus()
    small.page.keyboard.press("Shift+ArrowLeft")
    assert op.evaluate("at => at.offsetWidth") == round(before["width"]) + 44


def test_rows_are_saved_as_they_are_listed(layers: TablePage, tmp_path: Path) -> None:
    layers.filter("op").fill("mm")
    layers.wait_for_count(" of ")
    with layers.page.expect_download() as download:
        layers.page.get_by_role("button", name="CSV").click()
    file = tmp_path / "saved.csv"
    download.value.save_as(file)
    saved = pd.read_csv(file)
    wanted = layers.table.filtered
    assert download.value.suggested_filename == "op_table.csv"
    assert saved["op_id"].tolist() == wanted["op_id"].tolist()
    assert saved["op"].tolist() == wanted["op"].tolist()
    assert saved["self_time_us"].tolist() == pytest.approx(wanted["self_time_us"].tolist())


def test_groups_are_saved_without_the_rows_inside(layers: TablePage, tmp_path: Path) -> None:
    group_by(layers, "op")
    layers.row(0).click()
    expect(layers.row(1)).to_have_attribute("aria-level", "2")
    with layers.page.expect_download() as download:
        layers.page.get_by_role("button", name="CSV").click()
    download.value.save_as(tmp_path / "saved.csv")
    with (tmp_path / "saved.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["op"] for row in rows] == layers.table.groups["op"].tolist()  # type: ignore[index]


def test_rows_are_copied_with_tabs(small: TablePage) -> None:
    # A page that was not opened over https has no clipboard of its own.
    keep = "document.execCommand = () => { window.copied = document.activeElement.value; return true; }"
    small.page.evaluate(keep)
    small.page.get_by_role("button", name="Copy", exact=True).click()
    expect(small.page.locator(".nb-told")).to_have_text("8 rows copied.")
    lines = small.page.evaluate("window.copied").splitlines()
    assert lines[0].split("\t")[:3] == ["op_id", "op", "self_time_us"]
    assert len(lines) == 1 + 8
