"""nbkit with the versions of its dependencies that people have: what must work with each of them."""
