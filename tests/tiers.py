"""What leaves `make test` for `make test-all`, with the reason: what it costs is more than it adds to what stays.

Patterns are of node ids below tests/. A test may also carry the marker itself. `make mutations` tells what is lost.
"""

import re
from collections import Counter
from collections.abc import Iterable
from fnmatch import translate

import pytest

FULL = (
    # A JupyterLab and its kernel; the widgets' own pages in Chromium stay.
    "browser/lab/*",
    # A marimo, a Notebook 7 and their kernels.
    "browser/marimo/*",
    "browser/notebook/*",
    # A million rows.
    "browser/*_million.py*",
    "analysis/query/test_op_table.py::test_a_million*",
    "views/flamegraph/test_data.py::test_a_million*",
    "views/flamegraph/test_report_states.py::*[[]big]",
    # Notebooks as they are run, in kernels of their own; that they are clean stays.
    "repository/test_notebooks.py::test_notebook_runs*",
    "repository/test_notebooks.py::test_every_output*",
    "docs/test_newcomer.py*",
    "docs/test_nbconvert.py*",
    # What each shell command of the README does stays in tests/command_line, in one process.
    "docs/test_terminal.py*",
    # Scripts of a second or more; those of a few steps stay in command_line/test_audit.py.
    "command_line/audit/test_shared_cases.py*",
    "command_line/audit/test_audit.py::test_batches*",
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
    # Packages are built.
    "wheel/*",
    # Models of transformers as torch and ONNX export them: LLaMA stays.
    "readers/onnx/test_reader.py::*[[]rwkv4]",
    "capture/graphs/test_exported.py::*[[]gpt2]",
    "analysis/structure/test_recognise.py::*[[]mamba]",
    "analysis/structure/test_recognise.py::*[[]gpt2]",
    "analysis/structure/test_recognise.py::*[[]mistral]",
    "analysis/structure/test_recognise.py::*[[]qwen2]",
    # The largest of the sample steps, under every verb and dtype: the others stay.
    "capture/*[[]rwkv4*",
    "capture/*-rwkv4*",
    "simulated/*[[]rwkv4*",
    "analysis/*[[]rwkv4*",
    # The slowest of some that are alike: a model, a way to start a script; and six reports side by side.
    "analysis/values/test_compare_values.py::*[[]llama]",
    "command_line/test_bare_run.py::test_a_script_that_fails*",
    "views/report/test_page.py::test_the_same_traces*",
    # Twins of a second or more: other data sets, exit statuses, forms of a script and levels of statistics stay.
    "views/report/test_page.py::test_it_loads*",
    "command_line/test_report.py::test_a_base*",
    "capture/recorder/test_leaks.py::test_fifty*",
    # Eight cold starts.
    "capture/raw/test_vector_math.py::test_the_first_call*",
    "capture/audit/test_step_is_unchanged.py::test_the_copies*",
    "views/*/test_report_answers.py::*[[]optrace]",
    "views/*/test_report_answers.py::*[[]whole times]",
    "views/*/test_report_answers.py::*[[]statistics]",
    "command_line/test_report.py::*[[]severities0*",
    "command_line/test_report.py::*[[]severities1*",
    "simulated/test_setup.py::*[[]size]",
    "simulated/test_setup.py::*[[]nan]",
    "simulated/test_setup.py::*[[]conditions]",
    "simulated/test_setup.py::test_what_depends*",
    "simulated/test_device.py::test_backward_works*[[]torch.ones*",
    "bench/test_faults.py::*attention-bfloat16*",
    "bench/test_faults.py::*conv-float32*",
    "views/plots/test_plots.py::test_static_figures_save*[[]svg]",
    "views/report/test_page.py::test_several*",
    "views/host/test_front_end.py::test_a_file_gets*",
    "views/host/test_front_end.py::test_no_port*",
    "magics/test_other_magics.py::test_scripts_of_ipython*",
    "magics/test_loading.py::test_run_all*[[]error]",
    "graphs/test_graphs_of_dumps.py::test_every_module*",
    "capture/step/test_compiled.py::test_dynamo_first*",
    "capture/recorder/test_leaks.py::*[[]stats]",
    "capture/recorder/test_leaks.py::*[[]bare]",
    "graphs/test_graphs_of_dumps.py::test_all_116*",
    # Whole steps measured beside predictions and peers, every set of small models, and T5 in bfloat16: float32 stays.
    "bench/test_cost.py::test_opcost_is_measured*",
    "bench/test_cost.py::test_a_step_is_predicted*",
    "capture/cost/fits/test_fits.py::test_the_set_is_the_cheapest*",
    "capture/cost/fits/test_fits.py::test_where_nothing_fits_the_closest_is_told",
    "align_cases/test_backward.py::test_a_t5_in_bfloat16*",
    "align_cases/test_backward.py::*[[]dtype1]",
    # What a wheel says, which takes a second each time; axe in both themes; pictures; a host without scripts of ours.
    "browser/flamegraph/test_flamegraph_overview.py::test_a_plain_wheel*",
    "browser/alignment/test_alignment_table.py::test_marks_can_be_told*",
    "browser/graph/test_graph_export.py::test_the_keys*",
    "browser/hosts/test_limited_host.py::*[[]False]",
    # A second or two each, beside others of the same file that stay.
    "capture/cost/what_if/test_what_if.py::test_nothing_is_kept*",
    "capture/cost/what_if/test_what_if.py::test_an_optimizer_without*",
    "capture/distributed/test_captured_collectives.py::test_without_other*",
    "align_cases/test_onnx.py::test_every_result_of_a_decoder*[[]plain-optimised]",
    "align_cases/test_copying.py::*[[]llama_complex]",
    "browser/flamegraph/test_flamegraph_overview.py::test_the_window*",
    "browser/flamegraph/test_flamegraph_sandwich.py::test_the_selected*",
    "browser/alignment/test_alignment_table.py::test_a_hundred_thousand*",
    # Large reports, and what else a report's page does in Chromium: links, hosts without scripts, keys, names stay.
    "browser/report/test_report.py::test_a_hundred_thousand*",
    "browser/report/test_report.py::test_if_the_data*",
    "browser/report/test_report.py::test_charts_have*",
    "browser/report/test_report.py::test_a_difference_*",
    "browser/report/test_report.py::test_frames_can*",
    "browser/report/test_report.py::test_a_script_from*",
    # Of three long files: searches, filters, orders and zooms, which the tests in node see, too, and what stays behind.
    "browser/flamegraph/test_flamegraph.py::test_movements*",
    "browser/flamegraph/test_flamegraph.py::test_wheel*",
    "browser/flamegraph/test_flamegraph.py::test_search*",
    "browser/flamegraph/test_flamegraph.py::test_left_heavy*",
    "browser/flamegraph/test_flamegraph.py::test_flame_orientation*",
    "browser/flamegraph/test_flamegraph.py::test_groupings*",
    "browser/op_table/test_op_table.py::test_search*",
    "browser/op_table/test_op_table.py::test_level*",
    "browser/op_table/test_op_table.py::test_module_tree*",
    "browser/op_table/test_op_table.py::test_ops_outside*",
    "browser/op_table/test_op_table.py::test_links*",
    "browser/op_table/test_op_table.py::test_clean_up*",
    "browser/diff_table/test_diff_table.py::test_a_plot*",
    "browser/diff_table/test_diff_table.py::test_verdict*",
    "browser/diff_table/test_diff_table.py::test_closing*",
    # Texts and imports of the whole repository, in which no function of nbkit runs.
    "docs/test_american_spelling.py*",
    "repository/test_environment.py::test_every_import*",
    # Twins: two published faults, five ports, other reports, forms of an export and models stay.
    "align_cases/test_published.py::*[[]layers with weights]",
    "align_cases/test_published.py::*[[]a chain of functions]",
    "align_cases/test_copying.py::test_each_parameter*[[]mixtral_dense]",
    "views/op_table/test_report_answers.py::*[[]optime]",
    "views/diff_table/test_report_answers.py::*saved without values]",
    "verbs/test_opalign.py::test_a_model_that_returns*[[]onnxruntime]",
    "analysis/values/test_other_modules.py::*[[]llama]",
    # What waits on purpose, large widgets, and axe's walk over each page.
    "browser/op_table/test_op_table.py::test_only_a_dead*",
    "browser/op_table/test_op_table.py::test_a_busy*",
    "browser/hosts/test_limited_host.py::test_all_of_a_large*",
    "browser/diff_table/test_diff_table.py::test_a_hundred_thousand*",
    "browser/graph/test_graph.py::test_ten_thousand*",
    "browser/graph/test_graph.py::test_no_accessibility*",
    "views/report/test_page.py::test_a_hundred_thousand*",
    # Processes that import torch anew, for the script of a captured call (tests/capture/calls has others) and its end.
    "browser/diff_table/test_diff_table.py::test_the_copied_script*",
    "simulated/test_device.py::test_a_process_that_ends*",
    # A server that ends with its input; the test beside it starts one, too, and asks it everything.
    "mcp/test_stdio.py::test_it_ends*",
    # Every page of docs/ made anew: `make docs` and a look at git tell as much.
    "docs/test_pages.py::test_make_docs*",
    # A process for each of 14 ways to end it.
    "capture/cost/fake/test_hazards.py*",
    # A family of the bench that has 30, and onnxruntime's session of the larger model.
    "bench/test_correct_models.py*",
    "graphs/test_graph_models.py::test_onnxruntime*[[]rwkv4]",
    # Four of seven cold starts, of seconds each; three stay: what is printed, imported and left at the end.
    "test_import.py::*[[]no_grad]",
    "test_import.py::test_the_names*",
    "simulated/test_device.py::test_importing_nbkit_registers_nothing",
    "magics/test_loading.py::test_import_alone*",
    # LLaMA parts at the published sizes, exported and optimized; smaller models of each kind stay in verbs/.
    "align_cases/test_onnx_opalign.py*",
    # Ports of a second or more whose layouts others have, too, and those that read token by token.
    "align_cases/test_copying.py::*[[]llama_sample]",
    "align_cases/test_copying.py::*[[]llama_p*]",
    "align_cases/test_copying.py::*[[]phi3_split]",
    "align_cases/test_copying.py::*[[]attention_sdpa]",
    "align_cases/test_copying.py::*[[]rwkv_recurrent]",
    "align_cases/test_copying.py::*[[]decode_*]",
    "align_cases/test_copying.py::*[[]half_precision]",
    "align_cases/test_copying.py::*[[]mask_shows_the_next]",
    "align_cases/test_copying.py::*[[]epsilon_of_activations]",
    # A second or more each, of which a twin of another model, format or runtime stays.
    "verbs/test_opalign.py::test_a_model_that_returns_objects*[[]onnx]",
    "verbs/test_opalign.py::test_a_model_agrees_with*[[]onnx]",
    "analysis/values/test_compare_values.py::*[[]gru]",
    "analysis/align/traces/test_two_traces.py::*[[]llama-*",
    "browser/graph/test_graph_export.py::test_a_report_saves*",
    "graphs/test_graph_models.py::test_the_exported_program*",
    "graphs/test_graphs_of_models.py::*[[]rwkv4-116]",
    "align_cases/test_opalign.py::*[[]mixtral_dense]",
    "align_cases/test_copying.py::*[[]mixtral_dense]",
    "align_cases/test_copying.py::*[[]llama_fused]",
    "command_line/test_report.py::test_findings_are_an*[[]severities2*",
    # Tests of the cases themselves, in which none of nbkit runs, and of the tools beside the tests.
    "align_cases/test_ports.py::*decompositions[]]",
    "align_cases/test_onnx.py::test_what_is_planted*",
    "repository/test_environment.py::test_an_undeclared*",
    # The largest of several models, runtimes, modes and states: each has a smaller twin in the same file.
    "align_cases/test_onnx.py::test_every_result_of_a_decoder*[[]optimised-onnxruntime]",
    "align_cases/test_opalign.py::*[[]rwkv_recurrent]",
    "align_cases/test_backward.py::*[[]decode_theirs]",
    "align_cases/test_copying.py::*[[]norm_behind_attention]",
    "analysis/values/test_other_modules.py::*[[]gru]",
    "analysis/values/test_other_modules.py::test_steps_of_an_optimizer*[[]True]",
    "capture/calibrate/test_calibrate.py::test_the_mode*[[]inference_mode]",
    "capture/cost/analyzer/test_vit_table.py::*[[]storage_math]",
    "capture/cost/analyzer/test_vit_table.py::*[[]reference]",
    "capture/cost/analyzer/test_saved_bytes.py::*[[]math]",
    "capture/cost/fake/test_left_alone.py::*[[]False]",
    "capture/operators/test_fallback.py::test_a_step_on_a_faulty_device*[[]llama]",
    "capture/profiler/test_optime.py::test_three_training_steps*[[]llama-sgd]",
    "capture/watch/test_state.py::*[[]unfreeze]",
    "graphs/test_graphs_of_models.py::test_an_export_is_its_own*[[]rwkv4]",
    "views/alignment/test_source.py::*[[]trace1]",
    "views/alignment/test_source.py::*[[]trace2]",
    "views/op_table/test_report_answers.py::*[[]opcost]",
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
    "flops/test_same_work.py::test_fused_optimizers*": 2,
    "flops/test_same_work.py::test_inference_mode*": 3,
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
    sampled = [(re.compile(translate(pattern)), pattern, every) for pattern, every in SAMPLED.items()]
    for item in items:
        name = item.nodeid.removeprefix("tests/")
        for matcher, pattern, every in sampled:
            if matcher.match(name) and "[" in name:
                case = (pattern, name.partition("[")[0])
                if seen[case] % every:
                    item.add_marker(pytest.mark.full)
                seen[case] += 1
        if full.match(name):
            item.add_marker(pytest.mark.full)
