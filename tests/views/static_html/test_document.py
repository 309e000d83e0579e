"""The frame of a page."""

from nbkit.views.report.opreport import Body, document


def test_without_a_script_none_may_run() -> None:
    text = document("a <b>", Body("<p>inside</p>"))
    assert "<title>a &lt;b&gt;</title>" in text
    assert "script-src" not in text
    assert "<script" not in text


def test_a_script_cannot_end_its_element_early() -> None:
    text = document("t", Body("", script='const a = "</SCRIPT>", b = "<!--";\r\nrun();'))
    assert 'const a = "\\x3c/SCRIPT>", b = "\\x3c!--";\nrun();</script></body>' in text
