"""Finds patterns of dataflow: what a graph without names still says. One file per pattern."""

from nbkit.analysis.structure.flow import Flow
from nbkit.analysis.structure.patterns.attention import attentions
from nbkit.analysis.structure.patterns.ends import embeddings, heads, losses
from nbkit.analysis.structure.patterns.mlp import mlps
from nbkit.analysis.structure.patterns.norm import norms
from nbkit.analysis.structure.patterns.pattern_match import PatternMatch
from nbkit.analysis.structure.patterns.rotary import rotaries
from nbkit.analysis.structure.patterns.rwkv import mixes

__all__ = ["PatternMatch", "patterns_in"]


def patterns_in(flow: Flow) -> list[PatternMatch]:
    """Returns all that is recognized in the dataflow of a graph."""
    mixed = mixes(flow)
    taken = {node for match in mixed for node in match.nodes}
    embedded = embeddings(flow)
    # The key and value of a channel mix look like a feed-forward network of their own.
    plain = [match for match in mlps(flow) if not match.nodes & taken]
    return [
        *norms(flow),
        *attentions(flow),
        *mixed,
        *plain,
        *rotaries(flow),
        *embedded,
        *heads(flow, embedded),
        *losses(flow),
    ]
