"""A right file of any reader with one field, line or byte changed is a trace or a TraceError; what is lost is told."""

from bench.fuzz_readers import run

KNOWN = {"read", "said", "silent", "refused"}


def test_no_reader_raises_anything_else_or_loses_rows_without_a_word():
    results = run(150, seed=1, shown=0)
    assert sum(sum(counts.values()) for counts in results.values()) == 150
    assert {outcome for counts in results.values() for outcome in counts} <= KNOWN
    # Of a text a whole line may be gone, which leaves a right text.
    fields = [name for name in results if name.startswith(("Chrome", "snapshot")) and "text" not in name]
    assert len(fields) == 5 and not any(results[name]["silent"] for name in fields)
