"""The dispatch mode that runs every op of the step on the shadows as well."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nbkit.capture.diff.shadow.shadows import Shadows, is_shadowed, is_valueless
from nbkit.capture.diff.shadow.target import Target
from nbkit.capture.raw.recording import Recording
from nbkit.capture.raw.shards import has_dtensor_type
from nbkit.capture.replay.below_mode import BelowMode
from nbkit.capture.replay.copies import all_tensors, mapped_call, narrowed_call, tensors_in
from nbkit.capture.replay.op_traits import COLLECTIVES, MARKERS, OpTraits, bound, draws, written_tensors
from nbkit.capture.replay.phases import turned
from nbkit.capture.replay.reference import CPU, Results
from nbkit.capture.replay.substitutes import SUBSTITUTES
from nbkit.ops.families import DRAWS, UNFILLED

Arguments = tuple[Any, Any]


class ShadowMode(BelowMode):
    """Follows the step with a run in another precision; what the ops return is passed on as it is.

    `made` holds what the last op made of the shadows, by the id of the step's tensor.
    """

    def __init__(self, recording: Recording, target: Target) -> None:
        super().__init__(recording)
        self.target, self.shadows = target, Shadows(target)
        self.made: dict[int, Tensor] = {}
        self.followed = self.diverged = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if has_dtensor_type(types):  # the ops that it runs on the shards of this process come next
            return NotImplemented
        kwargs = kwargs or {}
        traits = self.traits(func)
        self.made = {}
        if any(is_valueless(tensor) for tensor in all_tensors(args, kwargs)):
            return func(*args, **kwargs)
        if traits.leave_out is not None:
            out = func(*args, **kwargs)
            self._work(traits, lambda: self._after_left_out(traits, (args, kwargs), out))
            return out
        shadow = self._work(traits, lambda: self._shadow_call(traits, args, kwargs))
        out = func(*args, **kwargs)
        self._work(traits, lambda: self._follow(traits, (args, kwargs), shadow, out))
        return out

    def _work(self, traits: OpTraits, work: Callable[[], Any]) -> Any:
        def trouble(error: Exception) -> None:
            self.shadows.restarts[f"{traits.name} ({type(error).__name__})"] += 1

        if not torch.is_inference_mode_enabled():
            return self.isolated(work, trouble)
        with torch.inference_mode(False):  # a shadow outlives it, and may be written to outside
            return self.isolated(work, trouble)

    def _after_left_out(self, traits: OpTraits, arguments: Arguments, out: Any) -> None:
        """Views need nothing, but one that made memory of its own is an op like others."""
        namespace = getattr(traits.func, "namespace", "")
        if namespace in COLLECTIVES:
            for tensor in all_tensors(*arguments):
                self.shadows.forget(tensor)
            self.shadows.restarts["collectives"] += 1
            return
        if namespace in MARKERS or traits.packet in UNFILLED:
            return
        inputs = _storages(all_tensors(*arguments))
        if any(is_shadowed(tensor) and not _storages([tensor]) <= inputs for tensor in tensors_in(out)):
            if traits.packet:
                self._follow(traits, arguments, self._shadow_call(traits, *arguments), out)
            else:
                self.shadows.restarts["higher-order ops"] += 1

    def _shadow_call(self, traits: OpTraits, args: Any, kwargs: Any) -> Arguments:
        """The call with shadows in place of tensors; others are copied if the op may write to them."""
        written = written_tensors(traits, args, kwargs)
        keeps = all(is_shadowed(tensor) for tensor in written)

        def shadow_of(tensor: Tensor) -> Tensor:
            if is_shadowed(tensor):
                return self.shadows.of(tensor)
            if (tensor.is_floating_point() or tensor.is_quantized) and not is_valueless(tensor):
                kind = "quantized" if tensor.is_quantized else str(tensor.layout).removeprefix("torch.")
                self.shadows.restarts[f"{kind} tensors have no shadow, so the step's own are read"] += 1
            return self.target.bring(tensor, copy=not keeps)

        return mapped_call(args, kwargs, self.target.changing(shadow_of), {})

    def _follow(self, traits: OpTraits, actual: Arguments, shadow: Arguments | None, out: Any) -> None:
        tensors = self._results(traits, out, *actual)
        if any(is_valueless(tensor) for tensor in tensors):
            return
        if shadow is not None:
            is_drawn = traits.is_random and draws(traits, *actual)
            results = (
                self._drawn(traits, actual, shadow, tensors) if is_drawn else self._run(traits, actual, shadow, tensors)
            )
        if results is not None and len(results) == len(tensors) and not all(map(_is_alike, tensors, results)):
            self.shadows.restarts[f"{traits.name} gives another shape than in the step"] += 1
            results = None
        if shadow is None or results is None or len(results) != len(tensors):
            for tensor in tensors:
                self.shadows.renew(tensor)
            return
        self.followed += 1
        self.diverged += sum(map(_differs, tensors[: traits.values], results))
        self._keep(_storages(all_tensors(*actual)), _storages(all_tensors(*shadow)), tensors, results)

    def _run(
        self, traits: OpTraits, actual: Arguments, shadow: Arguments, tensors: list[Tensor]
    ) -> list[Tensor] | None:
        """What the op makes of the shadows, if need be narrowed to dtypes that it has a kernel for; None if it cannot.

        Vectors without direction get that of the step's.
        """
        try:
            return turned(traits.packet, self._made(traits, *shadow), tensors)
        except Exception as error:
            first = error
        for narrow in (mapped_call(*shadow, _in_float32, {}), narrowed_call(shadow, actual)):
            try:
                results = self._made(traits, *narrow)
            except Exception:  # the next one may do, and the first error tells most
                continue
            for wide, narrowed in zip(written_tensors(traits, *shadow), written_tensors(traits, *narrow), strict=True):
                wide.copy_(narrowed)
            self.skipped[traits.name] += 1
            return turned(traits.packet, results, tensors)
        self.shadows.restarts[f"{traits.name} cannot run on {self.target.text} ({type(first).__name__})"] += 1
        return None

    def _made(self, traits: OpTraits, args: Any, kwargs: Any) -> list[Tensor]:
        """What a call makes; of ops that have no kernel on the CPU what stands in for them makes it."""
        if self._has_substitute(traits):
            return self._results(traits, SUBSTITUTES[traits.packet](bound(traits.func, args, kwargs)), args, kwargs)
        return self._results(traits, traits.func._op(*args, **kwargs), args, kwargs)

    def _results(self, traits: OpTraits, out: Any, args: Any, kwargs: Any) -> list[Tensor]:
        """The results that both runs have: what stands in for an op makes no notes for its backward op."""
        return Results(
            out, written_tensors(traits, args, kwargs), traits.values if self._has_substitute(traits) else None
        ).all

    def _has_substitute(self, traits: OpTraits) -> bool:
        return traits.packet in SUBSTITUTES and self.target.device == CPU

    def _drawn(
        self, traits: OpTraits, actual: Arguments, shadow: Arguments, tensors: list[Tensor]
    ) -> list[Tensor] | None:
        """What a random op makes of the shadows with the step's own draw; None where that is the step's own result."""
        if traits.packet == "native_dropout":
            arguments = bound(traits.func, *shadow)
            mask = self.target.bring(tensors[1], copy=False)
            share = 1 - float(arguments["p"])
            return [arguments["input"] * mask * (1 / share if share else 0.0), mask]
        depends = [
            tensor for tensor in all_tensors(*actual) if is_shadowed(tensor) and not any(tensor is t for t in tensors)
        ]
        # Of rand_like the result is drawn whatever the values of the tensor given.
        if depends and not (traits.packet in DRAWS and traits.packet.endswith("_like")):
            self.shadows.restarts[f"{traits.name} draws by values, so the step's own draw is taken"] += 1
        return None

    def _keep(self, old: set[int], shared: set[int], tensors: list[Tensor], results: list[Tensor]) -> None:
        """Make what was found the shadows of the op's tensors; integers and bools stay the step's own.

        `old` are the storages of the op's inputs, which need nothing; `shared` are those of their shadows.
        """
        fresh: set[int] = set()
        for tensor, result in zip(tensors, results, strict=True):
            if not is_shadowed(tensor):
                self.made[id(tensor)] = result
                continue
            key = id(tensor.untyped_storage())
            if key in fresh:
                self.shadows.of(tensor).copy_(result)
            elif key not in old:
                is_alias = _storages([result]) <= shared
                self.shadows.adopt(tensor, result.clone() if is_alias else result)
                fresh.add(key)
            self.made[id(tensor)] = self.shadows.of(tensor)


def _storages(tensors: list[Tensor]) -> set[int]:
    return {id(tensor.untyped_storage()) for tensor in tensors if tensor.layout is torch.strided}


def _is_alike(tensor: Tensor, result: Tensor) -> bool:
    return tensor.is_nested or result.is_nested or tensor.shape == result.shape


def _differs(tensor: Tensor, result: Tensor) -> bool:
    """Whether integers or bools of the shadow are others than the step's."""
    if is_shadowed(tensor) or tensor.layout is not torch.strided or tensor.shape != result.shape or tensor.is_meta:
        return False
    return not torch.equal(tensor.to(result.device), result)


def _in_float32(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.to(torch.float32) if value.dtype is torch.float64 else value.clone()
    return torch.float32 if value is torch.float64 else value
