"""Recognizes RWKV by names and shapes of its parameters: time mix and channel mix of versions 4 to 7.

The names are those of the released code (BlinkDL/RWKV-LM, RWKV-v4 to RWKV-v7) and of transformers' RWKV-4.
"""

from collections.abc import Mapping, Set

Shape = tuple[int, ...]

# What a time mix of that version has, newest first; a later version keeps none of an earlier one's.
TIME_MIX_MARKS = {
    7: ({"r_k", "k_k", "k_a"},),
    6: ({"time_maa_x", "time_decay"}, {"time_maa_r", "time_decay"}),
    5: ({"time_faaaa", "time_decay"}, {"time_first", "time_decay", "ln_x"}),
    4: ({"time_first", "time_decay"},),
}
PROJECTIONS = {"receptance", "key", "value"}
CHANNEL_MIX_MARKS = {
    7: {"x_k", "key", "value"},
    6: {"time_maa_k", "time_maa_r", *PROJECTIONS},
}
# Versions 4 and 5 mix channels alike; transformers writes the names out.
EARLY_MARKS = ({"time_mix_k", "time_mix_r"}, {"time_mix_key", "time_mix_receptance"})


def rwkv_role(held: Set[str], shapes: Mapping[str, Shape | None]) -> tuple[str, str] | None:
    """Returns time_mix or channel_mix and the evidence, for a module that holds these names; None if it is neither.

    `held` is the names of its parameters and of its direct modules, `shapes` is that of each parameter if known.
    """
    return _time_mix(held, shapes) or _channel_mix(held)


def _time_mix(held: Set[str], shapes: Mapping[str, Shape | None]) -> tuple[str, str] | None:
    for version, marks in TIME_MIX_MARKS.items():
        for mark in marks:
            if mark <= held:
                version = _by_form(version, shapes)
                return "time_mix", f"RWKV-{version}: it holds {_listed(mark)}"
    # An exporter may have folded time_decay and time_first into constants of its own.
    if {*PROJECTIONS, "output"} <= held and any(name.startswith(("time_", "x_")) for name in held):
        return "time_mix", f"RWKV: it holds {_listed({*PROJECTIONS, 'output'})}"
    return None


def _by_form(version: int, shapes: Mapping[str, Shape | None]) -> int:
    """Returns 4 if there is a decay per mixed channel, 5 if there is one per head, or per head and channel of it."""
    decay = shapes.get("time_decay")
    mix = next((shapes[name] for name in ("time_mix_k", "time_mix_key") if shapes.get(name)), None)
    if version not in (4, 5) or decay is None or mix is None:
        return version
    return 4 if decay == mix[-1:] else 5


def _channel_mix(held: Set[str]) -> tuple[str, str] | None:
    for version, mark in CHANNEL_MIX_MARKS.items():
        others = {"output", "query", "receptance"} if version == 7 else {"output"}
        if mark <= held and not others & held:
            return "channel_mix", f"RWKV-{version}: it holds {_listed(mark)}"
    if held >= PROJECTIONS and "output" not in held and any(mark <= held for mark in EARLY_MARKS):
        return "channel_mix", f"RWKV-4 or 5: it holds {_listed({*PROJECTIONS, *(n for n in held if 'mix' in n)})}"
    return None


def _listed(names: Set[str]) -> str:
    *first, last = sorted(names)
    return f"{', '.join(first)} and {last}" if first else last
