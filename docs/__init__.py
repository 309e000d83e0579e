"""The pages of nbkit; most are made by docs/generator from the code."""
