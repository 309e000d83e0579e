"""Defines the tables of memory: allocations and frees, the stacks that led to them, and the allocator's blocks."""

from nbkit.schema.table import table

MEMORY = table(
    "memory",
    "allocation or free, in order of time",
    ("op_id", "Int64", "innermost op that ran then; null outside any"),
    ("time_us", "float64", "microseconds since the recording began, on the clock of ops.start_us"),
    ("device", "str", "device, with its index"),
    ("delta_bytes", "int64", "bytes allocated, negative for a free"),
    (
        "allocated_bytes",
        "Int64",
        "bytes allocated on the device after it: all of them where its allocator says so (a GPU), else those allocated "
        "since the recording began less those freed",
    ),
    (
        "allocation_id",
        "Int64",
        "the same for an allocation and its free; null for a free of what came before the recording",
    ),
    ("reserved_bytes", "Int64", "bytes that the allocator held of the device after it; null if not known"),
    ("stream", "Int64", "device stream that the memory belongs to; null if not known"),
    ("address", "Int64", "where the memory begins; null if not known"),
    ("stack_id", "Int64", "innermost call of the stack that allocated or freed it, in `stacks`; null if not known"),
)
STACKS = table(
    "stacks",
    "call in a stack of allocations; stacks share the calls that they begin with",
    ("stack_id", "int64", "this call and all around it, dense from 0; a caller has a smaller number"),
    ("parent_id", "Int64", "stack_id of the call that made it; null for the outermost"),
    ("function", "str", "name of the function, as the snapshot has it"),
    ("source", "str", "line that was running in it: 'path/file.py:12'; null for native code without one"),
    ("user_line", "str", "innermost line outside torch and Python at or around it; null if there is none"),
    (
        "module",
        "str",
        "innermost module call at or around it, as far as a snapshot tells: its class and function, 'Block::forward', "
        "where the name of the function has the class, else file and function, 'model::forward'; null outside modules",
    ),
    ("phase", "str", "forward, backward, optimizer or other, told from the calls around it"),
)
BLOCKS = table(
    "blocks",
    "block of the allocator's memory when the snapshot was taken",
    ("device", "str", "device, with its index"),
    ("stream", "Int64", "device stream that the memory belongs to"),
    ("segment_address", "int64", "where the segment begins that holds it: memory that the allocator got in one piece"),
    ("address", "int64", "where it begins"),
    ("size_bytes", "int64", "bytes that it takes"),
    ("requested_bytes", "Int64", "bytes that were asked for, which the allocator rounds up; null for a free block"),
    (
        "state",
        "str",
        "active_allocated: in use; active_awaiting_free: freed, but another stream may use it still; inactive: free",
    ),
    ("allocation_id", "Int64", "as in memory; null for a free block, and for one allocated before the first event"),
    ("stack_id", "Int64", "stack that allocated it, as in memory; null for a free block, or if not known"),
)
