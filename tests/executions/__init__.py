"""Tests of nbkit.executions."""
