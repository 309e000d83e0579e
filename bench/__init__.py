"""Side-by-side measurements of nbkit against its peers; no part of the tests' verdict."""
