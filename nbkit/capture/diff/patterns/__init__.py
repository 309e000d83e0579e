"""What a wrong result looks like beside its reference: scaled, shifted, zero from an index on."""
