"""One true Notebook 7 run: a trace is its widget, a click is linked and reaches the kernel, the console stays clean."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Error, Locator, Page, expect

from tests.browser.conftest import needed
from tests.browser.jupyterlab import in_kernel, run_all, running_lab, wait_for_kernel

ROOT = Path(__file__).parents[3]
CELLS = (
    f"""\
%cd -q {ROOT}
%load_ext nbkit
import nbkit
from tests.support.fakes import timed_trace

trace = timed_trace()
trace""",
    "table = nbkit.OpTable(trace)\ntable",
)


@pytest.fixture(scope="module")
def heard() -> list[str]:
    """What the page's console has of errors."""
    return []


@pytest.fixture(scope="module")
def page(chromium: Browser, tmp_path_factory: pytest.TempPathFactory, heard: list[str]) -> Iterator[Page]:
    """The notebook with its cells run and both tables filled."""
    found = importlib.util.find_spec("notebook")
    needed(found and found.origin, "Notebook 7 (in the extra `test`)")

    def note(message: ConsoleMessage) -> None:
        if message.type == "error":
            heard.append(f"{message.text} {message.location}")

    with running_lab(tmp_path_factory.mktemp("notebook"), CELLS, "notebook") as url:
        page = chromium.new_page(viewport={"width": 1200, "height": 1800})
        page.on("console", note)
        page.on("pageerror", lambda error: None if is_its_own(error) else heard.append(error.stack or str(error)))
        page.goto(url)
        run_all(page)
        expect(rows(page.locator(".nbkit-op-table").nth(1)).first).to_be_visible(timeout=120_000)
        yield page
        page.close()


def is_its_own(error: Error) -> bool:
    """Whether only the program's own files are on an error's stack: settings of JupyterLab that it lacks raise one."""
    places = [line for line in (error.stack or "").splitlines() if line.strip().startswith("at ")]
    return bool(places) and all("/static/notebook/" in place or "Promise.all" in place for place in places)


def rows(table: Locator) -> Locator:
    return table.locator(".nb-body [role=row][aria-selected]")


def composite(page: Page) -> Locator:
    return page.locator(".nbkit-composite")


def test_it_is_notebook_7_and_a_trace_is_its_widget(page: Page) -> None:
    assert page.evaluate("window.jupyterapp.name") == "Jupyter Notebook"
    expect(composite(page)).to_have_count(1)
    expect(composite(page).get_by_text("9 frames", exact=True)).to_be_visible()
    expect(composite(page).locator(".nb-count strong")).to_contain_text("9 ops")
    expect(page.locator(".jp-OutputArea [data-mime-type*=error]")).to_have_count(0)


def test_a_selected_frame_limits_the_table_beside_it(page: Page) -> None:
    flame, count = composite(page).locator(".nbkit-flamegraph"), composite(page).locator(".nb-count strong")
    flame.get_by_role("button", name="Table", exact=True).click()
    flame.get_by_role("region", name="Frames as a table").get_by_role("button", name="torch.autograd.backward").click()
    expect(composite(page).get_by_role("button", name="show all ops again")).to_contain_text("torch.autograd.backward")
    expect(count).to_contain_text("1 of 9 ops")


def test_a_clicked_op_reaches_the_kernel(page: Page) -> None:
    assert in_kernel(page, "table.selected_op_id") == "None"
    table = page.locator(".nbkit-op-table").nth(1)
    table.get_by_label("Group by").select_option(index=0)
    expect(table.get_by_role("grid", name="Ops")).to_be_visible()  # one of groups is a treegrid
    row = rows(table).nth(2)
    row.click()
    expect(row).to_have_attribute("aria-selected", "true")
    selected = wait_for_kernel(page, "table.selected_op_id")
    assert int(selected) in range(9)
    name = in_kernel(page, f"trace.ops.op[{selected}]").strip("'")
    expect(table.get_by_role("region", name="Selected op")).to_contain_text(f"#{selected} {name}")


def test_nothing_went_wrong_in_the_page(page: Page, heard: list[str]) -> None:
    assert heard == []
