"""Finds planted faults that give other bits, is silent about correct steps, and leaves the step as it is."""

import re
from weakref import ref

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import nbkit
from nbkit.capture.operators.stable.opstable import documented
from nbkit.capture.replay.op_traits import traits_of
from tests.capture.identical import each_step, left_by
from tests.capture.models import MODELS, train_step
from tests.support.simulated import simulated_device

CHECKS = ("run_to_run", "batch_invariant", "thread_invariant", "stride_invariant")


@pytest.fixture
def device():
    return simulated_device()


def layers():
    torch.manual_seed(0)
    return nn.Linear(64, 6), torch.randn(7, 64)


def stable(step, **options):
    with nbkit.opstable(**options) as trace:
        step()
    return trace


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ("unordered_sum", "run_to_run"),
        ("split_sum", "batch_invariant"),
        ("tail_rows", "batch_invariant"),
        ("thread_sum", "thread_invariant"),
    ],
)
@pytest.mark.parametrize("op", ["addmm", "mm", "sum"])
def test_a_planted_fault_is_found_in_the_check_it_is_about(device, kind, column, op):
    layer, x = layers()
    x = x.to("sim")
    steps = {
        "addmm": lambda: layer(x),
        "mm": lambda: x @ layer.weight.t(),
        "sum": lambda: x.expand(9, 7, 64).sum(-1),
    }
    layer.to("sim")
    with torch.no_grad(), device.planted(nbkit.Fault(op, kind)) as planted:
        trace = stable(steps[op], ops=op)
    assert planted.report()["changed"].item() > 0
    (row,) = trace.stability.itertuples()
    assert getattr(row, column) == "differs"
    far = re.findall(
        r": \d+ elements? differs? by up to ([\d.e+-]+) of the largest element \([\d.,e+]+ ULP\)", row.message
    )
    assert row.max_ulp > 0 and max(map(float, far)) == pytest.approx(row.max_difference_fraction, rel=0.05)
    assert len(trace.findings) == (column == "run_to_run")


def test_what_differs_from_run_to_run_is_a_finding_with_its_line(device):
    layer, x = layers()
    layer.to("sim")
    with device.planted(nbkit.Fault("addmm", "unordered_sum")):
        trace = stable(lambda: layer(x.to("sim")).sum().backward())
    (finding,) = trace.findings.itertuples()
    assert (finding.rule, finding.severity, finding.op) == ("not_repeatable", "error", "aten.addmm.default")
    assert finding.source_text.strip().startswith("trace = stable(lambda: layer(x")
    assert "1 of " in trace.brief() and "gave other bits from the same inputs" in trace.brief()
    assert trace.meta["unstable_ops"] == 1
    others = trace.stability[trace.stability["op"] != "aten.addmm.default"]
    assert (others["run_to_run"] == "same").all()


@pytest.mark.parametrize("name", MODELS)
def test_correct_steps_are_the_same_from_run_to_run(name):
    step = train_step(name)
    step()
    trace = stable(step)
    assert (trace.stability["run_to_run"] == "same").all()
    assert len(trace.findings) == 0
    assert "each gave the same bits from the same inputs." in trace.brief()


def test_elementwise_ops_of_one_kernel_do_not_depend_on_batch_or_threads():
    x = torch.randn(5, 6)
    trace = stable(lambda: (x + 1).abs() * x)
    assert trace.stability[[*CHECKS]].eq("same").all(axis=None)
    assert trace.stability["max_ulp"].tolist() == [0, 0, 0]
    assert trace.stability["message"].isna().all()


def test_rows_that_depend_on_each_other_have_no_batch():
    x = torch.randn(5, 6)
    trace = stable(lambda: (x.sum(0), x.sum(1), x.cumsum(0), torch.stack([x, x])))
    batch = trace.stability.set_index("op")["batch_invariant"]
    assert batch["aten.sum.dim_IntList"].isna().tolist() == [True, False]
    assert batch[["aten.cumsum.default", "aten.stack.default"]].isna().all()


def test_ops_with_several_results_have_a_batch_as_well():
    x = torch.randn(5, 6)
    trace = stable(lambda: (x.sort(1), x.max(1), torch.nn.functional.layer_norm(x, (6,))), ops="sort,max,layer_norm")
    batch = trace.stability.set_index("op")["batch_invariant"]
    assert batch[["aten.sort.default", "aten.max.dim"]].tolist() == ["same", "same"]
    assert batch["aten.native_layer_norm.default"] in ("same", "differs")


@each_step
def test_the_step_computes_the_same_bits(name, dtype):
    assert left_by(name, dtype, nbkit.opstable()) == left_by(name, dtype)


def test_the_number_of_threads_is_as_before():
    before = torch.get_num_threads()
    stable(lambda: torch.randn(40, 40) @ torch.randn(40, 40))
    assert torch.get_num_threads() == before


