"""A true JupyterLab run of a timed step: flame graph and op table, also while the kernel is busy with other cells."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.jupyterlab import in_kernel, run_all, running_lab

ROOT = Path(__file__).parents[3]
# From the repository's root, so that source lines read the same on every machine.
CELLS = (
    f"""\
%cd -q {ROOT}
%load_ext nbkit
import time, torch
from sample_models.llama import LLAMA_SMALL, Llama

torch.set_num_threads(1)
model = Llama(LLAMA_SMALL)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
tokens = torch.randint(LLAMA_SMALL.vocab_size, (4, 65))""",
    """\
%%optime -w 1 -o step --name "LLaMA step"
loss = model(tokens[:, :-1], tokens[:, 1:])
loss.backward()
optimizer.step()
optimizer.zero_grad()""",
)
# The last cell keeps the kernel busy until the test has seen what it waits for.
BUSY = """\
from pathlib import Path
for _ in range(2000):
    time.sleep(0.1)
    if Path({!r}).exists():
        break"""
# The second where JupyterLab calls the busy kernel idle, as was seen on a loaded machine.
WAITING = re.compile("Waiting for the kernel, which is busy|Still waiting for the kernel. It may be busy")


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that ends the last cell."""
    return tmp_path_factory.mktemp("busy") / "seen"


@pytest.fixture(scope="module")
def page(chromium: Browser, tmp_path_factory: pytest.TempPathFactory, seen: Path) -> Iterator[Page]:
    """The notebook in JupyterLab, its cells running."""
    with running_lab(tmp_path_factory.mktemp("lab"), (*CELLS, BUSY.format(str(seen)))) as url:
        page = chromium.new_page(viewport={"width": 1370, "height": 2000})
        page.goto(url)
        run_all(page)
        yield page
        page.close()


def pair(page: Page) -> Locator:
    """The flame graph and the op table below the magic's cell."""
    return page.locator(".jp-Cell").nth(1).locator(".nbkit-composite")


def table(page: Page) -> Locator:
    return pair(page).locator(".nbkit-op-table")


def test_the_table_says_that_the_kernel_is_busy_and_fills_in_later(page: Page, seen: Path) -> None:
    expect(table(page).locator(".nb-waiting")).to_contain_text(WAITING, timeout=120_000)
    assert table(page).locator(".nb-problem").is_hidden()
    assert table(page).locator("[role=row][aria-selected]").count() == 0
    seen.touch()
    expect(table(page).locator("[role=row][aria-selected]").first).to_be_visible(timeout=30_000)
    expect(table(page).locator(".nb-waiting")).to_be_hidden()


def test_the_flamegraph_shows_the_step(page: Page) -> None:
    count = int(in_kernel(page, "len(step.ops)"))
    expect(pair(page).get_by_text(f"{count:,} frames", exact=True)).to_be_visible()


def test_a_range_is_selected_and_panned_past_without_selecting_cells(page: Page) -> None:
    stage = pair(page).get_by_role("tree", name="Frames")
    box = stage.bounding_box()
    assert box is not None
    for keys, (start, end) in (((), (0.2, 0.6)), (("Shift",), (0.6, 0.3))):
        for key in keys:
            page.keyboard.down(key)
        page.mouse.move(box["x"] + box["width"] * start, box["y"] + 60)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * end, box["y"] + 60, steps=4)
        page.mouse.up()
        for key in keys:
            page.keyboard.up(key)
    sums = pair(page).get_by_role("region", name="Selected range")
    expect(sums.get_by_role("heading")).to_contain_text("of the step")
    limit = table(page).get_by_role("button", name="show all ops again")
    expect(limit).to_contain_text("in range")
    stage.press("Shift+ArrowDown")
    stage.press("Shift+ArrowDown")
    assert page.locator(".jp-Cell.jp-mod-multiSelected").count() == 0
    for _ in range(4):
        stage.press("Escape")
    expect(sums).to_be_hidden()
    # The kernel hears of both, and the table shows all ops again.
    expect(limit).to_be_hidden()
    stage.press("0")


def test_a_screenshot_is_kept(page: Page) -> None:
    # The picture in the README is a copy of this one.
    pair(page).get_by_role("searchbox", name="Search frames").fill(r"layers\.1 \(")
    pair(page).get_by_role("button", name="Next match").click()
    pair(page).get_by_role("tree", name="Frames").press(" ")
    expect(table(page).get_by_role("button", name="show all ops again")).to_contain_text("layers.1 (")
    pair(page).get_by_role("searchbox", name="Search frames").fill("")
    pair(page).get_by_role("searchbox", name="Search frames").blur()
    page.mouse.move(0, 0)
    page.wait_for_timeout(500)
    (ROOT / "out").mkdir(exist_ok=True)
    pair(page).screenshot(path=ROOT / "out/flamegraph.png")
    assert (ROOT / "out/flamegraph.png").stat().st_size > 20_000
