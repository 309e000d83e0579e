"""The option parser: what it reads, and what it says about what it cannot read."""

import pytest
from IPython.core.error import UsageError

from nbkit.magics import CELL_MAGICS
from nbkit.magics.arguments import wants_help

OPTIME, OPTRACE = CELL_MAGICS["optime"], CELL_MAGICS["optrace"]
parse = OPTRACE.parser.parse_line


def test_patterns_add_up_over_commas_and_repeats():
    options = parse("--ops mm,aten.add --ops 're:a{1,2}' --exclude-modules blocks.0")
    assert options.ops == ["mm", "aten.add", "re:a{1,2}"]
    assert (options.exclude_modules, options.modules) == (["blocks.0"], None)


def test_text_is_taken_as_typed():
    options = parse(r"-o trace --name '{x} $x' --ops re:aten\.\w+ --modules a#1 --save out/a\b -q")
    assert (options.output, options.name, options.ops, options.quiet) == ("trace", "{x} $x", [r"re:aten\.\w+"], True)
    assert options.modules == ["a#1"]
    assert options.save.name == r"a\b"
    assert options.save.is_absolute()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--outptu t", "unknown option '--outptu'; did you mean '--output'"),
        ("--valeus=stats", "unknown option '--valeus'; did you mean '--values'"),
        ("--out t", "unknown option '--out'; did you mean '--output'"),
        ("--zzz", "unknown option '--zzz'; known are --backward, --exclude-modules, --exclude-ops,"),
        ("model(x)", "'model(x)' is not an option; code goes on the lines below, %%optrace --help lists the options."),
        ("-o", "argument -o/--output: expected one argument"),
        ("-o my-trace", "'my-trace' is not a Python name; use letters, digits and _."),
        ("-o class", "'class' is not a Python name"),
        ("--name 'open", 'cannot read the options "--name \'open": no closing quotation; close the quote.'),
    ],
)
def test_a_bad_line_is_one_sentence(line, message):
    with pytest.raises(UsageError) as raised:
        parse(line)
    assert str(raised.value).startswith("%%optrace: ")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_counts_and_switches_of_optime():
    assert vars(OPTIME.parser.parse_line("-w 2 --repeats=10 --memory --device cpu")).items() >= {
        "warmup": 2, "repeats": 10, "memory": True, "stacks": False, "shapes": False, "device": "cpu", "name": None
    }.items()  # fmt: skip


@pytest.mark.parametrize("text", ["two", "-1", "2.5", "+2", "''"])
def test_what_is_no_count_is_said(text):
    with pytest.raises(UsageError, match=r"^%%optime: argument -r/--repeats: .* is not a count; give a whole number"):
        OPTIME.parser.parse_line(f"-r {text}")


def test_no_runs_at_all_are_no_count_of_repeats():
    with pytest.raises(UsageError, match=r"^%%optime: argument -r/--repeats: '0' is not a count; give a whole number"):
        OPTIME.parser.parse_line("-r 0")
    assert OPTIME.parser.parse_line("-w 0").warmup == 0


def test_only_counts_make_a_cell_run_more_than_once():
    lines = ["", "-r 0", "-w 1", "-r 1", "--memory", "-r two"]
    assert [OPTIME.repeats_line(line) for line in lines] == [False, False, True, True, False, False]
    assert OPTRACE.repeats_line("--values stats") is False


def test_help_is_an_option_of_its_own():
    assert [wants_help(line) for line in ("-h", "-o t --help", "--name 'a --help'", "'")] == [True, True, False, False]


def test_the_help_names_every_option_and_where_the_trace_is():
    text = " ".join(OPTRACE.parser.format_help().split())
    assert all(option in text for option in ("-o NAME", "--save PATH", "--exclude-modules PATTERN", "--values stats"))
    assert "the last trace is always there as _optrace" in text


def test_a_missing_option_is_named():
    with pytest.raises(UsageError, match="^%%opcapture: --folder is missing.$"):
        CELL_MAGICS["opcapture"].parser.parse_line("")
