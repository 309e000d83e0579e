"""Every kind of question that the tables are asked, for the notebook's answers and those of a report."""

from collections.abc import Iterator
from typing import Any

from nbkit.views.tables.source import TableSource

Message = dict[str, Any]
TEXT = (
    {"op": "contains", "value": "aten"},
    {"op": "contains", "value": "<IMG"},
    {"op": "regex", "value": "m[a-m]*\\.|x", "ignore_case": True},
    {"op": "inside", "value": "blocks.0"},
    {"op": "equals", "value": "", "not": True},
    {"op": "null"},
)
PHASES = ["forward_us", "backward_us", "median_us"]
NUMBER = ({"op": "above", "value": 1}, {"op": "at_most", "value": 999.5}, {"op": "null"})


def questions(source: TableSource) -> Iterator[Message]:
    """Queries of every column, pages, profiles, modules, positions and details."""
    columns = source.columns
    for name in columns.texts:
        for predicate in TEXT:
            yield rows([{"column": name, **predicate}])
    for name in columns.numbers:
        for predicate in NUMBER:
            yield rows([{"column": name, **predicate}], name)
        yield rows([], name, descending=True)
    yield from groups(source)
    everything = {"sort": [{"column": source.bar, "descending": True}]}
    yield {"kind": "profile", "id": "p", "query": everything}
    for offset in (0, 3, 10**6):
        yield {"kind": "rows", "id": "r", "offset": offset, "limit": 7, "query": everything}
    for row in range(0, len(columns), max(len(columns) // 30, 1)):
        yield {"kind": "detail", "id": "d", source.key: row}
        yield {"kind": "position", "id": "p", source.key: row, "query": everything}


def groups(source: TableSource) -> Iterator[Message]:
    """Groups by every column of texts, closed and open, sorted and not, with what their rows add up to."""
    numbers = [name for name in source.shown_columns if name in source.columns.numbers]
    for place, name in enumerate(source.columns.texts):
        totals = {column: ("sum", "min", "max")[(place + at) % 3] for at, column in enumerate(numbers)}
        group = {"by": [name, "op"], "totals": totals, "spread": source.bar, "among": ["op"], "open": [0, 1, 10**6]}
        query = {"group": group, "sort": [{"column": numbers[place % len(numbers)], "descending": bool(place % 2)}]}
        yield {"kind": "rows", "id": "g", "query": query, "offset": 0, "limit": 40}
        few = [{"any": [{"column": name, "op": "at_least", "value": 1.0} for name in ("calls", numbers[0])]}]
        few += [
            {"column": numbers[place % len(numbers)], "op": "at_least", "value": 1.0},
            {"column": "op", "op": "null", "not": True},
        ]
        yield {"kind": "rows", "id": "g", "query": {**query, "predicates": few}, "offset": 0, "limit": 40}
        each = {"by": [name], "totals": totals, "spread": source.bar, "each": ["model", "module"]}
        query = {"group": each, "sort": [{"column": ("median", "calls", "max")[place % 3]}], "predicates": []}
        yield {"kind": "rows", "id": "g", "query": query, "offset": place % 3, "limit": 40}
        yield {"kind": "profile", "id": "g", "query": query}
        if len(source.columns):
            yield {"kind": "position", "id": "g", "query": query, source.key: len(source.columns) - 1}


def times(source: TableSource) -> Iterator[Message]:
    """Groups of the op table as its menu makes them, and of these the ones of a time that the group has."""
    hows = {"self_time_us": "sum", "total_time_us": "outer", "self_fraction": "sum", "iqr_us": "iqr", "min_us": "least"}
    hows["median_us"] = "middle"
    totals = {**hows, "forward_us": "sum", "backward_us": "sum"}
    for by in (["op"], ["location", "model"], ["source"]):
        group = {
            "by": by,
            "totals": totals,
            "spread": "self_time_us",
            "only": PHASES,
            "open": [2],
        }
        for name in ("self_time_us", "self_fraction"):
            predicates = [{"column": name, "op": "above", "value": 5.0 if name == "self_time_us" else 0.1}]
            query = {"group": group, "predicates": predicates, "sort": [{"column": "total_time_us"}]}
            yield {"kind": "rows", "id": "t", "query": query, "offset": 0, "limit": 40}
            yield {"kind": "profile", "id": "t", "query": query}


def rows(predicates: list[Message], *sort: str, descending: bool = False) -> Message:
    query = {"predicates": predicates, "sort": [{"column": name, "descending": descending} for name in sort]}
    return {"kind": "rows", "id": "view-1", "query": query, "offset": 0, "limit": 12}


def comparable(answer: Message) -> Message:
    """The answer without what only a kernel cuts or counts, and with numbers as they add up in any order."""
    kept = {name: value for name, value in answer.items() if name not in ("matched", "left_out")}
    if answer["kind"] == "rows":
        kept |= {"amount": f"{float(answer['amount'] or 0):.9g}", "matched": answer["matched"]}
        kept |= {"largest": f"{float(answer['largest']):.9g}"}
    return _cut(kept)


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value[:200]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:.9g}"
    if isinstance(value, list):
        return [_cut(part) for part in value]
    return {name: _cut(part) for name, part in value.items()} if isinstance(value, dict) else value
