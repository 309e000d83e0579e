"""What level 3 says of an op: shape, dtype and distribution of each of its tensors."""

from nbkit.readers.oneflow.dtypes import dtype_name, sbp_name, shape_of
from nbkit.readers.oneflow.text.operator_line import Description
from nbkit.readers.text_proto import Message, message, messages, text


def described(fields: Message) -> dict[str, Description]:
    """The tensors of an op's attributes by name (op/blob)."""
    op = text(message(fields, "op_conf"), "name") or ""
    names = {
        key: f"{text(value, 'op_name')}/{text(value, 'blob_name')}"
        for key, value in _pairs(message(fields, "arg_signature"), "bn_in_op2lbi")
    }
    sbp = {
        key: tuple(sbp_name(one) for one in messages(value, "sbp_parallel"))
        for key, value in _pairs(message(fields, "nd_sbp_signature"), "bn_in_op2nd_sbp")
    } or {key: (sbp_name(value),) for key, value in _pairs(message(fields, "sbp_signature"), "bn_in_op2sbp_parallel")}
    blobs = _pairs(message(fields, "logical_blob_desc_signature"), "bn_in_op2blob_desc")
    return {
        names.get(key, f"{op}/{key}"): Description(
            sbp.get(key, ()), shape_of(value), dtype_name(text(value, "data_type"))
        )
        for key, value in blobs
    }


def _pairs(parent: Message, field: str) -> list[tuple[str, Message]]:
    """A printed map: its keys and the messages they stand for."""
    return [(text(one, "key") or "", message(one, "value")) for one in messages(parent, field)]
