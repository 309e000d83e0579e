"""Tests of nbkit.trace.executions."""
