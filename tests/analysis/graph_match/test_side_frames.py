from nbkit.analysis.graph_match.side_frames import one_graph
from nbkit.graphs.rows import GraphRows


def test_one_graph_of_two_has_its_rows_alone_and_numbers_of_its_own():
    rows = GraphRows()
    for graph in ("first", "second"):
        made, read = (rows.node(graph, "op", f"{graph} {name}", op="exp") for name in "ab")
        rows.edge(made, read, f"{graph} t", dst_port=0)
    frames = {**rows.frames(), "metrics": None}
    kept = one_graph(frames, "second")
    assert kept["nodes"][["node_id", "name"]].to_numpy().tolist() == [[0, "second a"], [1, "second b"]]
    assert kept["edges"][["src", "dst", "tensor"]].to_numpy().tolist() == [[0, 1, "second t"]]
    assert kept["metrics"] is None
