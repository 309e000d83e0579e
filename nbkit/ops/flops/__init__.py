"""Computes the FLOPs of an op from its arguments: one table of rules for recordings, trace files and estimates."""

from nbkit.ops.flops.products import Formula
from nbkit.ops.flops.registry import FORMULAS, call_flops, formulas, packet_name, register_flop_formula
from nbkit.ops.flops.rules import RULES, Rule, rule_of

__all__ = [
    "FORMULAS",
    "RULES",
    "Formula",
    "Rule",
    "call_flops",
    "formulas",
    "packet_name",
    "register_flop_formula",
    "rule_of",
]
