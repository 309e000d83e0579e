"""Fake tensors for a step: torch's own mode, which finds the result of a call that it has met by fewer questions."""

from functools import cache
from itertools import count
from typing import Any

import torch
from torch import Tensor
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.nn import Parameter

from nbkit.capture.cost.fake.absent_devices import as_asked, stand_in
from nbkit.capture.replay.copies import all_tensors
from nbkit.ops.families import QUIET_VIEWS
from nbkit.ops.undeclared import WHOLE_COPIES

META = torch.device("meta")  # to name it by a text takes as long as to make the tensor
# What torch's key of a call takes as it is, with its type: 1 and 1.0 are the same to a dict.
PLAIN = frozenset(
    {int, float, bool, complex, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format}
)


# What torch keeps of a call whose result it can make again; another version may keep something else.
ENTRY: Any = getattr(fake_tensor, "_DispatchCacheValidEntry", ())
NOTED = "_nbkit_noted"  # of a fake tensor: the id of its memory, its shape, and the number of its layout
DEVICE = torch.ops.prim.device.default  # torch in C++ asks so; Python asks the tensor itself
INPLACE_VIEW = torch.Tag.inplace_view
with torch.inference_mode(False):  # the first use of nbkit may be inside of it
    KEYS_OF_PLAIN = torch._C._dispatch_keys(torch.empty(0, device="cpu"))
# Torch's keys of calls by what decides them, and numbers of layouts: both outlive a step, as torch's own memory does.
KEYS: dict[tuple[Any, ...], Any] = {}
LAYOUTS: dict[tuple[Any, ...], int] = {}
ANYWHERE: dict[int, int] = {}  # of a layout, the number of the same layout at any place of a memory of any size
NUMBERS = count()  # a number never stands for a second layout
MOST_KEYS = 100_000


def _is_plain(real: Tensor) -> bool:
    """Returns whether a tensor is on the CPU, dense, and no view, and has neither a history nor a gradient."""
    return (
        type(real) in (Tensor, Parameter)
        and torch._C._dispatch_keys(real) == KEYS_OF_PLAIN  # none of quantized, conjugated or nested, of functorch
        and real.is_leaf
        and not real._is_view()
        and real.grad is None
        and real.storage_offset() == 0
        and (not real.requires_grad or getattr(real, "grad_dtype", real.dtype) == real.dtype)
        and not getattr(real, "_is_buffer", False)
    )


@cache
def _makes_anew(func: Any) -> bool:
    """Returns whether the results of an op lie at the beginning of new memories, wherever its inputs lie."""
    given = [*func._schema.arguments, *func._schema.returns]
    is_new = bool(func._schema.returns) and all(one.alias_info is None for one in given)
    return is_new and func._opname not in QUIET_VIEWS | WHOLE_COPIES


class Alike:
    """Holds what calls that are alike have in common: the same tensors share a memory in each of them, too."""

    __slots__ = ("costs", "patterns")

    def __init__(self, has_kept_result: bool) -> None:
        self.costs: dict[bool | str, Any] = {}
        self.patterns: dict[Any, Any] | None = {} if has_kept_result else None


class Known:
    """Holds what torch keeps of a call, null if it keeps nothing, and what such calls have in common."""

    __slots__ = ("alike", "entry")

    def __init__(self, entry: Any) -> None:
        self.entry, self.alike = entry, dict[tuple[int, ...], Alike]()


