"""Files are written whole or not at all; model files are read within limits and checked before use."""
