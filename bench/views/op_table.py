"""The op table at 1,000,000 ops against its budgets: query time in the kernel, page size, key press to rows.

Run from the repository root: `python bench/views/op_table.py [--ops N]`.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

from bench.harness import chromium
from nbkit.trace.trace import Trace
from nbkit.views.op_table.source import OpSource
from tests.browser.table_page import TablePage
from tests.support.fakes import fake_trace


def search(word: str) -> dict[str, Any]:
    return {"any": [{"column": name, "op": "contains", "value": word} for name in ("op", "module", "source")]}


MM = {"column": "op", "op": "contains", "value": "mm"}
LONG = {"column": "self_time_us", "op": "above", "value": 1}
MODULE = {"column": "module", "op": "inside", "value": "blocks.3"}
BACKWARD = {"column": "phase", "op": "equals", "value": "backward"}
PATTERN = {"column": "op", "op": "regex", "value": "^aten\\..*(mm|bmm)"}
SLOWEST = {"column": "self_time_us", "descending": True}
QUERIES: dict[str, dict[str, Any]] = {
    "no filter": {},
    "sort by self time": {"sort": [SLOWEST]},
    "sort by op": {"sort": [{"column": "op"}]},
    "search two words": {"predicates": [search("mm"), search("att.key")]},
    "filter a text and sort": {"predicates": [MM], "sort": [SLOWEST]},
    "filter a number and sort": {"predicates": [LONG], "sort": [{"column": "total_time_us"}]},
    "module and phase": {"predicates": [MODULE, BACKWARD]},
    "regular expression": {"predicates": [PATTERN]},
}
TOTALS = dict.fromkeys(("self_time_us", "self_device_time_us", "flops", "size_bytes"), "sum")
LAYERS = ["model", "location"]
GROUPED = {"totals": TOTALS, "spread": "self_time_us"}
GROUPS: dict[str, dict[str, Any]] = {
    "group by op": {"group": {"by": ["op"], **GROUPED}, "sort": [SLOWEST]},
    "group by op + shape": {"group": {"by": ["op", "input_shapes"], **GROUPED}, "sort": [SLOWEST]},
    "group by module": {"group": {"by": ["location", "model"], **GROUPED}, "sort": [SLOWEST]},
    "group by layer": {
        "group": {"by": ["layer", "model"], "each": ["model", "location"], **GROUPED},
        "sort": [SLOWEST],
    },
    "group by source line": {"group": {"by": ["source"], **GROUPED}, "sort": [SLOWEST]},
    "group what a filter leaves": {"group": {"by": ["op"], **GROUPED}, "sort": [SLOWEST], "predicates": [MM]},
}
QUERY_MS, PAGE_KB, KEY_MS = 100.0, 50.0, 300.0
REPEATS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", type=int, default=1_000_000, help="number of ops (default: 1,000,000)")
    trace = fake_trace(parser.parse_args().ops)
    print(f"{len(trace.ops):,} ops, {len(trace.tensors):,} tensor rows; medians of {REPEATS}")
    measure_kernel(OpSource(trace))
    if chromium.installed():
        measure_keys(trace)
    else:
        print("no chromium: key press to rows not measured")


def measure_kernel(source: OpSource) -> None:
    first = milliseconds(lambda: source.answer(rows({})))
    print(f"{'first rows, columns encoded':32} {first:7.1f} ms, once")
    for name, query in (QUERIES | GROUPS).items():
        median = statistics.median(milliseconds(ask_anew(source, query, n)) for n in range(REPEATS))
        page_kb = len(json.dumps(source.answer(rows(query)), ensure_ascii=False).encode()) / 1e3
        budget = KEY_MS if name in GROUPS else QUERY_MS
        print(f"{name:32} {against(median, budget, 'ms')}; page {against(page_kb, PAGE_KB, 'kB')}")
        profile = statistics.median(milliseconds(lambda q=query: source.answer(profile_of(q))) for n in range(REPEATS))
        print(f"{'':32} {profile:7.1f} ms for the profiles of its columns")
    middle = len(source.trace.ops) // 2
    detail = statistics.median(
        milliseconds(lambda n=n: source.answer({"kind": "detail", "op_id": middle + n})) for n in range(REPEATS)
    )
    print(f"{'detail of one op':32} {detail:7.1f} ms")


def measure_keys(trace: Trace) -> None:
    """Measures the time from a key press in a filter to its rows on the page, the pause for more keys included."""
    with chromium.browser() as browser:
        shown = TablePage(browser.new_page(viewport={"width": 1000, "height": 900}), trace)
        grouped = [milliseconds_of_group(shown, label) for label in ("op", "module", "layer", "source line")]
        print(f"{'choice of groups to rows':32} {against(statistics.median(grouped), KEY_MS, 'ms')}")
        milliseconds_of_group(shown, "")
        press = milliseconds_of_keys(shown)
        print(f"{'key press to rows':32} {against(statistics.median(press), KEY_MS, 'ms')}")


def milliseconds_of_keys(shown: Any) -> list[float]:
    shown.page.evaluate(WATCH)
    shown.filter("op").focus()
    times = []
    for key in "admm."[:REPEATS]:
        done = shown.page.evaluate_handle("window.nextRows()")
        shown.page.keyboard.press(key)
        times.append(float(shown.page.evaluate("(done) => done.time", done)))
    return times


def milliseconds_of_group(shown: Any, label: str) -> float:
    """Measures from the key that chooses a way to group to its rows on the page."""
    shown.page.evaluate(WATCH)
    menu = shown.page.get_by_label("Group by")
    done = shown.page.evaluate_handle("window.nextRows()")
    menu.evaluate("(menu) => menu.dispatchEvent(new KeyboardEvent('keydown', { bubbles: true }))")
    menu.select_option(label or "no groups")
    return float(shown.page.evaluate("(done) => done.time", done))


# Both ends are taken on the page's own clock: from the key's event to the count that comes with its rows.
WATCH = """() => { window.nextRows = () => { const done = {};
  const options = { once: true, capture: true };
  const start = new Promise((resolve) => addEventListener("keydown", () => resolve(performance.now()), options));
  const count = document.querySelector(".nb-count");
  done.time = new Promise((resolve) => { const watch = new MutationObserver(async () => {
    watch.disconnect(); requestAnimationFrame(async () => resolve(performance.now() - await start)); });
    watch.observe(count, { childList: true }); });
  return done; }; }"""


def rows(query: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "rows", "id": "bench", "query": query, "offset": 0, "limit": 100}


def profile_of(query: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "profile", "id": "bench", "query": query}


def ask_anew(source: OpSource, query: dict[str, Any], repeat: int) -> Callable[[], object]:
    """Returns the question with a predicate that all rows fit, so that no repeat is answered from the matches kept."""
    anything = {"all": [], "repeat": repeat}
    return lambda: source.answer(rows({**query, "predicates": [*query.get("predicates", []), anything]}))


def milliseconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1e3


def against(value: float, budget: float, unit: str) -> str:
    return f"{value:7.1f} {unit} ({value / budget:.2f} of the budget of {budget:g} {unit})"


if __name__ == "__main__":
    main()
