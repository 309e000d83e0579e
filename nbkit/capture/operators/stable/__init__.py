"""opstable: whether each call gives the same bits again."""
