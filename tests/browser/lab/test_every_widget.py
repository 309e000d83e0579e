"""Every public widget alone in a true JupyterLab and Notebook 7, small and large, and what is left without a kernel."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.jupyterlab import change_theme, in_program, run_all, running_lab
from tests.browser.lab.test_jupyterlab import BRIGHTNESS
from tests.browser.notebook.test_notebook import is_its_own

ROOT = Path(__file__).parents[3]
SET_UP = f"""\
%cd -q {ROOT}
%load_ext nbkit
import nbkit, torch
from nbkit.views.alignment.widget import AlignmentTable
from nbkit.views.live import pieces
from tests.support.diff_traces import large_diffs
from tests.support.fake_graphs import chain_graph, training_graph
from tests.support.fakes import fake_trace, small_trace, timed_trace
from tests.views.alignment.large import large_trace
from tests.views.alignment.makers import aligned_trace
one, other = torch.nn.Linear(3, 3), torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU())"""
CELLS = {
    "op_table": "nbkit.OpTable(small_trace())",
    "op_table_large": "nbkit.OpTable(fake_trace(100_000))",
    "diff_table": "nbkit.DiffTable(large_diffs(20))",
    "diff_table_large": "nbkit.DiffTable(large_diffs(100_000))",
    "alignment_table": "AlignmentTable(aligned_trace())",
    "alignment_table_large": "AlignmentTable(large_trace(100_000))",
    "flamegraph": "nbkit.FlameGraph(timed_trace())",
    "flamegraph_difference": "nbkit.FlameGraph(timed_trace(), timed_trace())",
    "flamegraph_large": "nbkit.FlameGraph(fake_trace(100_000))",  # 8 MB of columns
    "graph": "nbkit.GraphView(training_graph(1))",
    "graph_large": "nbkit.GraphView(chain_graph(30_000))",
    # Its data come as a graph of more than 2 MB has them.
    "graph_in_pieces": "pieces.INLINE_BYTES = 1\ndisplay(nbkit.GraphView(training_graph(1)))",
    "opgraph": "pieces.INLINE_BYTES = 2_000_000\n%opgraph one",
    "opgraph_against": "%opgraph one --against other",
    "trace": "timed_trace()",
}
ROWS = ".nb-body [role=row][aria-selected]"
# Whether a canvas or a table has more than its background, and the table's rows with text.
LOOK = """cell => ({
  painted: [...cell.querySelectorAll('canvas')].filter(canvas => canvas.width * canvas.height > 5000).some(canvas => {
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return new Set(new Uint32Array(data.buffer)).size > 4;
  }),
  rows: [...cell.querySelectorAll('ROWS')].filter(row => row.innerText.trim()).length,
})""".replace("ROWS", ROWS)
DRAWN = f"""index => {{
  const {{ painted, rows }} = ({LOOK})(document.querySelectorAll('.jp-Cell')[index]);
  return painted || rows;
}}"""
# Whether each output has its widget, or says that there is none.
RESTORED = """count => count === [...document.querySelectorAll('.jp-Cell')].filter(
  cell => cell.querySelector('.nbkit') || cell.textContent.includes('model not found')).length"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The notebook in JupyterLab, whose server has Notebook 7, too."""
    with running_lab(tmp_path_factory.mktemp("widgets"), (SET_UP, *CELLS.values())) as url:
        yield url


@pytest.fixture(scope="module")
def heard() -> list[str]:
    """What went wrong in the page."""
    return []


@pytest.fixture(scope="module")
def lab(chromium: Browser, url: str, heard: list[str]) -> Iterator[Page]:
    """The notebook with all its cells run, and saved."""
    page = opened(chromium, url, heard)
    run_all(page)
    last = cell(page, list(CELLS)[-1]).locator(ROWS)
    expect(last.first).to_be_visible(timeout=240_000)
    page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    yield page
    page.close()


@pytest.fixture(scope="module")
def notebook(chromium: Browser, lab: Page, url: str, heard: list[str]) -> Iterator[Page]:
    """The same notebook, opened in Notebook 7 while its kernel runs.

    ipywidgets (8.1.9) waits 2 s for a model, and never looks again for one that comes just then, on a slow machine: the
    page is opened anew, twice at most.
    """
    before = len(heard)
    for is_last in (False, False, True):
        page = opened(chromium, in_program(url, "notebook"), heard)
        page.wait_for_function(RESTORED, arg=len(CELLS), timeout=120_000)
        if is_last or not page.locator(".jupyter-widgets", has_text="model not found").count():
            break
        page.close()
        del heard[before:]
    yield page
    page.close()


@pytest.fixture(params=["lab", "notebook"])
def page(request: pytest.FixtureRequest) -> Page:
    page: Page = request.getfixturevalue(request.param)
    return page


def opened(chromium: Browser, url: str, heard: list[str]) -> Page:
    page = chromium.new_page(viewport={"width": 1200, "height": 1000})
    page.on("console", lambda message: heard.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: None if is_its_own(error) else heard.append(error.stack or str(error)))
    page.goto(url)
    page.wait_for_function("window.jupyterapp?.shell.currentWidget?.sessionContext", timeout=120_000)
    return page


def cell(page: Page, name: str) -> Locator:
    return page.locator(".jp-Cell").nth(1 + list(CELLS).index(name))


@pytest.mark.parametrize("is_light", [True, False], ids=["light", "dark"])
def test_each_is_drawn_alone(page: Page, is_light: bool) -> None:
    change_theme(page, f"JupyterLab {'Light' if is_light else 'Dark'}", light=is_light)
    for index, name in enumerate(CELLS, 1):
        page.wait_for_function(DRAWN, arg=index, timeout=60_000)
        kind = {"canvas": "painted"}.get("canvas" if cell(page, name).locator("canvas").count() else "", "rows")
        assert cell(page, name).evaluate(LOOK)[kind], name
        assert (cell(page, name).locator(".nbkit").first.evaluate(BRIGHTNESS) > 0.5) is is_light, name


def test_nothing_is_said_twice_and_nothing_went_wrong(page: Page, heard: list[str]) -> None:
    expect(page.locator(".nbkit-first")).to_have_count(len(CELLS))
    assert [each for each in page.locator(".nbkit-first").all() if each.is_visible()] == []
    expect(page.locator(".jp-OutputArea [data-mime-type*=error]")).to_have_count(0)
    assert heard == []


@pytest.mark.parametrize("program", ["jupyterlab", "notebook"])
def test_without_its_kernel_it_shows_statement_and_tables(lab: Page, url: str, chromium: Browser, program: str) -> None:
    if lab.evaluate("!!window.jupyterapp.shell.currentWidget.sessionContext.session"):
        lab.evaluate("void window.jupyterapp.commands.execute('kernelmenu:shutdown')")
        lab.wait_for_function("!window.jupyterapp.shell.currentWidget.sessionContext.session")
    page = opened(chromium, in_program(url, program), [])
    gone = page.locator(".jupyter-widgets", has_text="model not found")
    expect(gone).to_have_count(len(CELLS), timeout=120_000)
    for name in CELLS:
        expect(cell(page, name).locator(".nbkit-first table").first).to_be_visible()
    assert {each.evaluate("element => getComputedStyle(element).fontSize") for each in gone.all()} == {"0px"}
    expect(cell(page, "trace").get_by_role("table", name="Slowest ops")).to_contain_text("aten.mm.default")
    page.close()
