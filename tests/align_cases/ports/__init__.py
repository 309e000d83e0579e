"""Pairs of implementations that compute the same."""

from collections.abc import Callable

from tests.align_cases.ports import same_weights, two_implementations
from tests.align_cases.ports.port import Port

PORTS: dict[str, Callable[[], Port]] = {
    build.__name__: build
    for build in (
        two_implementations.llama_sample,
        two_implementations.llama_plain,
        two_implementations.llama_complex,
        two_implementations.llama_fused,
        two_implementations.phi3_split,
        two_implementations.llama_padded,
        two_implementations.gpt2_linear,
        two_implementations.neox_split,
        two_implementations.bert_own,
        two_implementations.mixtral_dense,
        two_implementations.gemma_own,
        same_weights.attention_sdpa,
        same_weights.rwkv_recurrent,
        same_weights.decode_theirs,
        same_weights.decode_static,
        same_weights.half_precision,
        same_weights.decompositions,
        same_weights.gpt2_decompositions,
    )
}
