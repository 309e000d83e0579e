"""Tests dist_attr, by its brackets."""

from nbkit.readers.paddle.text.dist_attr import parse

MESH = "process_mesh (annotated): {shape: [2,1], process_ids: [1,3], dim_names: [dp,mp]}"


def test_an_operation():
    text = (
        f"{{op type: cast, op id: 161, {MESH}; tmp_45's dims_mapping (input, non-annotated, non-parameter): [-1, 0], "
        "partial on dims: []; w's dims_mapping (output, annotated, parameter): [0], partial on dims: [1], "
        "dist_impl idx: 0 , dist_impl type: default, chunk_id: 0 }"
    )
    mesh = {"annotated": True, "shape": [2, 1], "process_ids": [1, 3], "dim_names": ["dp", "mp"]}
    tensors = [
        {"tensor": "tmp_45", "input": True, "annotated": False, "parameter": False, "dims_mapping": [-1, 0]},
        {"tensor": "w", "output": True, "annotated": True, "parameter": True, "dims_mapping": [0]},
    ]
    for row, partial in zip(tensors, ([], [1]), strict=True):
        row["partial on dims"] = partial
    facts = {"dist_impl idx": 0, "dist_impl type": "default", "chunk_id": 0}
    assert parse(text) == {"op type": "cast", "op id": 161, "process_mesh": mesh, **facts, "tensors": tensors}


def test_a_variable():
    read = parse(f"{{tensor name: w, {MESH}, dims_mapping (non-annotated): [-1]}}")
    assert read["tensor name"] == "w"
    assert read["tensors"] == [{"annotated": False, "parameter": False, "dims_mapping": [-1]}]


def test_names_with_brackets_and_quotes_cost_no_other_field():
    read = parse("{op type: f, a's b's dims_mapping (input): [0], x[0], y's dims_mapping (output): [1], chunk_id: 2}")
    assert (read["op type"], read["chunk_id"]) == ("f", 2)
    assert [row["dims_mapping"] for row in read["tensors"]] == [[0], [1]]


def test_what_is_cut_is_read_as_far_as_it_goes():
    assert parse("{op type: f, process_mesh (annotated): {shape: [2,1], proc")["op type"] == "f"
