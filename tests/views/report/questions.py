"""Every kind of question that the tables can be asked, by the hundred, and what counts as the same answer."""

from collections.abc import Iterable, Iterator
from typing import Any

Message = dict[str, Any]
SEARCHES = ("", "add", "ADDMM relu", "[", "a.b", "train .py", "(", "ſ", "é", "\x1c", ".", "<IMG", "\u202e", "aten 7")
TEXTS = (
    "aten", "=aten.mm.default", "*mm*", "a*t", "!null", "null", " NULL ", "!*.default", "b?ock*", "*[a-c]*x*", "[!a]*",
    "=", "!", "!!aten", "*[]]*", "*[!]x]*", "*[", "a[z-a]*", "re:^aten", "re:(?i)ATEN", "re:a{2}", "re:\\d+$", "re:{",
    "re:a]}", "re:(?P<x>a)(?P=x)?", "re:\\bmm\\b", "re:[]x]", "re:[^]a]", "re:(?:a|b){,2}\\.", "re:\\Aaten\\.",
    "re:t\\Z", "re:\\-|\\_|[\\w.]+",
    "re:[", "re:(", "re:\\q", "re:*", "re:a**",
)  # fmt: skip
NUMBERS = (
    ">5", ">1ms", "5us..2ms", "1..3", "null", "!null", "!=0", "abc", "1.5k", "2 µs", "2μs", "1e", "..", "=1", "<=1e3",
    "-1", ".5..", "it's", '"a"', "'\"", "a\tb\x7f", "1 g", "> 3", "", "1e-7", "NaN",
)  # fmt: skip
MODULES = ("", "fc", "blocks.0", "blocks.1.att", "zz", "aten")
NOT_A_PATTERN = "is not a regular expression"


def row_questions(texts: Iterable[str], numbers: Iterable[str]) -> Iterator[Message]:
    """Sorts, searches, filters and modules over these columns, one by one and together."""
    texts, numbers = list(texts), list(numbers)
    queries: list[Message] = [
        {"sort": name, "is_descending": turned} for name in texts + numbers for turned in (False, True)
    ]
    queries += [{"search": text, "sort": "op", "is_descending": True} for text in SEARCHES]
    queries += [{"filters": {name: text}} for name in texts[:3] for text in TEXTS]
    queries += [{"filters": {name: text}} for name in texts for text in TEXTS[:3]]
    queries += [{"filters": {name: text}, "sort": name} for name in (numbers[0], numbers[-1]) for text in NUMBERS]
    queries += [{"filters": {name: text}} for name in numbers for text in NUMBERS[:2]]
    queries += [{"module": path, "model": model} for path in MODULES for model in (None, "Net", "Rwkv", "null")]
    queries += [
        {"outside_modules": True, "module": "fc"},
        {"filters": {"op": "re:(", "module": "!null"}, "search": "a"},
    ]
    queries += [{"sort": "speed"}, {"speed": 1}, {"filters": {"speed": "1"}}]
    for number, query in enumerate(queries):
        yield {"kind": "rows", "id": f"view-{number}", "query": query, "limit": 12}


def threshold_questions(names: Iterable[str]) -> Iterator[Message]:
    """Thresholds and choices as sliders and selects set them."""
    for name in names:
        yield from (
            {"kind": "rows", "query": {"thresholds": {name: least}}} for least in (0, 1e-7, 1e-3, 0.5, 1, 8.25, 1e30)
        )
    for name, text in (("status", "ok"), ("status", "odd"), ("phase", "backward"), ("dtype", "float32"), ("dtype", "")):
        yield {"kind": "rows", "query": {"choices": {name: text}, "thresholds": {"noise_ratio": 0.25}, "sort": "op"}}
    yield {"kind": "rows", "query": {"thresholds": {"speed": 1}}}


def page_questions(key: str, n_rows: int) -> Iterator[Message]:
    """Pages, positions and details of rows, also of those that are not there, and questions that are none."""
    for offset in (0, 3, 400, 10**6):
        yield {"kind": "modules", "offset": offset}
        yield {"kind": "rows", "offset": offset, "limit": 7}
        yield {"kind": "rows", "offset": offset, "limit": 1000, "query": {"sort": "op"}}
    for row in [-1, *range(min(n_rows, 25)), *range(25, n_rows, max(n_rows // 25, 1)), n_rows]:
        yield {"kind": "detail", "id": "d", key: row}
        yield {"kind": "position", key: row}
        yield {"kind": "position", key: row, "query": {"search": "mm", "sort": "op"}}
    yield from ({"kind": "dance"}, {}, {"kind": None})


def comparable(answer: Message) -> Message:
    """The answer without what each language says in its own words of a bad pattern or of a column that is not there."""
    errors = {name: text.split(NOT_A_PATTERN)[0] for name, text in answer.get("errors", {}).items()}
    if answer["kind"] == "error":
        return {**answer, "message": answer["message"].split(";")[0]}
    return {**answer, "errors": errors} if "errors" in answer else answer
