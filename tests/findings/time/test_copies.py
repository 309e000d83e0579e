"""Casts and copies that take much of the step."""

from tests.findings.time.steps import found

CAST = {"op": "aten.to.dtype", "total_time_us": 300.0}


def copying(op: str, times: int, **more: object) -> list[tuple[str, str]]:
    """Findings of a step in which an op, called so often, copies."""
    rows = []
    for _ in range(times):
        rows.append({"op": op, "total_time_us": 300.0, **more})
        rows.append({"op": "aten.copy_.default", "total_time_us": 290.0, "parent_id": len(rows)})
    return found(*rows)


def test_casts_of_a_line_are_told_with_their_share() -> None:
    assert copying("aten.to.dtype", 8) == [("casts", "8 casts to another dtype take 24 % of the step (2.40 ms)")]


def test_copies_into_another_layout_are_told() -> None:
    assert copying("aten.contiguous.default", 8) == [
        ("layout_copies", "8 copies into another memory layout take 24 % of the step (2.40 ms)")
    ]


def test_what_does_not_copy_is_no_cast() -> None:
    assert found(*[CAST] * 8) == []


def test_a_few_casts_and_those_to_a_device_are_right() -> None:
    assert copying("aten.to.dtype", 3) == []
    assert copying("aten.to.device", 8) == []
    assert copying("aten.to.dtype", 8, phase="optimizer") == []


def test_casts_of_autocast_are_inside_of_ops() -> None:
    rows = []
    for _ in range(8):
        linear = len(rows) + 1
        rows += [{"op": "aten.linear.default", "total_time_us": 400.0}, {**CAST, "parent_id": linear}]
        rows.append({"op": "aten.copy_.default", "total_time_us": 290.0, "parent_id": linear + 1})
    assert found(*rows) == []
