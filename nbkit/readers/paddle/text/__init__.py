"""Reads the texts that Paddle prints a program in: readable, protobuf and PIR."""