def test_random_ops_do_not_run_again_and_are_counted():
    x, state = torch.ones(4), torch.get_rng_state()
    trace = stable(lambda: torch.nn.functional.dropout(x, 0.5).add_(torch.rand(4)))
    drawn = torch.get_rng_state()
    torch.set_rng_state(state)
    torch.nn.functional.dropout(x, 0.5).add_(torch.rand(4))
    assert torch.equal(drawn, torch.get_rng_state())
    assert trace.meta["skipped"]["not run again: random ops, which draw other numbers each time"] == 2


def test_calls_that_cannot_run_again_are_counted_by_the_reason():
    class Own(torch.Tensor):
        pass

    sparse, x = torch.eye(2).to_sparse(), torch.zeros(4)
    trace = stable(
        lambda: (torch.ones(2).as_subclass(Own).exp(), sparse.neg(), torch._foreach_add_([x, x[:2]], 1.0)),
        ops="exp,neg,_foreach_add_",
    )
    assert not len(trace.stability) and x.tolist() == [2, 2, 1, 1]
    for reason in ("tensor subclasses", "sparse and quantized tensors", "ops that write to tensors which share memory"):
        assert trace.meta["skipped"][f"not run again: {reason}"] == 1


@pytest.fixture
def particular():
    """Ops that take one call, no single row, and a tensor by keyword."""
    library, calls = torch.library.Library("nbkit_particular", "DEF"), list[int]()

    def once(x):
        calls.append(1)
        if len(calls) > 1:
            raise RuntimeError("no more")
        return x * 2

    def rows(x):
        if len(x) == 1:
            raise ValueError("a single row")
        return x * 2

    for schema, function in {
        "once(Tensor x) -> Tensor": once,
        "rows(Tensor x) -> Tensor": rows,
        "scaled(Tensor x, *, Tensor by) -> Tensor": lambda x, *, by: x * by,
    }.items():
        library.define(schema, tags=(torch.Tag.pointwise,))
        library.impl(schema.partition("(")[0], function, "CompositeExplicitAutograd")
    yield torch.ops.nbkit_particular
    library._destroy()


def test_a_batch_that_an_op_does_not_take_is_left_out_and_the_rest_is_tried(particular):
    trace = stable(lambda: particular.rows(torch.randn(5, 3)), ops="nbkit_particular.*")
    assert trace.stability[[*CHECKS]].to_numpy().tolist() == [["same", "same", "same", "same"]]
    assert "not run again: could not run again: nbkit_particular.rows.default" not in trace.meta["skipped"]


def test_tensors_by_keyword_have_the_rows_of_the_batch(particular):
    x, by = torch.randn(5, 3), torch.arange(15.0).reshape(5, 3)
    trace = stable(lambda: particular.scaled(x, by=by), ops="nbkit_particular.*")
    assert trace.stability[[*CHECKS]].to_numpy().tolist() == [["same", "same", "same", "same"]]


def test_an_op_that_fails_when_it_runs_again_is_counted_and_the_step_goes_on(particular):
    out = []
    trace = stable(lambda: out.append(particular.once(torch.ones(3))), ops="nbkit_particular.*")
    assert out[0].tolist() == [2, 2, 2] and not len(trace.stability)
    assert trace.meta["skipped"]["not run again: could not run again: nbkit_particular.once.default"] == 1


def test_progress_says_how_many_calls_have_run_again():
    tool = nbkit.opstable(ops="mm")
    (observer,) = tool.observers
    assert observer.progress() == "0 calls run again"
    with tool:
        torch.ones(2, 3) @ torch.ones(3, 2)
        assert observer.progress() == "1 call run again"


def test_in_place_and_out_ops_run_again_from_what_they_began_with():
    x, out = torch.arange(6.0), torch.empty(6)
    trace = stable(lambda: (x.mul_(2), torch.add(x, 1, out=out), x.cumsum_(0)))
    assert x.tolist() == [0, 2, 6, 12, 20, 30]
    assert out.tolist() == [1, 3, 5, 7, 9, 11]
    assert trace.stability["op"].tolist() == ["aten.mul_.Tensor", "aten.add.out", "aten.cumsum_.default"]
    assert trace.stability["run_to_run"].tolist() == ["same"] * 3
    assert trace.stability["batch_invariant"].tolist()[0] == "same"


@pytest.mark.parametrize(
    ("op", "device", "text"),
    [
        ("cumsum.default", "meta", "torch documents it as nondeterministic on CUDA"),
        ("cumsum.default", "cpu", None),
        ("index_put_.default", "cpu", "torch documents it as nondeterministic"),
        ("_cudnn_rnn_backward.default", "meta", "torch documents it as nondeterministic on CUDA"),
        ("mul.Tensor", "meta", None),
    ],
)
def test_what_torch_documents_of_an_op_depends_on_the_device(op, device, text):
    packet, overload = op.split(".")
    func = getattr(getattr(torch.ops.aten, packet), overload)
    assert documented(traits_of(func), [torch.empty(2, device=device)]) == text


