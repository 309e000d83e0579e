"""Rules of the dataflow of a step: values that go where they were hardly meant to go."""
