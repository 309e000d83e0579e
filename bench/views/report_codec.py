"""Size of a trace's columns in a report: the report's own block beside JSON and Parquet of the same columns.

Run from the root: `python bench/views/report_codec.py [--events N]`. JSON is deflated as the block is; Parquet
is written as pyarrow does by default, once with gzip and once with zstd. They hold every column of ops, tensors and
modules; the block holds those that the op table of a report shows.
"""

import argparse
import io
import json
import zlib

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import nbkit
from bench.views.report import recorded
from nbkit.views.op_table.report_data import op_data
from nbkit.views.panels.rounded import rounded


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000, help="rows of ops, at least (default: 100,000)")
    trace = recorded(nbkit.optrace, parser.parse_args().events)
    own = len(op_data(trace))
    kept = rounded(trace)
    frames = {name: kept.frames[name] for name in ("ops", "tensors", "modules")}
    print(f"{len(trace.ops):,} ops, {len(trace.tensors):,} tensors")
    say("own block", own, own)
    say("JSON, deflated", sum(len(as_json(frame)) for frame in frames.values()), own)
    for compression in ("gzip", "zstd"):
        say(f"Parquet, {compression}", sum(len(as_parquet(frame, compression)) for frame in frames.values()), own)


def as_json(frame: pd.DataFrame) -> bytes:
    columns = {name: json.loads(frame[name].to_json(orient="values")) for name in frame}
    return zlib.compress(json.dumps(columns, separators=(",", ":")).encode(), 9)


def as_parquet(frame: pd.DataFrame, compression: str) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), buffer, compression=compression)
    return buffer.getvalue()


def say(what: str, size: int, own: int) -> None:
    print(f"{what:16} {size:12,} bytes  {size / own:5.2f} x")


if __name__ == "__main__":
    main()
