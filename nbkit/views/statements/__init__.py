"""Statements answer the questions of a report in words that link to the rows they speak of."""
