"""A true JupyterLab run of %%opdiff and %%opcheck: what they found stands above the op table, and a row opens."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.jupyterlab import change_theme, in_kernel, run_all, running_lab
from tests.browser.lab.test_jupyterlab import BRIGHTNESS, cell
from tests.processes import PYTHON

ROOT = Path(__file__).parents[3]
# From the repository's root, so that source lines read the same on every machine.
CELLS = (
    f"""\
%cd -q {ROOT}
%load_ext nbkit
import nbkit, torch
from sample_models.llama import LLAMA_TINY, Llama

torch.manual_seed(0)
device = nbkit.SimulatedDevice([nbkit.Fault("aten.silu", "relative_error", nth_call=2)])
model = Llama(LLAMA_TINY).to("sim")
tokens = torch.randint(LLAMA_TINY.vocab_size, (2, 17)).to("sim")""",
    """\
%%opdiff -o found --name "LLaMA step, simulated device"
model(tokens[:, :-1], tokens[:, 1:]).backward()""",
    """\
%%opcheck -o bad --name "logarithm of zero"
x = torch.tensor([1.0, 0.0, 2.0], requires_grad=True)
(x.log() * 0).sum().backward()""",
)
# How far a text's color is from white: 0 is white, 1 is black.
DARKNESS = """element => {
  const [red, green, blue] = getComputedStyle(element).color.match(/[0-9.]+/g).map(Number);
  return 1 - (red + green + blue) / 765;
}"""


@pytest.fixture(scope="module")
def page(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The notebook in JupyterLab, all its cells run and the worst difference opened."""
    with running_lab(tmp_path_factory.mktemp("lab"), CELLS) as url:
        page = chromium.new_page(viewport={"width": 1370, "height": 2400})
        page.goto(url)
        run_all(page)
        expect(rows(page, 1).first).to_be_visible(timeout=120_000)
        expect(rows(page, 2).first).to_be_visible(timeout=120_000)
        rows(page, 1).first.click()  # the group of the one mismatch
        rows(page, 1).nth(1).click()
        yield page
        page.close()


def rows(page: Page, place: int) -> Locator:
    """The rows of the first table below a cell."""
    return cell(page, place).locator(".nb-grid").first.locator("[role=row][aria-selected]")


def detail(page: Page) -> Locator:
    return cell(page, 1).get_by_role("region", name="Selected difference")


def test_the_planted_op_is_the_one_mismatch_and_stands_first(page: Page) -> None:
    expect(rows(page, 1).first).to_contain_text("aten.silu.default")
    expect(
        cell(page, 1).get_by_role("status").filter(has_text=re.compile("tensors in .* shown, 1 of them mismatched"))
    ).to_be_attached()
    assert in_kernel(page, "found.meta['mismatches']") == "1"


def test_its_row_opens_three_plots_without_the_network(page: Page) -> None:
    asked = list[str]()
    page.on("request", lambda request: asked.append(request.url))
    expect(detail(page).locator(".nb-plot > svg").nth(2)).to_be_attached(timeout=30_000)
    assert [url for url in asked if "127.0.0.1" not in url and not url.startswith(("blob:", "data:"))] == []


def test_its_op_is_selected_in_the_op_table_below(page: Page) -> None:
    selected = cell(page, 1).locator(".nbkit-op-table .nb-body [aria-selected=true]")
    expect(selected).to_contain_text("aten.silu.default")


def test_the_copied_script_prints_the_difference_of_the_row(page: Page, tmp_path: Path) -> None:
    detail(page).get_by_role("button", name="Copy script").click()
    area = detail(page).get_by_label("Script that runs the op alone")
    expect(area).to_be_visible()
    (tmp_path / "alone.py").write_text(area.input_value())
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([*PYTHON, tmp_path / "alone.py"], env=environment, capture_output=True, text=True)
    error = float(in_kernel(page, "found.diffs.query(\"status == 'mismatch'\")['max_abs_error'].item()"))
    assert done.stderr == ""
    assert f"That is what the trace says ({error:.9g})." in done.stdout


@pytest.mark.parametrize(("theme", "is_light"), [("JupyterLab Dark", False), ("JupyterLab Light", True)])
def test_findings_above_the_op_table_follow_the_theme(page: Page, theme: str, is_light: bool) -> None:
    change_theme(page, theme, light=is_light)
    table = cell(page, 2).locator(".nbkit-composite .nbkit-static")
    expect(table).to_contain_text("aten.log.default")
    for text in (table.locator("td").first, cell(page, 1).locator(".nb-grid").first):
        assert (text.evaluate(BRIGHTNESS) > 0.5) is is_light
        assert (text.evaluate(DARKNESS) > 0.5) is is_light


def test_findings_and_op_table_are_in_line(page: Page) -> None:
    boxes = [cell(page, 2).locator(name).bounding_box() for name in (".nbkit-above", ".nbkit-op-table")]
    assert len({(round(box["x"]), round(box["width"])) for box in boxes if box}) == 1


def test_a_screenshot_is_kept(page: Page) -> None:
    page.mouse.move(0, 0)
    (ROOT / "out").mkdir(exist_ok=True)
    cell(page, 1).locator(".nbkit-diff-table").screenshot(path=ROOT / "out/diff_table.png")
    assert (ROOT / "out/diff_table.png").stat().st_size > 20_000
