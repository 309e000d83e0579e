"""The widget and Python make the same frames of two traces, so that a verdict is that of the frame that shows it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import Browser, Page, Route

from nbkit.analysis.time.compare_trees import compare_trees
from nbkit.analysis.time.timed_pair import timed_pair
from nbkit.capture.profiler.optime import optime
from nbkit.trace.trace import Trace
from nbkit.views.flamegraph.difference import flame_states, folded
from nbkit.views.flamegraph.trees import GROUPS, flame_tree
from sample_models.llama import Llama, LlamaConfig
from tests.browser.flame_page import plain

SOURCE = Path(__file__).parents[3] / "widgets" / "src"
PLACE = "http://widgets.test/"
# Paths of the frames of a grouping, and the change of those that are judged.
FRAMES = """async ([flame, base, difference, group, isFolded]) => {
  const { decode, decodeNoise } = await import("/flamegraph/data/data.js");
  const { Views } = await import("/flamegraph/views/views.js");
  const bytes = (value) => Array.isArray(value) || !value || typeof value !== "object" ? value : "base64" in value
    ? Uint8Array.from(atob(value.base64), (letter) => letter.charCodeAt(0))
    : Object.fromEntries(Object.entries(value).map(([name, part]) => [name, bytes(part)]));
  const views = new Views(decode(bytes(flame)), decode(bytes(base)), decodeNoise(bytes(difference)));
  const { frames, verdicts } = views.difference(group, "host", isFolded);
  const paths = [];
  for (let frame = 0; frame < frames.size; frame += 1) {
    const above = frames.parent[frame];
    paths.push((above < 0 ? "" : paths[above]) + "\\n" + frames.texts[frames.name[frame]]);
  }
  const judged = paths.map((path, frame) => [path, verdicts.change[frame]]);
  return { paths, judged: judged.filter(([, change]) => Number.isFinite(change)) };
}"""


@pytest.fixture(scope="module")
def pair() -> tuple[Trace, Trace]:
    """A training step, and before it one without a backward pass but with an op that is gone."""
    config = LlamaConfig(32, 16, 32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2)
    model, ids = Llama(config), torch.arange(8)[None]

    def forward() -> None:
        model(torch.flip(ids, [1])).mean().sin()

    return optime(repeats=3).run(lambda: model(ids).mean().backward()), optime(repeats=3).run(forward)


@pytest.fixture
def modules(chromium: Browser) -> Iterator[Page]:
    """A page that can import the widgets' source, which browsers take from no file."""
    page = chromium.new_page()
    page.route(f"{PLACE}**", _serve)
    page.goto(PLACE)
    yield page
    page.close()


def _serve(route: Route) -> None:
    path = SOURCE / route.request.url.removeprefix(PLACE)
    body = path.read_text(encoding="utf-8") if path.is_file() else "<!doctype html>"
    route.fulfill(body=body, content_type="text/javascript" if path.is_file() else "text/html")


@pytest.mark.parametrize("is_folded", [False, True])
@pytest.mark.parametrize("group", GROUPS)
def test_frames_and_their_verdicts_are_the_same(
    modules: Page, pair: tuple[Trace, Trace], group: str, is_folded: bool
) -> None:
    states = flame_states(*pair)
    found: dict[str, Any] = modules.evaluate(FRAMES, [*(plain(state) for state in states.values()), group, is_folded])
    sides = [states["flame"], states["base"]]
    tree = flame_tree(*(folded(side) if is_folded else side for side in sides), group)  # type: ignore[arg-type]
    paths: list[str] = []
    for above, text in zip(tree.parent.tolist(), tree.texts, strict=True):
        paths.append(f"{paths[above] if above >= 0 else ''}\n{text}")
    assert sorted(found["paths"]) == sorted(paths)
    assert len(set(paths)) == len(paths) > 30
    assert any("layers.*" in path for path in paths) == is_folded
    table = compare_trees(timed_pair(pair[1], pair[0]), (tree.frame_of[1], tree.frame_of[0]), tree.parent)
    large = table[~table["is_small"]]
    expected = {paths[frame]: change for frame, change in zip(large["frame"], large["change_us"], strict=True)}
    assert dict(found["judged"]) == pytest.approx(expected, abs=0.0501)
