"""The op table in light and dark, in narrow places, and under axe-core's accessibility rules."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import needed
from tests.browser.table_page import TablePage
from tests.support.fakes import fake_trace, small_trace

AXE = Path(__file__).parents[3] / "widgets" / "node_modules" / "axe-core" / "axe.min.js"
LIGHT = {"--jp-layout-color0": "white", "--jp-ui-font-color1": "rgba(0, 0, 0, 0.87)"}
DARK = {"--jp-layout-color0": "#111", "--jp-ui-font-color1": "rgba(255, 255, 255, 0.87)"}
SET_THEME = """([isLight, variables]) => {
  document.body.dataset.jpThemeLight = String(isLight);
  for (const [name, value] of Object.entries(variables)) document.body.style.setProperty(name, value);
  document.body.style.background = variables["--jp-layout-color0"];
}"""
# Of what keeps the rules no paths are worked out.
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"], "resultTypes": ["violations"]}
# A page of one widget has neither a main heading nor landmarks; the notebook around it has.
HOST_RULES = ("page-has-heading-one", "region", "heading-order", "landmark-one-main")


def background(shown: TablePage) -> str:
    return str(shown.page.evaluate("getComputedStyle(document.querySelector('.nbkit-op-table')).backgroundColor"))


def violations(page: Page) -> list[tuple[str, list[str]]]:
    page.evaluate(needed(AXE, "axe-core (npm ci in widgets/)").read_text(encoding="utf-8"))
    found = page.evaluate("(rules) => axe.run(document, rules)", RULES)["violations"]
    return [
        (rule["id"], [node["html"][:120] for node in rule["nodes"]][:3])
        for rule in found
        if rule["id"] not in HOST_RULES
    ]


@pytest.mark.parametrize(("is_light", "variables"), [(True, LIGHT), (False, DARK)])
def test_no_accessibility_violation(page: Page, is_light: bool, variables: dict[str, str]) -> None:
    error = {"type": "ValueError", "message": "bad"}
    shown = TablePage(page, small_trace(complete=False, error=error, skipped={"vmap": 1}))
    page.evaluate(SET_THEME, [is_light, variables])
    shown.row(4).click()
    page.get_by_role("heading", level=3).wait_for()
    shown.filter("self time").fill("x")
    expect(shown.filter("self time")).to_have_attribute("aria-invalid", "true")
    assert violations(page) == []


def test_theme_switch_is_followed_live(page: Page) -> None:
    shown = TablePage(page, small_trace())
    page.evaluate(SET_THEME, [True, LIGHT])
    assert background(shown) == "rgb(255, 255, 255)"
    page.evaluate(SET_THEME, [False, DARK])
    assert background(shown) == "rgb(17, 17, 17)"


@pytest.mark.parametrize(("scheme", "color"), [("light", "rgb(255, 255, 255)"), ("dark", "rgb(22, 22, 22)")])
def test_without_a_host_theme_the_system_decides(page: Page, scheme: str, color: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    assert background(TablePage(page, small_trace())) == color


def test_vs_code_and_colab_themes_win_over_the_system(page: Page) -> None:
    page.emulate_media(color_scheme="light")
    shown = TablePage(page, small_trace())
    page.evaluate("document.documentElement.setAttribute('theme', 'dark')")
    assert background(shown) == "rgb(22, 22, 22)"
    page.evaluate("document.documentElement.style.setProperty('--vscode-editor-background', 'rgb(1, 2, 3)')")
    assert background(shown) == "rgb(1, 2, 3)"


def test_at_360_pixels_nothing_sticks_out_and_the_tree_starts_closed(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 800})
    shown = TablePage(page, fake_trace(900, layers=2))
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    expect(page.get_by_role("tree")).to_be_hidden()
    page.get_by_role("button", name="Modules").click()
    page.get_by_role("treeitem", name="blocks").click()
    shown.row(1).click()
    page.get_by_role("heading", level=3).wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_details_of_a_long_name_fit_360_pixels(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 800})
    trace = fake_trace(900, layers=2)
    trace.ops["op"] = "aten._scaled_dot_product_flash_attention_for_cpu_backward.default"
    shown = TablePage(page, trace)
    shown.row(1).click()
    box = page.get_by_role("button", name="Close details").bounding_box()
    assert box is not None and box["x"] + box["width"] <= 360


def test_focus_is_visible(page: Page) -> None:
    shown = TablePage(page, small_trace())
    shown.filter("op").focus()
    page.keyboard.press("ArrowDown")
    outline = page.evaluate("getComputedStyle(document.activeElement).outline")
    assert "solid" in outline
    assert "2px" in outline
