from toprank.words.counts import count, every, plural


def test_counts():
    assert [count(1234567), count(0.58 * 100), count(12.5), count(0)] == ["1,234,567", "58", "12.5", "0"]


def test_nouns_follow_the_number_as_it_is_written():
    assert [plural(n, "case") for n in (0, 1, 1.0, 2, 1.5, 1 - 1e-12)] == [
        "0 cases", "1 case", "1 case", "2 cases", "1.5 cases", "1 case",
    ]  # fmt: skip
    assert plural(1, "leaf", "leaves") == "1 leaf"
    assert plural(1200, "leaf", "leaves") == "1,200 leaves"


def test_all_of_one():
    assert every(1, "label equals", "labels equal") == "the only label equals"
    assert every(12400, "label equals", "labels equal") == "all 12,400 labels equal"
