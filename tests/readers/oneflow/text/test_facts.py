"""What a log says beside its graphs, as JSON data."""

from datetime import datetime

from nbkit.readers.oneflow.text.facts import Facts, Stages, moment


def test_moments_without_a_year_are_of_a_leap_year() -> None:
    assert moment("0229", "10:11:12.250000999") == datetime(1904, 2, 29, 10, 11, 12, 250_000)
    assert moment("20230102", "10:11:12.5") == datetime(2023, 1, 2, 10, 11, 12, 500_000)
    assert moment("1302", "10:11:12.5") is moment("0102", "now") is None


def test_passes_take_the_time_between_their_lines_of_one_thread() -> None:
    facts, begin, end = Facts(), datetime(2023, 1, 2, 10, 0, 0), datetime(2023, 1, 2, 10, 0, 2, 500_000)
    start, finish = "g start compiling with pass pass_cnt_3-Fuse", "g finish compiling with pass pass_cnt_3-Fuse"
    assert facts.pass_line(start, begin, "1")
    assert facts.pass_line(start, begin, "2")
    assert facts.pass_line(finish, end, "1")
    assert facts.pass_line(finish, end, "1")
    assert facts.pass_line("g start compiling with pass Prune", None)
    assert facts.pass_line("g finish compiling with pass Prune", end)
    assert facts.pass_line("Graph name: g Cast time elapsed: 1500 milliseconds", None)
    assert not facts.pass_line("g begins compiling", begin)
    row = {"graph": "g", "number": 3, "name": "Fuse"}
    assert facts.passes == [
        {**row, "seconds": 2.5},
        {**row, "seconds": None},
        {"graph": "g", "number": None, "name": "Prune", "seconds": None},
        {"graph": "g", "number": None, "name": "Cast", "seconds": 1.5},
    ]
    assert facts.unfinished() == ["3-Fuse"]


def test_seconds_of_compiling_and_variables_of_passes() -> None:
    facts = Facts()
    assert facts.compiled("Graph name: g compile time: 2.5 seconds") is True
    assert facts.compiled("Graph name: h compile time: nan seconds") is True
    assert facts.compiled("Graph g took 2.5 seconds") is False
    assert facts.compile_seconds == {"g": 2.5, "h": 0.0}
    facts.job_variable("g", "variable op: w-1 created in JobPass, x")
    facts.job_variable("g", "variable op: w-2 created in JobPass")
    assert facts.job_variables == {"g": ["w-1", "w-2"]}


def test_stages_of_building_a_graph() -> None:
    stages = Stages()
    ends = [
        stages.line(1, "g", "building plan Done! Cost time: 1.5s"),
        stages.line(2, "g", ". building graph Done! cost time: 2s"),
        stages.line(3, "g", ". total time to build graph and plan : 3.5s"),
        stages.line(4, "g", "end building graph."),
        stages.line(5, "g", "building graph got error: no"),
        stages.line(6, "g", "x got error"),
        stages.line(7, "g", "something else"),
    ]
    assert ends == [False, True, False, True, True, False, False]
    assert stages.seconds == [
        {"graph": "g", "stage": "building plan", "seconds": 1.5},
        {"graph": "g", "stage": "building graph", "seconds": 2.0},
        {"graph": "g", "stage": "total", "seconds": 3.5},
    ]
    assert stages.failed == [(5, "building graph got error: no"), (6, "x got error")]
