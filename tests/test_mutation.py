"""The script that breaks lines: what it changes, and which tests it runs first."""

from pathlib import Path

from tests.mutation import ROOT, mutations, near

SOURCE = '''
def answer(x: int = 1) -> int:
    """Text."""
    log("größer")
    if not x and x > 1:
        raise ValueError("1")
    return x + 2
'''


def test_each_kind_of_line_is_broken_and_parses():
    broken = {mutation.applied(SOURCE) for mutation in mutations(Path("m.py"), SOURCE)}
    lines = {after for text in broken for after in set(text.splitlines()) - set(SOURCE.splitlines())}
    assert lines == {
        "    pass",
        "    if (not x or x > 1):",
        "    if (x) and x > 1:",
        "    if not x and (x <= 1):",
        "    if not x and x > 2:",
        "    return None",
        "    return (x - 2)",
        "    return x + 3",
    }


def test_tests_near_a_module_are_its_own_first_then_those_that_import_it():
    names = [str(path.relative_to(ROOT)) for path in near(Path("nbkit/trace/storage.py"), ROOT)]
    assert names[0] == "tests/trace/test_storage.py"
    assert "tests/trace/test_trace.py" in names
    assert not any("browser" in name for name in names)
