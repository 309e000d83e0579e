"""The soak sees what it is for: messages, and what grows with every action."""

import pytest
from playwright.sync_api import Browser

from tests.browser.soak import Held, Soaked, soak

WIDGET = """<main><div class="nb-tools"><input type="search"><select><option>a</option><option>b</option></select>
  <button aria-pressed="false" onclick="this.ariaPressed = String(this.ariaPressed !== 'true')">on</button></div>
  <div id="stage" tabindex="0" style="height: 200px"></div></main><script>window.kept = [];
  const listen = (event, act) => document.getElementById("stage").addEventListener(event, act); %s</script>"""


def soaked(chromium: Browser, most_rounds: int = 6, **scripts: str) -> Held:
    """What the soak finds on a page with a script for each of these events."""
    page = chromium.new_page()
    acts = [f"listen('{event}', () => {{ {script} }});" for event, script in scripts.items()]
    page.set_content(WIDGET % "\n".join(acts))
    search = page.get_by_role("searchbox")
    widget = Soaked(page.locator("main"), page.locator("#stage"), search, ("a", "Enter"), ("mm",), pause_ms=0)
    held = soak(widget, actions=25, most_rounds=most_rounds)
    page.close()
    return held


@pytest.mark.parametrize(
    ("leak", "what"),
    [
        ("window.kept.push(new Uint8Array(200_000));", "heap_bytes"),
        ("window.kept.push(new Array(20_000).fill(0.5));", "heap_bytes"),
        ("window.kept.push(...[...Array(40)].map(() => document.createElement('p')));", "nodes"),
        ("for (let n = 0; n < 20; n += 1) document.body.addEventListener('x', () => n);", "listeners"),
    ],
)
def test_what_grows_is_named(chromium: Browser, leak: str, what: str) -> None:
    held = soaked(chromium, most_rounds=3, pointerdown=leak)
    assert what in " ".join(held.grown()), held


def test_what_is_let_go_is_no_growth(chromium: Browser) -> None:
    held = soaked(chromium, pointerdown="window.kept = [new Uint8Array(200_000)];")
    assert (held.grown(), held.messages) == ([], [])


def test_what_stops_to_grow_is_no_growth(chromium: Browser) -> None:
    add = "window.kept.push(...[...Array(40)].map(() => document.createElement('p')));"
    held = soaked(chromium, pointerdown=f"if (window.kept.length < 600) {{ {add} }}")
    assert len(held.nodes) > 2
    assert held.grown() == []


def test_what_the_page_says_is_kept(chromium: Browser) -> None:
    held = soaked(chromium, wheel="console.log('once');", keydown="throw new Error('broken');")
    assert "once" in held.messages
    assert any("broken" in text for text in held.messages)
