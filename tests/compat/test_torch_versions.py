"""Older versions of torch: what their events do not tell is derived, what they do not know is left out."""

from types import SimpleNamespace

import pytest
import torch
from torch._C._autograd import DeviceType
from torch.overrides import TorchFunctionMode
from torch.profiler import ProfilerActivity, profile, record_function

import nbkit
from nbkit.compat import torch_versions
from nbkit.compat.torch_versions import (
    current_accelerator,
    derived_activity,
    experimental_config,
    is_compile_wrapper,
    set_version,
    shown,
)


def event(name: str, device=DeviceType.CPU, annotated=False):
    return SimpleNamespace(name=lambda: name, device_type=lambda: device, is_user_annotation=lambda: annotated)


@pytest.mark.parametrize(
    ("made", "activity"),
    [
        (event("aten::mm"), "cpu_op"),
        (event("custom_step"), "cpu_op"),
        (event("block", annotated=True), "user_annotation"),
        (event("block", DeviceType.CUDA, annotated=True), "gpu_user_annotation"),
        (event("cudaLaunchKernel"), "cuda_runtime"),
        (event("hipMemcpyAsync"), "cuda_runtime"),
        (event("cuLaunchKernelEx"), "cuda_driver"),
        (event("cudnn::convolution"), "cpu_op"),
        (event("void gemm<float>(int)", DeviceType.CUDA), "kernel"),
        (event("Memcpy HtoD (Pinned -> Device)", DeviceType.CUDA), "gpu_memcpy"),
        (event("Memset (Device)", DeviceType.CUDA), "gpu_memset"),
        (event("[memory]"), "cpu_instant_event"),
        (event("Activity Buffer Request"), "overhead"),
    ],
)
def test_the_kind_of_an_event_follows_from_its_device_and_name(made, activity):
    assert derived_activity(made) == activity


def test_derived_kinds_are_those_that_torch_tells():
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded, record_function("block"):
        torch.nn.Linear(4, 4)(torch.ones(2, 4)).sum().backward()
    events = recorded.profiler.kineto_results.events()
    assert {"aten::addmm", "block", "[memory]"} <= {each.name() for each in events}
    assert [derived_activity(each) for each in events] == [torch_versions.activity(each) for each in events]


def test_options_that_torch_does_not_know_are_left_out():
    experimental_config(capture_overload_names=True, an_option_of_later=True)
    with pytest.raises(TypeError, match="an_option_of_later"):
        torch_versions._ExperimentalConfig(an_option_of_later=True)


class Noting(TorchFunctionMode):
    def __init__(self, met):
        super().__init__()
        self.met = met

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.met.append((self, func.__name__))
        return func(*args, **(kwargs or {}))


def test_a_call_that_torch_hides_is_shown_to_each_mode_once():
    ran, met = [], []
    showing = shown(torch.autograd.backward, lambda *args, **kwargs: ran.append((args, kwargs)))
    with Noting(met) as outer, Noting(met) as inner:
        showing([1], retain_graph=True)
    assert met == [(inner, "backward"), (outer, "backward")]
    showing(2)
    assert ran == [(([1],), {"retain_graph": True}), ((2,), {})] and len(met) == 2


def test_a_recording_shows_what_torch_hides_and_puts_it_back(monkeypatch):
    monkeypatch.setattr("nbkit.capture.step.function_mode.HIDES_BACKWARD", True)
    hidden = torch.autograd.backward
    monkeypatch.setattr(torch.autograd, "backward", lambda tensors: hidden(tensors, inputs=[leaf]))
    before, leaf = torch.autograd.backward, torch.ones(2, requires_grad=True)
    loss = leaf.exp().sum()
    with nbkit.optrace() as trace:
        torch.autograd.backward([loss])
    assert torch.autograd.backward is before and leaf.grad is not None
    rows = trace.ops[trace.ops["level"] == "api"]
    assert len(rows) == 1 and set(trace.ops["phase"]) == {"backward"}


def test_how_often_a_tensor_was_written_to_is_set():
    tensor = torch.ones(2).add_(1).add_(1)
    set_version(tensor, 7)
    assert tensor._version == 7


def test_the_accelerator_of_a_build_that_is_not_there_is_none(monkeypatch):
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    assert current_accelerator() is None
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    assert current_accelerator() == torch.device("cuda")


def test_what_compile_puts_around_a_function_is_told_from_what_disable_puts_there():
    def wrapped_as_torch_2_6_does(callback):
        def _fn():
            return callback

        return _fn

    assert is_compile_wrapper(wrapped_as_torch_2_6_does(None).__code__)
    assert is_compile_wrapper(torch.compile(event, backend="eager").__code__)
    assert not is_compile_wrapper(torch.compiler.disable(event).__code__)
    assert not is_compile_wrapper(event.__code__)
