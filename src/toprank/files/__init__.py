"""Files: written whole or not at all; models, read within limits and checked before they are used."""
