"""A true marimo run: a trace, a widget and a wrapped widget are drawn, linked, and reach the kernel."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import needed
from tests.browser.jupyterlab import free_port, wait_until_up
from tests.browser.lab.test_jupyterlab import BRIGHTNESS

ROOT = Path(__file__).parents[3]
NOTEBOOK = """\
import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo
    import nbkit
    from tests.support.fakes import timed_trace

    trace = timed_trace()
    return mo, nbkit, trace


@app.cell
def _(trace):
    trace
    return


@app.cell
def _(nbkit, trace):
    nbkit.FlameGraph(trace)
    return


@app.cell
def _(mo, nbkit, trace):
    table = mo.ui.anywidget(nbkit.OpTable(trace))
    table
    return (table,)


@app.cell
def _(mo, table):
    mo.md(f"selected: {table.value.get('selected_op_id')}")
    return


if __name__ == "__main__":
    app.run()
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    found = importlib.util.find_spec("marimo")
    needed(found and found.origin, "marimo (in the extra `test`)")
    folder = tmp_path_factory.mktemp("marimo")
    (folder / "step.py").write_text(NOTEBOOK)
    port, log = free_port(), folder / "server.log"
    # Nothing of the developer's own settings, nor of those that marimo would write.
    own = {name: str(folder / "home") for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")}
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "marimo", "-q", "-y", "run", "step.py", "--headless", "--no-token"]
    with log.open("w") as stream:
        server = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)],
            cwd=folder, env=os.environ | own | {"PYTHONPATH": path}, stdout=stream, stderr=stream,
        )  # fmt: skip
        try:
            wait_until_up(f"http://127.0.0.1:{port}/health", server, log)
            yield f"http://127.0.0.1:{port}/"
        finally:
            server.terminate()
            server.wait(20)


@pytest.fixture(scope="module")
def heard() -> tuple[list[str], list[str]]:
    """What went wrong in the page, and what it asked for."""
    return [], []


@pytest.fixture(scope="module")
def page(chromium: Browser, url: str, heard: tuple[list[str], list[str]]) -> Iterator[Page]:
    """The app with its tables filled, in a light theme on a dark system."""
    context = chromium.new_context(viewport={"width": 1200, "height": 1800}, color_scheme="dark")
    page = context.new_page()
    page.on("pageerror", lambda error: heard[0].append(str(error)))
    page.on("request", lambda request: heard[1].append(request.url))
    page.goto(url)
    expect(rows(page.locator(".nbkit-op-table").nth(1)).first).to_be_visible(timeout=120_000)
    yield page
    context.close()


def rows(table: Locator) -> Locator:
    return table.locator(".nb-body [role=row][aria-selected]")


def composite(page: Page) -> Locator:
    return page.locator(".nbkit-composite")


def test_a_trace_is_its_widget_with_brief_flame_graph_and_table(page: Page) -> None:
    expect(composite(page)).to_have_count(1)
    expect(composite(page).get_by_text("per step (")).to_be_visible()
    expect(composite(page).get_by_text("9 frames", exact=True)).to_be_visible()
    expect(composite(page).locator(".nb-count strong")).to_contain_text("9 ops")


def test_a_widget_alone_is_drawn(page: Page) -> None:
    expect(page.locator(".nbkit-flamegraph")).to_have_count(2)
    expect(page.locator(".nbkit-flamegraph").nth(1).get_by_text("9 frames", exact=True)).to_be_visible()


def test_a_drawn_widget_stands_in_the_place_of_its_static_view(page: Page) -> None:
    expect(page.locator(".nbkit-first")).to_have_count(2)  # the third is wrapped by the user
    for first in page.locator(".nbkit-first").all():
        expect(first).to_be_hidden()


def test_an_exported_notebook_has_statement_and_tables(tmp_path: Path) -> None:
    (tmp_path / "step.py").write_text(NOTEBOOK)
    command = [sys.executable, "-m", "marimo", "-y", "export", "ipynb", "step.py", "--include-outputs", "-o", "x.ipynb"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    cells = json.loads((tmp_path / "x.ipynb").read_text(encoding="utf-8"))["cells"]
    pages = ["".join(output["data"].get("text/html", "")) for cell in cells for output in cell.get("outputs", ())]
    tables = [page for page in pages if "<caption>Slowest ops</caption>" in page and "aten.mm.default" in page]
    assert len(tables) == 2


def test_a_selected_frame_limits_the_table_beside_it(page: Page) -> None:
    flame, count = composite(page).locator(".nbkit-flamegraph"), composite(page).locator(".nb-count strong")
    flame.get_by_role("button", name="Table", exact=True).click()
    flame.get_by_role("region", name="Frames as a table").get_by_role("button", name="torch.autograd.backward").click()
    expect(composite(page).get_by_role("button", name="show all ops again")).to_contain_text("torch.autograd.backward")
    expect(count).to_contain_text("1 of 9 ops")
    composite(page).get_by_role("button", name="show all ops again").click()
    expect(count).to_contain_text("9 ops in")


def test_a_selected_op_reaches_the_cells_below(page: Page) -> None:
    table = page.locator(".nbkit-op-table").nth(1)
    table.get_by_label("Group by").select_option(index=0)
    cell = rows(table).nth(2).locator("[data-name=op_id]")
    expect(cell).not_to_be_empty()  # a click on a row of before is lost
    rows(table).nth(2).click()
    op_id = cell.inner_text()
    expect(page.get_by_text(f"selected: {op_id}")).to_be_visible()
    expect(table.get_by_role("region", name="Selected op")).to_be_visible()


def test_the_widgets_follow_marimo_and_not_the_system(page: Page) -> None:
    for element in (composite(page).locator(".nbkit-static"), page.locator(".nbkit-op-table").first):
        assert element.evaluate(BRIGHTNESS) > 0.8


def test_nothing_went_wrong_and_no_other_machine_was_asked(page: Page, url: str, heard) -> None:
    errors, asked = heard
    assert errors == []
    assert [each for each in asked if not each.startswith((url, "data:", "blob:"))] == []