class FakeMode(FakeTensorMode):
    """Makes torch's key of a call once; the next such call is told by what decides it alone.

    torch keeps the results of calls by a key that holds 17 properties of each tensor, most of which follow from others.
    Asking for them takes longer than making the result: they are noted on each tensor. A call with anything unusual is
    left to torch.
    """

    def __init__(self) -> None:
        super().__init__()
        if len(KEYS) > MOST_KEYS:
            KEYS.clear()
            LAYOUTS.clear()
            ANYWHERE.clear()
        self.keys = KEYS if self.cache_enabled else {}
        self.known: dict[tuple[Any, ...], Known] = {}
        self.codes: dict[int, int] = {}  # numbers of layouts, by the id of what torch keeps of a result
        is_lenient = getattr(self, "_allow_unsafe_data_ptr_access", False)
        name = "_set_warn_deprecated_on_mutable_data_ptr" if is_lenient else "_set_throw_on_mutable_data_ptr"
        self.guard = getattr(torch._C, name)  # its memory is not there
        self.attributes: dict[Any, dict[str, Any]] = {}  # of a fake tensor, by its device
        # Of the last call: what such calls have in common, null if it was unusual, and the ids of what it took.
        self.alike: Alike | None = None
        self.memories: list[int] = []

    def __deepcopy__(self, memo: dict[int, Any]) -> "FakeMode":
        return self  # a copied tensor is one of the same step: nn.TransformerEncoder copies the layer that it gets

    def dispatch(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is DEVICE:
            return META if self.in_kernel_invocation else stand_in(args[0].fake_device)
        kwargs = as_asked(kwargs or {})
        memories: list[int] = []
        short = self._short(func, args, kwargs, memories)
        known = None
        if short is not None:
            known = self.known.get(short) or self._met_before(short) or self._met_elsewhere(short, func, args, kwargs)
        if known is None or known.entry is None:
            out = super().dispatch(func, types, args, kwargs)
            if short is not None and known is None:
                known = self._met_before(short) or self.known.setdefault(short, Known(None))
            if INPLACE_VIEW in func.tags:
                self.forget(args)
        elif known.entry.is_output_tuple:
            out = tuple([self._made(info, func, args) for info in known.entry.output_infos])
        else:
            out = self._made(known.entry.output_infos[0], func, args)
        self.memories, self.alike = memories, None
        if known is not None:
            is_shared = len(memories) > 1 and len({*memories}) < len(memories)
            aliases = tuple(map(memories.index, memories)) if is_shared else ()
            self.alike = known.alike.get(aliases)
            if self.alike is None:
                self.alike = known.alike[aliases] = Alike(known.entry is not None)
        return out

    def _met_before(self, short: tuple[Any, ...]) -> Known | None:
        """Returns what torch keeps of a call that it has met, in this step or before; None if it keeps nothing."""
        entry = FakeTensorMode.cache.get(self.keys[short]) if short in self.keys else None
        if not isinstance(entry, ENTRY):
            return None
        known = self.known[short] = Known(entry)
        return known

    def _met_elsewhere(self, short: tuple[Any, ...], func: Any, args: Any, kwargs: Any) -> Known | None:
        """Returns what torch keeps of the call with its inputs at other places of their memories: the same, if new."""
        if not _makes_anew(func):
            return None
        key = self.keys.get(self._short(func, args, kwargs, [], True))  # type: ignore[arg-type]  # as short is
        if key is None:
            return None
        self.keys[short] = key
        return self._met_before(short)

    @staticmethod
    def forget(args: Any) -> None:
        """Drops what is noted of tensors: it has changed."""
        for tensor in args:
            if isinstance(tensor, FakeTensor):
                vars(tensor).pop(NOTED, None)

    def _made(self, info: Any, func: Any, args: Any) -> Any:
        """Returns a result as torch's memory of calls describes it, by fewer calls than torch makes one."""
        if info.inplace_idx is not None:
            return args[info.inplace_idx]
        like = info.metadata
        if like is None or like.requires_grad or like.layout is not torch.strided or like.is_conj or like.is_neg:
            return self._get_output_tensor_from_cache_entry(None, info, None, func, args)  # type: ignore[arg-type]
        with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
            memory = torch.empty_strided(like.shape, like.stride, dtype=like.dtype, device=META)
            if func.is_view:
                memory.set_(args[info.view_idx].untyped_storage(), like.storage_offset, like.shape, like.stride)
            fake = self._on(memory, like.device)
        code = self.codes.get(id(info))
        if code is None:
            noted = self._noted(fake)
            assert noted is not None  # it is strided
            self.codes[id(info)] = noted[2]
        else:
            vars(fake)[NOTED] = id(memory.untyped_storage()), like.shape, code
        return fake

    def another(self, fake: FakeTensor) -> FakeTensor:
        """Returns a new fake tensor that is the same, without its history."""
        new = self.on(fake, fake.fake_device)
        if (noted := fake.__dict__.get(NOTED)) is not None:
            vars(new)[NOTED] = noted
        return new

    def on(self, memory: Tensor, device: torch.device) -> FakeTensor:
        """Returns a new fake tensor on the memory, and of the layout, of one without values."""
        with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
            return self._on(memory, device)

    def from_real(self, real: Tensor) -> FakeTensor:
        """Returns a fake tensor for a real one, as torch's own converter does; a plain tensor needs few questions."""
        converter = self.fake_tensor_converter
        meta, describer = converter.meta_converter, converter.meta_converter.describer
        is_plain = _is_plain(real) and not torch.is_inference_mode_enabled() and real not in describer.lookup_tensor
        storage = real.untyped_storage() if is_plain else None
        if storage is None or storage in describer.lookup_storage or not storage.nbytes():
            fake = converter.from_real_tensor(self, real)
            self.forget([fake])  # torch makes a view first, and then says that it is conjugated
            return fake
        with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
            memory = torch.empty_strided(real.shape, real.stride(), dtype=real.dtype, device=META)
            fake = self._on(memory, real.device, real.requires_grad)
        if type(real) is Parameter:
            fake._is_param = True
        # Views of it, and others on its memory, are to share what it has.
        converter.set_tensor_memo(real, fake)
        meta.set_storage_memo(describer.describe_storage(storage), memory.untyped_storage())
        return fake

    def _on(self, memory: Tensor, device: torch.device, requires_grad: bool = False) -> FakeTensor:
        attributes = self.attributes.get(device)
        if attributes is None:
            attributes = self.attributes[device] = dict(vars(FakeTensor(self, torch.empty(0, device=META), device)))
        fake: FakeTensor = Tensor._make_subclass(
            FakeTensor, memory, requires_grad, dispatch_device=True, device_for_backend_keys=device
        )
        self.guard(fake)
        vars(fake).update(attributes)
        return fake

    def _short(
        self, func: Any, args: Any, kwargs: Any, memories: list[int], anywhere: bool = False
    ) -> tuple[Any, ...] | None:
        parts: list[Any] = [
            func, torch.get_default_dtype(), torch._C._get_default_device(), torch.is_inference_mode_enabled()
        ]  # fmt: skip
        is_told = self._is_told(parts, args, memories, anywhere) and (
            not kwargs or self._is_told(parts, [*kwargs, *kwargs.values()], memories, anywhere)
        )
        return tuple(parts) if is_told else None

    def _cache_key(self, *asked: Any) -> Any:
        if len(asked) != 4:  # a torch that asks otherwise
            return super()._cache_key(*asked)
        _, func, args, kwargs = asked
        short = self._short(func, args, kwargs, [])
        if short is None:
            return super()._cache_key(*asked)
        key = self.keys.get(short)
        if key is None:
            self.forget(all_tensors(args, kwargs))  # what is noted of a tensor that has changed must not last
            if (short := self._short(func, args, kwargs, [])) is None:
                return super()._cache_key(*asked)
            key = self.keys[short] = super()._cache_key(*asked)
            if _makes_anew(func):
                self.keys.setdefault(self._short(func, args, kwargs, [], True), key)  # type: ignore[arg-type]
        return key

    def _is_told(self, parts: list[Any], values: Any, memories: list[int], anywhere: bool) -> bool:
        """Adds what decides the result, of each value; returns False if one of them is unusual."""
        parts.append(len(values))
        for value in values:
            kind = type(value)
            if kind is FakeTensor:
                if value.fake_mode is not self or value.constant is not None:
                    return False
                noted = value.__dict__.get(NOTED)
                if noted is None or noted[0] != id(value.untyped_storage()) or noted[1] != value.shape:
                    noted = self._noted(value)
                    if noted is None:
                        return False
                parts += (ANYWHERE.get(noted[2], noted[2]) if anywhere else noted[2], value.requires_grad)
                memories.append(noted[0])
            elif kind in PLAIN:
                parts += (kind, value)
            elif kind is list or kind is tuple:
                parts.append(kind)
                if not self._is_told(parts, value, memories, anywhere):
                    return False
            else:
                return False
        return True

    def _noted(self, value: FakeTensor) -> tuple[int, Any, int] | None:
        """Notes a tensor, and returns what is noted; None where it has no memory of its own."""
        if value.layout is not torch.strided:
            return None
        memory = value.untyped_storage()
        layout = (
            value.dtype, value.shape, value.stride(), value.fake_device, value.is_conj(), value.is_neg(),
            value.is_inference(), value.storage_offset(), memory.nbytes(),
        )  # fmt: skip
        number = LAYOUTS.get(layout)
        if number is None:
            number = LAYOUTS[layout] = next(NUMBERS)
            ANYWHERE[number] = LAYOUTS.setdefault(layout[:-2], next(NUMBERS))
        noted = value.__dict__[NOTED] = id(memory), value.shape, number
        return noted
