"""The script that breaks lines: what it changes, and which tests it runs first."""

from pathlib import Path

from tests.mutation import ROOT, chosen, mutations, near

SOURCE = '''
def answer(x: int = 1) -> int:
    """Text."""
    log("größer")
    if not x and x > 1:
        raise ValueError("1")
    return x + 2
'''


def changed_lines(source: str, kind: str) -> set[str]:
    broken = {mutation.applied(source) for mutation in mutations(Path("m.py"), source, kind)}
    return {after for text in broken for after in set(text.splitlines()) - set(source.splitlines())}


def test_each_kind_of_expression_is_broken_and_parses():
    assert changed_lines(SOURCE, "expressions") == {
        "    pass",
        "    if (not x or x > 1):",
        "    if (x) and x > 1:",
        "    if not x and (x <= 1):",
        "    if not x and x > 2:",
        "    return None",
        "    return (x - 2)",
        "    return x + 3",
    }


STATEMENTS = '''
def answer(x):
    """Text."""
    y: int
    first = x
    second: int = 1
    first += second
    del x
    for each in first:
        log(each)
        continue
    if not first:
        return False
    return first
'''


def test_each_statement_is_left_out_alone():
    broken = [mutation.applied(STATEMENTS) for mutation in mutations(Path("m.py"), STATEMENTS)]
    gone = {next(line for line in STATEMENTS.splitlines() if line not in text.splitlines()).strip() for text in broken}
    assert gone == {"first = x", "second: int = 1", "first += second", "del x", "log(each)", "continue", "return first"}
    assert len(broken) == len(gone)
    assert changed_lines(STATEMENTS, "lines") == {"    pass", "        pass", "    return None"}


def test_tests_near_a_module_are_its_own_first_then_those_that_import_it():
    names = [str(path.relative_to(ROOT)) for path in near(Path("nbkit/trace/storage.py"), ROOT)]
    assert names[0] == "tests/trace/test_storage.py"
    assert "tests/trace/test_trace.py" in names
    assert not any("browser" in name for name in names)


def test_tests_in_folders_below_those_of_a_module_are_near_it():
    names = [str(path.relative_to(ROOT)) for path in near(Path("nbkit/readers/registry.py"), ROOT)]
    assert names[0] == "tests/readers/test_registry.py"
    assert "tests/readers/oneflow/test_reader.py" in names
    assert not any(name.startswith("tests/trace/") for name in names)


def test_more_mutations_than_modules_are_several_in_each_and_none_twice():
    modules = ["nbkit/errors.py", "nbkit/units.py"]
    assert [str(each.module) for each in chosen(None, 3, modules)] == ["nbkit/units.py", "nbkit/errors.py"]
    several = [str(each) for each in chosen(8, 3, modules)]
    assert len(set(several)) == 8
    assert sum("errors.py" in each for each in several) == 4
    assert several[:2] == [str(each) for each in chosen(None, 3, modules)]


def test_a_count_beyond_all_mutations_takes_each_of_them_once():
    everything = list(mutations(Path("nbkit/errors.py"), (ROOT / "nbkit/errors.py").read_text(encoding="utf-8")))
    assert len(chosen(10_000, 0, ["nbkit/errors.py"])) == len(everything) > 3
