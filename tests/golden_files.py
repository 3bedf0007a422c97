"""Golden files: texts to the letter. TOPRANK_WRITE_GOLDEN=1 writes them anew, to be read before they are kept."""

import os
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"


def golden(name: str, text: str) -> str:
    """Return what the file holds, after writing `text` to it where that is asked for."""
    path = GOLDEN / name
    if os.environ.get("TOPRANK_WRITE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    return path.read_text(encoding="utf-8")
