"""Patterns of dataflow: what a graph without names still says. One file per pattern."""

from nbkit.analysis.structure.flow import Flow
from nbkit.analysis.structure.patterns.attention import attentions
from nbkit.analysis.structure.patterns.ends import embeddings, heads, losses
from nbkit.analysis.structure.patterns.found import Found
from nbkit.analysis.structure.patterns.mlp import mlps
from nbkit.analysis.structure.patterns.norm import norms
from nbkit.analysis.structure.patterns.rotary import rotaries
from nbkit.analysis.structure.patterns.rwkv import channel_mixes, time_mixes

__all__ = ["Found", "patterns_in"]


def patterns_in(flow: Flow) -> list[Found]:
    """All that is recognised in the dataflow of a graph."""
    mixes = [*channel_mixes(flow), *time_mixes(flow)]
    taken = {node for found in mixes for node in found.nodes}
    embedded = embeddings(flow)
    # The key and value of a channel mix look like a feed-forward network of their own.
    plain = [found for found in mlps(flow) if not found.nodes & taken]
    return [
        *norms(flow),
        *attentions(flow),
        *mixes,
        *plain,
        *rotaries(flow),
        *embedded,
        *heads(flow, embedded),
        *losses(flow),
    ]
