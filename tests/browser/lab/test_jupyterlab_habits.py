"""In a true JupyterLab: a long cell leaves no band of progress."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.jupyterlab import run_all, running_lab

CELLS = (
    """\
%load_ext nbkit
import os, time, torch
from nbkit import progress
os.environ.pop("NBKIT_PROGRESS", None)
progress.PATIENCE_S, progress.EVERY_S = 0.1, 0.1
x = torch.ones(2, 2)""",
    """\
%%optrace -q -o timed
for _ in range(10):
    x @ x
    time.sleep(0.1)""",
    'print("all ran")',
)
# Of each output area of the second cell: its height, and what it says.
OUTPUTS = """page => [...document.querySelectorAll('.jp-CodeCell')[1].querySelectorAll('.jp-OutputArea-child')].map(
  child => [child.getBoundingClientRect().height, child.textContent])"""


@pytest.fixture(scope="module")
def lab(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Page, Path]]:
    folder = tmp_path_factory.mktemp("lab")
    with running_lab(folder, CELLS) as url:
        page = chromium.new_page(viewport={"width": 1200, "height": 1000})
        page.goto(url)
        run_all(page)
        expect(page.get_by_text("all ran", exact=True)).to_be_visible(timeout=120_000)
        yield page, folder / "step.ipynb"
        page.close()


def test_progress_of_a_long_cell_leaves_no_band(lab: tuple[Page, Path]) -> None:
    page, _ = lab
    assert sum(height for height, _ in page.evaluate(OUTPUTS)) == 0
    assert page.locator('.jp-CodeCell [data-mime-type="application/vnd.jupyter.stderr"]').count() <= 1


def test_the_saved_file_has_nothing_of_it(lab: tuple[Page, Path]) -> None:
    page, path = lab
    page.keyboard.press("Control+s")
    expect(page.locator(".jp-mod-dirty")).to_have_count(0, timeout=30_000)
    outputs = json.loads(path.read_text())["cells"][1]["outputs"]
    assert [output.get("data") for output in outputs] == [{}]
