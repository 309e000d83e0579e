"""Parts of a LLaMA as ONNX models: exported plain and optimised, and optimised once more by onnxruntime.

Weights and inputs are random, and sizes and epsilon chosen so that no two results are equal by chance.
"""

import contextlib
import io
import tempfile
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tests.align_cases.ports.port import randomised

BATCH = 2
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Sizes:
    """Sizes of the LLaMA; these are those of the published comparison."""

    hidden: int = 512
    heads: int = 8
    inner: int = 2_000
    vocabulary: int = 4_000
    eps: float = 0.0123  # so that a mean square before and after it is added are not equal


PUBLISHED = Sizes()
SMALL = Sizes(hidden=64, heads=4, inner=96, vocabulary=100)
PARTS = ("attention", "decoder", "model")


class Part(nn.Module):
    """Attention or a decoder layer with the rotary tables that they read."""

    def __init__(self, model: nn.Module, part: str) -> None:
        super().__init__()
        layer = model.layers[0]
        self.rotary = model.rotary_emb
        self.part = layer if part == "decoder" else layer.self_attn

    def forward(self, hidden_states: Tensor, attention_mask: Tensor, position_ids: Tensor) -> Tensor:
        tables = self.rotary(hidden_states, position_ids)
        found = self.part(hidden_states, attention_mask=attention_mask, position_embeddings=tables)
        return found[0] if isinstance(found, tuple) else found


class Whole(nn.Module):
    """The model from token ids to the last hidden state."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return self.model(input_ids, attention_mask=attention_mask).last_hidden_state


def torch_part(part: str, sizes: Sizes = PUBLISHED) -> nn.Module:
    """Returns a part of a LLaMA of one layer, of which no two weights are alike."""
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(
        hidden_size=sizes.hidden,
        num_attention_heads=sizes.heads,
        num_key_value_heads=sizes.heads,
        intermediate_size=sizes.inner,
        vocab_size=sizes.vocabulary,
        num_hidden_layers=1,
        max_position_embeddings=2_048,
        rms_norm_eps=sizes.eps,
        attn_implementation="eager",
        use_cache=False,
    )
    model = randomised(LlamaModel(config))
    return (Whole(model) if part == "model" else Part(model, part)).eval()


def torch_inputs(part: str, length: int, sizes: Sizes = PUBLISHED) -> dict[str, Tensor]:
    """Returns the inputs of a part by name; a mask is random where it may be, so that adding it changes its input."""
    generator = torch.Generator().manual_seed(length)
    if part == "model":
        ids = torch.randint(sizes.vocabulary, (BATCH, length), generator=generator)
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    mask = torch.randn(BATCH, 1, length, length, generator=generator) - 1e4 * torch.ones(length, length).triu(1)
    return {
        "hidden_states": torch.randn(BATCH, length, sizes.hidden, generator=generator),
        "attention_mask": mask,
        "position_ids": torch.arange(length).expand(BATCH, -1).contiguous(),
    }


def inputs_of(part: str, length: int, sizes: Sizes = PUBLISHED) -> Arrays:
    """Returns the same as arrays."""
    return {name: value.numpy() for name, value in torch_inputs(part, length, sizes).items()}


@cache
def exported(part: str, length: int, optimize: bool, sizes: Sizes = PUBLISHED) -> Any:
    """Returns the ONNX model that torch.onnx.export makes; whoever changes it copies it first."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), torch.random.fork_rng():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            torch_part(part, sizes),
            kwargs=torch_inputs(part, length, sizes),
            dynamo=True,
            optimize=optimize,
            verbose=False,
        )
    return program.model_proto


@cache
def optimised(part: str, length: int, sizes: Sizes = PUBLISHED) -> Any:
    """Returns the optimised export as onnxruntime saves it at its level EXTENDED, with fused ops."""
    import onnx
    import onnxruntime

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "optimised.onnx")
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.optimized_model_filepath = path
        options.log_severity_level = 3
        options.intra_op_num_threads = 1
        source = exported(part, length, True, sizes).SerializeToString()
        onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        return onnx.load(path)


def results_of(model: Any, inputs: Arrays) -> Arrays:
    """Runs a model as it is and returns the result of every node by name, in the order of the file."""
    import onnx
    import onnxruntime

    exposed = onnx.ModelProto()
    exposed.CopyFrom(model)
    names = [name for node in model.graph.node for name in node.output if name]
    del exposed.graph.output[:]
    exposed.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(exposed.SerializeToString(), options, providers=["CPUExecutionProvider"])
    wanted = {each.name for each in session.get_inputs()}
    feeds = {name: value for name, value in inputs.items() if name in wanted}
    return dict(zip(names, session.run(names, feeds), strict=True))


def constants_of(model: Any) -> Arrays:
    """Returns the initializers by name."""
    from onnx import numpy_helper

    return {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
