"""The op book: what ops are called, what kinds of work they do, and what is true of every call of one."""
