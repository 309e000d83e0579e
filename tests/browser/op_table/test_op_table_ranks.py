"""The op table of a job of ranks on a page: front end, kernel code and DuckDB together, in headless Chromium."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import nbkit
from tests.browser.table_page import TablePage
from tests.support.jobs import save_job


@pytest.fixture
def shown(page: Page, tmp_path: Path) -> TablePage:
    return TablePage(page, nbkit.load(save_job(tmp_path / "job", 3)))


def test_ranks_are_groups_that_open(shown: TablePage) -> None:
    expect(shown.page.locator(".nb-count")).to_contain_text("24 ops in 3 groups")
    assert shown.column("rank", 3) == ["2", "1", "0"]
    shown.row(1).click()
    expect(shown.row(1)).to_have_attribute("aria-expanded", "true")
    assert shown.column("op", 4)[2:] == ["aten.mm.default", "aten.addmm.default"]
    shown.row(3).click()
    expect(shown.page.locator(".nb-detail h3")).to_contain_text("aten.addmm.default (op 1 of rank 1)")
    assert shown.table.selected_op_id == 9


def test_rows_are_filtered_by_rank_as_a_number(shown: TablePage) -> None:
    shown.page.get_by_label("Group by").select_option("no groups")
    expect(shown.page.locator(".nb-count strong")).to_have_text("24 ops")
    assert shown.column("rank", 9)[7:] == ["0", "1"]
    shown.page.get_by_label("Filter rank").fill(">=2")
    expect(shown.page.locator(".nb-count strong")).to_have_text("8 of 24 ops")
    shown.header("self time").click()
    expect(shown.header("self time")).to_have_attribute("aria-sort", "descending")
    assert shown.column("self_time_us", 2) == ["262 µs", "240 µs"]


def test_the_kernel_says_how_ranks_can_be_grouped(shown: TablePage) -> None:
    options = shown.page.get_by_label("Group by").locator("option").all_inner_texts()
    assert {"rank", "op", "module", "rank + module"} <= set(options)
