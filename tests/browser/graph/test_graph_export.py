"""The picture of a graph as a file: SVG and PNG of the same drawing, by button and key, in widget and report."""

import base64
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from nbkit.views.report.opreport import opreport
from tests.browser.graph_page import GraphPage
from tests.support.fake_graphs import EVIL, chain_graph, training_graph

SVG = "{http://www.w3.org/2000/svg}"
# Both files on a canvas each; the part of all pixels in which they clearly differ.
COMPARE = """async ([svg, png]) => {
  const images = await Promise.all([["image/svg+xml", svg], ["image/png", png]].map(async ([type, data]) => {
    const image = new Image();
    image.src = `data:${type};base64,${data}`;
    await image.decode();
    return image;
  }));
  const [width, height] = [images[1].naturalWidth, images[1].naturalHeight];
  const [one, other] = images.map((image) => {
    const context = Object.assign(document.createElement("canvas"), { width, height }).getContext("2d");
    context.drawImage(image, 0, 0, width, height);
    return context.getImageData(0, 0, width, height).data;
  });
  let different = 0;
  let drawn = 0;
  for (let at = 0; at < one.length; at += 4) {
    const away = (a, b, at) => [0, 1, 2].some((part) => Math.abs(a[at + part] - b[at + part]) > 80);
    if (away(one, other, at)) different += 1;
    if (one[at] !== one[0] || one[at + 1] !== one[1]) drawn += 1;
  }
  return { png: [width, height], different: different / (width * height), drawn: drawn / (width * height),
    svg: [images[0].naturalWidth, images[0].naturalHeight], corner: [...other.slice(0, 4)] };
}"""


def saved(page: Page, folder: Path, name: str) -> Path:
    """The file that a button gives."""
    with page.expect_download() as download:
        page.get_by_role("button", name=name, exact=True).click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def texts(path: Path) -> list[str]:
    return ["".join(text.itertext()) for text in ET.parse(path).iter(f"{SVG}text")]


@pytest.mark.parametrize(("scheme", "background"), [("light", [255] * 3), ("dark", [22] * 3)])
def test_svg_and_png_show_the_same_with_title_legend_and_background(
    page: Page, tmp_path: Path, scheme: str, background: list[int]
) -> None:
    page.emulate_media(reduced_motion="reduce", color_scheme=scheme)
    shown = GraphPage(page, training_graph(2, name="my model"))
    files = [saved(page, tmp_path, name) for name in ("SVG", "PNG")]
    assert [path.name for path in files] == ["my_model.svg", "my_model.png"]
    expect(shown.status).to_have_text("my_model.png saved")
    result = page.evaluate(COMPARE, [base64.b64encode(path.read_bytes()).decode() for path in files])
    assert result["png"] == [2 * size for size in result["svg"]]
    assert result["corner"] == [*background, 255]
    assert result["different"] < 0.005 < 0.05 < result["drawn"]
    words = texts(files[0])
    assert {"opgraph my model", "forward (42 nodes)", "embed_tokens", "backward", "43 × bfloat16 [2, 128, 64]"} <= {
        *words
    }


def test_hostile_names_stay_text_in_svg(page: Page, tmp_path: Path) -> None:
    trace = training_graph(1, name=f"../{EVIL}")
    trace.parts["name"] += '<b>&"</text>'
    trace.nodes["role"] = EVIL
    GraphPage(page, trace)
    path = saved(page, tmp_path, "SVG")
    assert path.name.startswith("script_img_src_x_onerror_window.hacked_1")
    tree = ET.parse(path)
    assert {element.tag.removeprefix(SVG) for element in tree.iter()} == {"svg", "title", "g", "rect", "path", "text"}
    assert 'backward<b>&"</text>' in texts(path)


def test_the_keys_save_and_a_picture_that_is_too_large_is_refused_in_a_sentence(page: Page) -> None:
    page.emulate_media(reduced_motion="reduce")
    shown = GraphPage(page, chain_graph(10_000))
    shown.stage.focus()
    with page.expect_download() as download:
        shown.press("b")
    assert download.value.suggested_filename == "a_step.png"
    shown.tree.get_by_role("treeitem").first.focus()
    for _ in range(2):  # the first group, and all groups in it
        shown.press("ArrowRight", "ArrowRight")
    shown.press(*["ArrowRight", *["ArrowDown"] * 35] * 6)
    shown.stage.focus()
    shown.press("b")
    notice = page.locator(".nb-graph-notice")
    expect(notice).to_contain_text(
        "pixels is too large (16,384 a side and 64 million at most); close some parts, or save"
    )
    with page.expect_download() as download:
        shown.press("v")
    assert download.value.suggested_filename == "a_step.svg"
    expect(notice).to_be_hidden()


def test_a_report_saves_its_picture_offline(page: Page, tmp_path: Path) -> None:
    page.goto(opreport(training_graph(1), path=tmp_path / "page.html").as_uri())
    assert "embed_tokens" in texts(saved(page, tmp_path, "SVG"))
    assert saved(page, tmp_path, "PNG").read_bytes().startswith(b"\x89PNG")
