from nbkit.views.panels.panel import Contents
from nbkit.views.report.chapter import chapters
from tests.support.fakes import make_ops, make_trace, small_trace


def test_titles_of_several_are_numbered() -> None:
    one, other = chapters([Contents(small_trace(name="a")), Contents(small_trace(name="b"))])
    assert (one.anchor, other.anchor) == ("t1", "t2")
    assert (one.title, other.title) == ("1. optrace a", "2. optrace b")
    assert chapters([Contents(small_trace(name="a"))])[0].title == "optrace a"


def test_without_rows_nothing_is_said() -> None:
    full, empty = chapters([Contents(small_trace()), Contents(make_trace(make_ops()))])
    assert full.statements[0].question == "What ran"
    assert empty.statements == []
