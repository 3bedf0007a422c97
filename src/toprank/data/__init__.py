"""Reading tables: frames, roles of columns, encoding, and the binned table that trees are trained on."""
