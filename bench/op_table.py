"""The op table at 1,000,000 ops against its budgets: query time in the kernel, page size, key press to rows.

Run from the repository root: `python bench/op_table.py [--ops N]`.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

from bench import chromium
from nbkit.trace.trace import Trace
from nbkit.views.op_table.source import OpSource
from tests.browser.table_page import TablePage
from tests.fakes import fake_trace

QUERIES: dict[str, dict[str, Any]] = {
    "no filter": {},
    "sort by self time": {"sort": "self_time_us", "is_descending": True},
    "sort by op": {"sort": "op"},
    "search two words": {"search": "mm att.key"},
    "filter a text and sort": {"filters": {"op": "mm"}, "sort": "self_time_us"},
    "filter a number and sort": {"filters": {"self_time_us": ">1us"}, "sort": "total_time_us"},
    "module and phase": {"model": "Rwkv", "module": "blocks.3", "phase": "backward"},
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
    for name, query in QUERIES.items():
        median = statistics.median(milliseconds(ask_anew(source, query, n)) for n in range(REPEATS))
        page_kb = len(json.dumps(source.answer(rows(query)), ensure_ascii=False).encode()) / 1e3
        print(f"{name:32} {against(median, QUERY_MS, 'ms')}; page {against(page_kb, PAGE_KB, 'kB')}")
    middle = len(source.trace.ops) // 2
    detail = statistics.median(
        milliseconds(lambda n=n: source.answer({"kind": "detail", "op_id": middle + n})) for n in range(REPEATS)
    )
    print(f"{'detail of one op':32} {detail:7.1f} ms")


def measure_keys(trace: Trace) -> None:
    """Time from a key press in a filter to its rows on the page, the pause for more keys included."""
    with chromium.browser() as browser:
        shown = TablePage(browser.new_page(viewport={"width": 1000, "height": 900}), trace)
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


def ask_anew(source: OpSource, query: dict[str, Any], repeat: int) -> Callable[[], object]:
    """The question with blanks that change nothing, so that no repeat is answered from the matches kept."""
    return lambda: source.answer(rows({**query, "search": query.get("search", "") + " " * (repeat + 1)}))


def milliseconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1e3


def against(value: float, budget: float, unit: str) -> str:
    return f"{value:7.1f} {unit} ({value / budget:.2f} of the budget of {budget:g} {unit})"


if __name__ == "__main__":
    main()
