"""Reads Paddle programs as traces: the readable text of 1.x to 3.x, protobuf text and PIR."""

from nbkit.readers.paddle.reader import looks_like, read_paddle_program

__all__ = ["looks_like", "read_paddle_program"]
