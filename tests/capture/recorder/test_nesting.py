"""Tests each verb inside each: both traces are as if the verb were alone, or one sentence refuses it beforehand."""

from contextlib import ExitStack
from itertools import product

import pandas as pd
import pytest
import torch

import nbkit
from nbkit import OptionError
from tests.capture.models import MODELS, OPTIMIZERS, SeenOps, bits, in_any_mode, loss_of, recorded_ops
from tests.capture.timed import timed_name

OTHERS = ("optrace", "opcheck", "opdiff")
VERBS = (*OTHERS, "optime")
COUNTS_OTHERS = (
    "{inner} cannot run inside {outer}: optime would count the work of {other} as the step's. Record the step once "
    "with each."
)
REFUSED = {
    ("optime", "optime"): "A profiler is running in this thread already (torch.profiler or optime); end it first.",
    **{(verb, "optime"): COUNTS_OTHERS.format(inner="optime", outer=verb, other=verb) for verb in OTHERS},
    **{("optime", verb): COUNTS_OTHERS.format(inner=verb, outer="optime", other=verb) for verb in OTHERS},
}
TIMES = ["start_us", "total_time_us", "self_time_us"]
PAIRS = [*product(VERBS, VERBS)]


@pytest.fixture(params=["native", "python"], autouse=True)
def recorder(request, monkeypatch):
    """Runs both recorders, the native one where it is built."""
    monkeypatch.delenv("NBKIT_RECORDER", raising=False)
    if request.param == "python":
        monkeypatch.setenv("NBKIT_RECORDER", "python")


def recorded(*watches):
    """Returns the traces of one training step, outermost first, and all that the step left, to the bit."""
    torch.manual_seed(7)
    model = MODELS["mlp"]()
    optimizer = OPTIMIZERS["adamw"](model.parameters())
    with ExitStack() as stack:
        traces = [stack.enter_context(watch) for watch in watches]
        loss = loss_of(model, "mlp") / torch.tensor(0.0).exp() + torch.tensor([0.0]).log().clamp(min=0).sum()
        loss.backward()
        optimizer.step()
    left = [loss, *(parameter.grad for parameter in model.parameters()), *model.parameters(), torch.get_rng_state()]
    return traces, bits(left)


def timeless(trace):
    """Returns the frames of a trace without the times, which differ from run to run."""
    return {**trace.frames, "ops": trace.ops.drop(columns=TIMES)}


def assert_same_frames(trace, expected, names=None):
    frames, others = timeless(trace), timeless(expected)
    assert names is not None or set(frames) == set(others)
    for name in names or frames:
        pd.testing.assert_frame_equal(frames[name], others[name])


@pytest.mark.parametrize("verb", ["opcheck", "opdiff", "opdoctor"])
def test_calls_lie_in_their_callers_without_the_time_of_what_nbkit_reads(verb):
    (trace,), _ = recorded(getattr(nbkit, verb)())
    end = trace.ops["start_us"] + trace.ops["total_time_us"]
    called = trace.ops["parent_id"].notna()
    around = trace.ops.loc[called, "parent_id"].astype(int)
    assert (trace.ops["start_us"][called].to_numpy() >= trace.ops["start_us"][around].to_numpy() - 1e-3).all()
    assert (end[called].to_numpy() <= end[around].to_numpy() + 1e-3).all()


def modes_see_the_same():
    """Returns whether, of two bare dispatch modes, the outer one sees what the inner one sees."""
    x = torch.ones(2, requires_grad=True)
    with SeenOps() as outer, SeenOps() as inner:
        (x.exp() * 2).tanh().sum().backward()
    return outer.counts == inner.counts


@pytest.mark.parametrize(("outer", "inner"), [pair for pair in PAIRS if pair not in REFUSED])
def test_each_trace_is_as_without_the_other(outer, inner):
    verbs = [getattr(nbkit, outer), getattr(nbkit, inner)]
    traces, left = recorded(*(verb() for verb in verbs))
    for verb, trace in zip(verbs, traces, strict=True):
        alone = recorded(verb())[0][0]
        # under opdiff's mode torch itself runs some ops otherwise, and up to 2.8 where it takes another one
        if ("opdiff" in (outer, inner) and outer != inner) or not modes_see_the_same():
            assert in_any_mode(recorded_ops(trace)) == in_any_mode(recorded_ops(alone))
        else:
            assert_same_frames(trace, alone)
    assert left == recorded()[1]


@pytest.mark.parametrize(("outer", "inner"), REFUSED)
def test_what_cannot_be_right_is_refused_before_anything_runs(outer, inner):
    recording, ran = getattr(nbkit, inner)(), []
    with getattr(nbkit, outer)() as trace:
        with pytest.raises(OptionError) as raised, recording:
            ran.append(torch.ones(2))
        torch.zeros(2)
    assert str(raised.value) == REFUSED[outer, inner]
    assert (ran, recording.trace, trace.complete) == ([], None, True)
    assert set(trace.ops["op"]) & {"aten.zeros.default", timed_name("aten.zeros.default")}
    with recording as later:  # refused, not used up
        torch.ones(2)
    assert set(later.ops["op"]) & {"aten.ones.default", timed_name("aten.ones.default")}


def test_the_table_has_all_sixteen():
    assert len(PAIRS) == 16
    assert set(REFUSED) <= set(PAIRS)
    assert len(REFUSED) == 7


def test_a_warm_up_run_refuses_too():
    """Nothing is timed then, but the recorded run would be."""
    with pytest.raises(OptionError, match=r"^optrace cannot run inside optime"):
        nbkit.optime(warmup=1).run(lambda: recorded(nbkit.optrace()))
    recorded(nbkit.optrace())
