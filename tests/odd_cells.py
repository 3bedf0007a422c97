"""Cells and files that readers of tables get wrong: identifiers of every odd shape, and fuzzed CSV text."""

from __future__ import annotations

import random
from collections.abc import Callable

LETTERS = "abcXYZ01289 _-./:äßéñ漢字😀"
SHAPES: tuple[Callable[[random.Random, int], str], ...] = (
    lambda rng, i: f"{i:06d}",  # leading zeros
    lambda rng, i: f"1{i:022d}",  # longer than any float is exact
    lambda rng, i: f"{rng.getrandbits(200)}",
    lambda rng, i: f"{i}.50",
    lambda rng, i: f"{i},50",
    lambda rng, i: f"{i % 90 + 1}e{i % 30}",
    lambda rng, i: f"0x{i:X}",
    lambda rng, i: f" {i} ",
    lambda rng, i: f"{i}\t",
    lambda rng, i: f"+49{i}",
    lambda rng, i: f"-{i}",
    lambda rng, i: f"-{i}-{i}",
    lambda rng, i: f"={i}+1",
    lambda rng, i: f"@{i}",
    lambda rng, i: f"\t{i}",
    lambda rng, i: f"\r{i}",
    lambda rng, i: f'"{i}"',
    lambda rng, i: f'{i}"{i}',
    lambda rng, i: f"{i}\n{i}",
    lambda rng, i: f"{i}\r\n",
    lambda rng, i: f"{i};{i},{i}",
    lambda rng, i: f"'{i}",
    lambda rng, i: f"{1 + i % 28:02d}.{1 + i % 12:02d}.{1990 + i % 40}",
    lambda rng, i: f"{1990 + i % 40}-{1 + i % 12:02d}-{1 + i % 28:02d}",
    lambda rng, i: (
        "",
        "NA",
        "None",
        "null",
        "nan",
        "NaN",
        "inf",
        "-inf",
        "true",
        "FALSE",
        "0",
        "-0",
        "#N/A",
        "-",
        "+",
    )[i % 15],
    lambda rng, i: "".join(rng.choices(LETTERS, k=rng.randint(1, 40))),
    lambda rng, i: f"\x1b[31m{i}\x07",
    lambda rng, i: f"{i}\u202e\u200b\x9b",
    lambda rng, i: f"#{i}",
    lambda rng, i: f"{i} %",
)


def odd_identifiers(n: int, seed: int = 0) -> list[str]:
    """Return n cells, of all shapes in turn."""
    rng = random.Random(seed)
    return [SHAPES[i % len(SHAPES)](rng, i) for i in range(n)]


PIECES = ["a", "1", " ", "é", ",", ",", '"', '""', "\n", "\n", "\r\n", "\r", ";", "\t", "\x1b", "\x0b", "\u2028", "#"]
CELLS = ["", "1", "-2.5", "a b", '""', '"a,b"', '"x\ny"', '"q""r"', " p ", "é", "'", '"1"']
ODD_CELLS = ['a"b', '"\r"', '"open', '"c"d', "z\r", "\0", ' "a"', '"a" ', "\x85"]


def fuzzed_csv(rng: random.Random) -> tuple[list[str], str]:
    """Return the names of one to three columns and the text of a file: often sound, often with one thing wrong."""
    names = ["x", "y", "z"][: rng.randint(1, 3)]
    if rng.random() < 0.3:
        body = "".join(rng.choices(PIECES, k=rng.randint(0, 14)))
    else:
        rows = [rng.choices(CELLS, k=len(names)) for _ in range(rng.randint(1, 5))]
        if rng.random() < 0.4:
            row = rng.choice(rows)
            row[rng.randrange(len(row))] = rng.choice(ODD_CELLS)
        if rng.random() < 0.1:
            rng.choice(rows).append("more")
        body = rng.choice(["\n", "\n", "\r\n", "\r"]).join(",".join(row) for row in rows)
        if rng.random() < 0.1:
            body = body[: rng.randint(0, len(body))]
        body += rng.choice(["", "\n", "\r\n", "\n\n"])
    return names, ",".join(names) + rng.choice(["\n", "\n", "\r\n"]) + body
