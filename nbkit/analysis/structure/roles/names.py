"""Finds roles of modules by their class, their path and the names of what is in them."""

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass

from nbkit.analysis.structure.roles.rwkv import Shape, rwkv_role

NORM_TYPE = re.compile(r"(?i)^(?!.*(weight|spectral|pre|post|quant)_?norm).*(norm(\d?d)?|normalization)$")
NORM_NAME = re.compile(
    r"(?i)^(ln|bn)(_?(\d+|[a-z]+))?$|^(layer|rms|batch|group)_?norm\d*$|(^|_)(layer)?norm(_?(\d+|f))?$"
)
ROTARY = re.compile(r"(?i)rotary|rope($|_)")
EMBEDDING_TYPE = re.compile(r"(?i)embed(ding)?s?(1d|2d)?$")
# Attention that has no softmax is not what "attention" says.
ATTENTION_TYPE = re.compile(
    r"(?i)^(?!.*(linear|lightning|retention|delta|rwkv|mamba|gated_?unit)).*(attention|attn)\w*$"
)
ATTENTION_NAME = re.compile(r"(?i)^(self_|cross_|encoder_)?(attn|attention)$")
MLP_TYPE = re.compile(r"(?i)(mlp|feed_?forward|ffn)$")
MLP_FORMS = (
    {"gate_proj", "up_proj", "down_proj"},
    {"gate_up_proj", "down_proj"},
    {"w1", "w2", "w3"},
    {"c_fc", "c_proj"},
    {"fc1", "fc2"},
    {"dense_h_to_4h", "dense_4h_to_h"},
    {"wi", "wo"},
    {"wi_0", "wi_1", "wo"},
)
ATTENTION_FORMS = (
    {"q_proj", "k_proj", "v_proj"},
    {"wq", "wk", "wv"},
    {"c_attn", "c_proj"},
    {"qkv", "proj"},
    {"qkv_proj", "o_proj"},
    {"query_key_value", "dense"},
)
HEADS = {"lm_head", "embed_out", "head", "unembed", "score", "classifier"}
LOSS_TYPE = re.compile(r"(?i)(loss|crossentropy)\w*$")


@dataclass(frozen=True)
class Module:
    """Holds what names say of one module: its class, the last piece of its path, its parameters and its modules."""

    type: str | None
    name: str
    parameters: Mapping[str, Shape | None]
    children: Set[str]

    @property
    def held(self) -> set[str]:
        return {*self.parameters, *self.children}


def role_by_names(module: Module) -> tuple[str, str] | None:
    """Returns role and evidence as far as names alone tell them; None where they do not."""
    return rwkv_role(module.held, module.parameters) or _leaf(module) or _by_type(module) or _by_form(module)


def _leaf(module: Module) -> tuple[str, str] | None:
    """Returns the role of a module that holds no others."""
    if module.children:
        return None
    dimensions = [len(shape) for shape in module.parameters.values() if shape is not None]
    if max(dimensions, default=0) <= 1:
        if module.type and NORM_TYPE.search(module.type):
            return "norm", f"its class is {module.type}"
        if module.type is None and NORM_NAME.search(module.name) and module.parameters:
            return "norm", f"it is called {module.name} and holds {', '.join(module.parameters)}"
    if (
        module.type
        and EMBEDDING_TYPE.search(module.type)
        and not ROTARY.search(module.type)
        and dimensions in ([], [2])
    ):
        return "embedding", f"its class is {module.type}"
    if (
        module.name in HEADS
        and (module.type is None or module.type.startswith("Linear"))
        and dimensions[:1] in ([2], [])
    ):
        return "head", f"it is a projection called {module.name}"
    return None


def _by_type(module: Module) -> tuple[str, str] | None:
    kind = module.type
    if kind is None:
        return None
    if ROTARY.search(kind):
        return "rotary", f"its class is {kind}"
    if LOSS_TYPE.search(kind):
        return "loss", f"its class is {kind}"
    if module.held and ATTENTION_TYPE.search(kind):
        return "attention", f"its class is {kind}"
    if module.children and MLP_TYPE.search(kind):
        return "mlp", f"its class is {kind}"
    return None


def _by_form(module: Module) -> tuple[str, str] | None:
    """Returns the role by its modules; attention needs a name that says so, too, and no class that says otherwise."""
    if ROTARY.search(module.name):
        return "rotary", f"it is called {module.name}"
    for form in ATTENTION_FORMS:
        if module.type is None and form <= module.held and ATTENTION_NAME.search(module.name):
            return "attention", f"it is called {module.name} and holds {', '.join(sorted(form))}"
    if any(form <= module.held for form in ATTENTION_FORMS):
        return None  # a block that holds the projections of its attention, too
    for form in MLP_FORMS:
        if form <= module.held and not ATTENTION_NAME.search(module.name):
            return "mlp", f"it holds {', '.join(sorted(form))}"
    return None
