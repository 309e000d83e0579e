"""Lines on memory of a plan, as rows."""

from nbkit.readers.oneflow.text.memory import Memory
from nbkit.readers.text_proto import finite


def test_plans_blocks_and_tensors() -> None:
    memory = Memory()
    taken = [
        memory.shape("shape: (2,3) ,dtype: kFloat"),
        memory.line("memory of chunks: [ 1.5 MiB ], mem_block_num = 3"),
        memory.line("Graph name g in Rank: 0, Device: 1 needs to allocate [ 12.5 MiB ] device memory."),
        memory.line("total chunk size: [ 10.5 MiB ], mem_block_num = 3"),
        memory.line("chunk again: [ 99 MiB ], num = 9"),
        memory.line("total unreused size: [ 2 MiB ]"),
        memory.line("Eager Variable size: [ nan MiB ], num = 4"),
        memory.line("Plan: p needs to allocate [ 3 MiB ] device memory in Rank: 2, Device: 0."),
        memory.line("In Device: 0 Chunk id: 1 MemBlock id: 2 has num = 5 tensors with mem size = 7.25"),
        memory.line("In Chunk id: 1, MemBlock id: 2 Order: 3 ,duration: 4 ,size: 0.5 MiB, name: a/out_0"),
        memory.shape("shape: (2,3) ,dtype: kFloat"),
        memory.line("In Chunk id: 1 Order: 3 ,duration: 4 ,size: 0.25 MiB, name: b"),
        memory.line("In Device: 0 Memblock id: 6  unreused   size: 8 MiB, name: w"),
        memory.line("nothing of 3 MiB"),
    ]
    assert taken == [False, False, *[True] * 11, False]
    assert memory.plans == [
        {
            "graph": "g",
            "rank": 0,
            "device": 1,
            "total_mb": 12.5,
            "chunk_mb": 10.5,
            "chunk_count": 3,
            "unreused_mb": 2.0,
            "eager_variables_mb": None,
            "eager_variables_count": 4,
        },
        {"graph": "p", "rank": 2, "device": 0, "total_mb": 3.0},
    ]
    assert memory.blocks == [{"device": 0, "chunk": 1, "block": 2, "tensors": 5, "mb": 7.25}]
    order = {"kind": "chunk", "chunk": 1, "order": 3, "duration": 4}
    assert memory.tensors == [
        {"tensor": "a/out_0", "mb": 0.5, **order, "block": 2, "shape": [2, 3], "dtype": "float32"},
        {"tensor": "b", "mb": 0.25, **order, "block": None},
        {"tensor": "w", "mb": 8.0, "kind": "unreused", "device": 0, "block": 6},
    ]


def test_numbers_that_json_does_not_have_are_none() -> None:
    assert [finite(text) for text in ("1.5", "inf", "nan", "x", "1e999")] == [1.5, None, None, None, None]
