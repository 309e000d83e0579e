"""Computes the FLOPs of an op from its arguments: one table of rules for recordings, trace files and estimates."""

from nbkit.flops.registry import FORMULAS, Formula, call_flops, formulas, packet_name, register_flop_formula

__all__ = ["FORMULAS", "Formula", "call_flops", "formulas", "packet_name", "register_flop_formula"]
