"""What leaves `make test` for `make test-all`: kinds of tests with the reason, and tests that were slow when measured.

Patterns are of node ids below tests/. A test may also carry the marker itself. `make mutations` tells what is lost.
`make slow-tests` measures, on a quiet machine: slow.txt has the tests that took SLOW_S or more, and cases of CASE_S or
more where a faster case of the same test stays. The fastest test of each file stays.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from fnmatch import translate
from pathlib import Path

import pytest

SLOW_S, CASE_S = 0.25, 0.1
MEASURED = Path(__file__).with_name("slow.txt")

FULL = (
    # A JupyterLab and its kernel; the widgets' own pages in Chromium stay.
    "browser/lab/*",
    # A marimo, a Notebook 7 and their kernels.
    "browser/marimo/*",
    "browser/notebook/*",
    # A million rows.
    "browser/*_million.py*",
    # Notebooks as they are run, in kernels of their own; that they are clean stays.
    "repository/test_notebooks.py::test_notebook_runs*",
    "repository/test_notebooks.py::test_every_output*",
    "docs/test_newcomer.py*",
    "docs/test_nbconvert.py*",
    # What each shell command of the README does stays in tests/command_line, in one process.
    "docs/test_terminal.py*",
    # Scripts of a second or more; those of a few steps stay in command_line/test_audit.py.
    "command_line/audit/test_shared_cases.py*",
    "command_line/audit/test_audit_right_cases.py*",
    # Looks, keys and hosts of widgets: their logic stays, in node and in one file per widget here.
    "browser/*_looks.py*",
    "browser/*soak.py*",
    "browser/*_keyboard.py*",
    "browser/report/test_report_h*.py*",
    "browser/report/test_report_selection.py*",
    "browser/graph/test_graph_pair.py*",
    "browser/test_linking.py*",
    "browser/flamegraph/test_flame_trees.py*",
    # 116 parameters, which take 13 s to export; the smaller models stay.
    "graphs/test_graph_models.py*[[]rwkv4*",
    "graphs/test_graphs_of_models.py*[[]rwkv4*",
    "graphs/test_graphs_of_dumps.py::test_all_116*",
    "readers/onnx/test_reader.py*[[]rwkv4*",
    # Packages are built.
    "wheel/*",
    # The largest of the sample steps, under every verb and dtype: the others stay.
    "capture/*[[]rwkv4*",
    "capture/*-rwkv4*",
    "simulated/*[[]rwkv4*",
    "analysis/*[[]rwkv4*",
    # Texts of the whole repository, in which no function of nbkit runs.
    "docs/test_american_spelling.py*",
    # A process for each of 14 ways to end it.
    "capture/cost/fake/test_hazards.py*",
    # A family of the bench that has 30.
    "bench/test_correct_models.py*",
    # LLaMA parts at the published sizes, exported and optimized; smaller models of each kind stay in verbs/.
    "align_cases/test_onnx_opalign.py*",
)
# Folders whose tests wait for browsers and kernels come first, so that both workers end at the same time; within one,
# files follow each other, so that a worker keeps its Chromium.
FIRST = ("browser/", "docs/", "magics/", "repository/test_notebooks.py", "wheel/", "capture/")
# Long lists of cases of which each tells much the same: one in so many stays, the first of them always.
SAMPLED = {
    "align_cases/test_published.py*": 2,
    "browser/graph/test_graph_overlay.py::test_colors*": 2,
    "capture/cost/test_exact_numbers.py::test_saved_bytes*": 3,
    "capture/cost/test_exact_numbers.py::test_views_take*": 3,
    "ops/flops/test_same_work.py::test_fused_optimizers*": 2,
    "ops/flops/test_same_work.py::test_inference_mode*": 3,
    "capture/executions/test_export.py*": 2,
    "align_cases/test_backward.py::test_the_gradients_of_a_port*": 6,
    "align_cases/test_opalign.py::test_a_fault*": 9,
    "align_cases/test_opalign.py::test_a_port*": 3,
    "align_cases/test_faults.py*": 9,
    "align_cases/test_weights.py*": 12,
    "analysis/align/kinds/*": 6,
    "capture/diff/modules/test_step_is_unchanged.py::test_the_step_computes*": 8,
    "capture/operators/*::test_every_op_on_the_cpu*": 6,
    "capture/operators/*::test_the_dry_run_computes_the_same_bits*": 12,
    "capture/operators/*::test_the_step_computes*": 8,
    "capture/operators/test_hook.py::test_a_step_computes*": 10,
    "capture/operators/*::test_models_of_transformers*": 5,
    "capture/operators/bisect/test_opbisect.py::test_planted*": 2,
    "capture/diff/modules/test_clean_models.py*": 4,
    "capture/diff/shadow/test_bit_identity.py*": 12,
    "capture/diff/shadow/test_faults.py*": 6,
    "capture/recorder/same_bits/test_watched_bits.py*": 6,
    "capture/recorder/same_bits/test_bit_identity*.py*": 4,
    "capture/diff/shadow/test_true_run.py*": 4,
    "capture/diff/test_clean_steps.py*": 2,
    "capture/diff/kernels/test_faults.py*": 4,
    "capture/native/test_magnitudes.py*": 4,
    "capture/native/test_same_diffs.py*": 3,
    "capture/recorder/test_nesting.py*": 3,
    "capture/scope/test_module_scope.py*": 4,
    "capture/audit/test_right_cases.py*": 4,
    "capture/audit/test_step_is_unchanged.py*": 6,
    "capture/audit/test_dead_units.py*": 2,
    "bench/test_cost_memory.py*": 24,
    "capture/cost/what_if/test_what_if.py::test_other_inputs*": 4,
    "capture/cost/what_if/test_ranks.py*": 4,
    "align_cases/test_backward.py::test_a_wrong_gradient*": 3,
    "capture/graphs/test_exported.py*": 2,
    "magics/test_same_as_bare_cell.py*": 24,
    "magics/test_other_magics.py*": 8,
    "magics/test_repeated_cell.py*": 2,
    "views/*/test_report_answers.py*": 3,
    "views/flamegraph/test_report_states.py*": 2,
}


def seconds_by_folder(reports: Iterable[pytest.TestReport]) -> list[str]:
    """A line per folder of tests/: how many tests ran there and for how many seconds, the longest first."""
    tests: dict[str, set[str]] = {}
    seconds: Counter[str] = Counter()
    for report in reports:
        folder = "/".join(report.nodeid.partition("::")[0].split("/")[:-1][:3])
        tests.setdefault(folder, set()).add(report.nodeid)
        seconds[folder] += report.duration
    return [
        f"{folder:<32} {len(tests[folder]):>6} tests {seconds[folder]:>8.1f} s" for folder, _ in seconds.most_common()
    ]


def write_slow(reports: Iterable[pytest.TestReport]) -> None:
    """Writes slow.txt from the calls of a whole run, without the time of fixtures: other tests would wait for them."""
    seconds = {report.nodeid: report.duration for report in reports if report.when == "call"}
    of_files, of_tests = _fastest(seconds, "::"), _fastest(seconds, "[")
    slow = (
        name
        for name, took_s in seconds.items()
        if name not in of_files and took_s >= (SLOW_S if name in of_tests else CASE_S)
    )
    MEASURED.write_text("".join(f"{name}\n" for name in sorted(slow)))


def _fastest(seconds: Mapping[str, float], end: str) -> set[str]:
    """Returns the fastest of the tests whose names are the same until `end`."""
    groups = defaultdict(list)
    for name in seconds:
        groups[name.partition(end)[0]].append(name)
    return {min(names, key=seconds.__getitem__) for names in groups.values()}


def ordered(items: list[pytest.Item]) -> None:
    """Puts the items of slow folders first; the order within a folder stays."""
    ranks = {folder: rank for rank, folder in enumerate(FIRST)}

    def rank(item: pytest.Item) -> int:
        name = item.nodeid.removeprefix("tests/")
        return next((rank for folder, rank in ranks.items() if name.startswith(folder)), len(FIRST))

    items.sort(key=rank)


def tiered(items: Iterable[pytest.Item]) -> None:
    """Marks the items that leave the fast tier."""
    seen: Counter[tuple[str, str]] = Counter()
    full = re.compile("|".join(map(translate, FULL)))
    slow = set(MEASURED.read_text().splitlines())
    sampled = [(re.compile(translate(pattern)), pattern, every) for pattern, every in SAMPLED.items()]
    for item in items:
        name = item.nodeid.removeprefix("tests/")
        for matcher, pattern, every in sampled:
            if matcher.match(name) and "[" in name:
                case = (pattern, name.partition("[")[0])
                if seen[case] % every:
                    item.add_marker(pytest.mark.full)
                seen[case] += 1
        if full.match(name) or item.nodeid in slow:
            item.add_marker(pytest.mark.full)
