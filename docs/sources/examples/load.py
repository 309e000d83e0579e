import pickle

import nbkit

# As torch.cuda.memory._dump_snapshot("snapshot.pickle") writes it, here by hand: weights, then activations.
main = {"name": "main", "filename": "train.py", "line": 30}
build = [{"name": "build", "filename": "model.py", "line": 8}, main]
step = [
    {"name": "forward", "filename": "model.py", "line": 21},
    {"name": "step", "filename": "train.py", "line": 12},
    main,
]
events = [("alloc", 0, 1 << 20, build), ("alloc", 1 << 20, 4 << 20, step), ("free_requested", 1 << 20, 4 << 20, step)]
keys = ("action", "addr", "size", "frames")
history = [
    {**dict(zip(keys, event, strict=True)), "stream": 0, "time_us": 10 * number} for number, event in enumerate(events)
]
used = {"address": 0, "size": 1 << 20, "requested_size": 1 << 20, "state": "active_allocated", "frames": build}
free = {"address": 1 << 20, "size": 4 << 20, "requested_size": 0, "state": "inactive", "frames": []}
segment = {"device": 0, "address": 0, "total_size": 5 << 20, "stream": 0, "blocks": [used, free]}
with open("snapshot.pickle", "wb") as file:
    pickle.dump({"segments": [segment], "device_traces": [history]}, file)

trace = nbkit.load("snapshot.pickle")
print(trace.brief())
stacks = trace.memory.merge(trace.stacks, on="stack_id")
print(stacks[["delta_bytes", "allocated_bytes", "user_line"]].to_string(index=False))
