"""Tables in: reading frames, roles of columns, encoding, and the binned table that trees learn from."""
