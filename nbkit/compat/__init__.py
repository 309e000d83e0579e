"""What differs between the versions of a dependency that nbkit works with, one module per dependency."""
