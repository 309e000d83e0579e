"""opbisect: the smallest set of calls whose replacement repairs a step."""
