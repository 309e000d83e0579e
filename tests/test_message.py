"""Tests messages that know where they hold elements of tensors."""

import json
import pickle

import pytest

from nbkit.schema.message import HIDDEN, Message, element, joined, message_values, with_values, without_elements


def test_spans_follow_their_parts() -> None:
    message = joined("; ", ["reduced", Message("worst at [4]: ", element("1.5"), ", expected ", element("-2"))])
    assert message == "reduced; worst at [4]: 1.5, expected -2"
    spans = json.loads(message_values(message) or "")
    assert [message[first:last] for first, last in spans] == ["1.5", "-2"]
    assert without_elements(message, message_values(message)) == "reduced; worst at [4]: …, expected …"


def test_zero_nan_and_inf_are_what_a_message_is_about() -> None:
    assert [element(text).spans for text in ("0", "nan", "-inf", "True")] == [()] * 4
    assert element("nan+1j").spans == ((0, 6),)


def test_texts_without_elements_have_none() -> None:
    assert [message_values(text) for text in (None, "plain", Message("a", "b"))] == [None] * 3


def test_a_message_survives_pickling() -> None:
    message = Message("a ", element("1.5"))
    again = pickle.loads(pickle.dumps(message))
    assert (again, again.spans) == (message, message.spans)


@pytest.mark.parametrize("spans", ["no JSON", "7", '[["a", 1]]', "[[1]]"])
def test_of_a_text_whose_spans_cannot_be_read_nothing_is_left(spans):
    assert without_elements("the first is 7.5", spans) == HIDDEN
    assert message_values(with_values("the first is 7.5", spans)) == "[[0, 16]]"