@pytest.mark.parametrize("batch_first", [False, True])
def test_kernels_of_whole_layers_are_the_same_again_while_they_train(batch_first):
    layer, x = torch.nn.LSTM(24, 64, 2, batch_first=batch_first), torch.randn(12, 20, 24)
    rows = stable(lambda: layer(x)[0].sum().backward(), ops="aten.*rnn_layer*").stability
    if rows.empty:
        pytest.skip("torch runs an LSTM by its parts on this machine")
    assert set(rows["run_to_run"]) == {"same"}
    # They take strides for granted.
    assert rows["stride_invariant"].isna().all()


def test_kernels_that_torch_calls_with_the_strides_they_need_get_no_others():
    heads, image = torch.randn(3, 2, 4, 8, 8, requires_grad=True).unbind(), torch.randn(2, 4, 3, 3, requires_grad=True)
    scale = torch.ones(4, requires_grad=True)
    weighted = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(8, 8))

    def step():
        attended = torch.nn.functional.scaled_dot_product_attention(*heads)
        grouped = torch.nn.functional.group_norm(image, 2)
        normed = torch.nn.functional.batch_norm(grouped, None, None, scale, training=True).relu().square().sum()
        (weighted(attended).square().sum() * normed).backward()

    trace = stable(step, checks="strides")
    tried = trace.stability[trace.stability["stride_invariant"].notna()]
    assert {"aten.addmm.default", "aten.sum.default"} <= set(tried["op"])
    assert tried["max_difference_fraction"].max() < 1e-4  # rounding: 1e25 of the largest element with other strides


def test_an_op_that_uses_up_what_another_one_noted_has_its_inputs_copied():
    backward = traits_of(torch.ops.aten._cudnn_rnn_backward.default)
    assert backward.changes_arguments and not backward.is_writing
    assert not traits_of(torch.ops.aten._cudnn_rnn.default).changes_arguments


def test_a_call_without_inputs_has_no_other_strides_or_batch():
    rows = stable(lambda: torch.full((3,), 2.0)).stability
    assert rows["run_to_run"].tolist() == ["same"]
    assert rows[["stride_invariant", "batch_invariant"]].isna().all(axis=None)


def test_tensors_of_the_step_live_as_long_as_without():
    def step():
        x = torch.randn(4, 3)
        out = [x.mul(2), x.clone().add_(1)]
        references = [ref(one) for one in (x, *out)]
        del x, out
        assert [one() for one in references] == [None] * 3

    stable(step)


def test_documented_ops_are_marked():
    trace = stable(lambda: torch.zeros(3).index_put_((torch.tensor([0, 2]),), torch.ones(2)))
    message = trace.stability.set_index("op")["message"]["aten.index_put_.default"]
    assert message == "torch documents it as nondeterministic"


def test_calls_alike_are_tried_otherwise_only_a_few_times():
    x = torch.randn(3, 3)
    trace = stable(lambda: [x.exp() for _ in range(4)])
    assert trace.stability["run_to_run"].tolist() == ["same"] * 4
    assert trace.stability["batch_invariant"].isna().tolist() == [False, False, True, True]
    assert stable(lambda: [x.exp() for _ in range(4)], alike=None).stability["thread_invariant"].notna().all()
    only = stable(lambda: x.exp(), checks="strides").stability
    assert only[[*CHECKS]].isna().to_numpy().tolist() == [[False, True, True, False]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reruns": 0}, "reruns must be a whole number from 1 up, got 0"),
        ({"alike": "two"}, "alike must be a whole number from 1 up, got 'two'"),
        ({"checks": "batches"}, "checks='batches' is not known; .*batch"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(nbkit.OptionError, match=message):
        nbkit.opstable(**options)


class Half(TorchDispatchMode):
    """Changes what products give, and counts the calls that it sees."""

    seen = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen += 1
        return func(*args, **(kwargs or {})) * (0.5 if func is torch.ops.aten.mm.default else 1)


def test_ops_below_a_mode_of_the_step_are_not_run_again_and_the_mode_sees_no_more():
    with Half() as mode, nbkit.opstable() as trace:
        out = torch.ones(2, 2).mm(torch.ones(2, 2))
    assert (out.tolist(), mode.seen) == ([[1.0, 1.0], [1.0, 1.0]], 3)
    assert len(trace.stability) == len(trace.findings) == 0
    assert next(iter(trace.meta["skipped"])).startswith("not run again: ops below a dispatch mode of the step's own")
