"""Features that the five tools describe whose place nbkit takes, each held against a computation without nbkit."""
