"""Progress of long fits: a line on standard error, or texts for whoever asked for them."""

from toprank.rankers.progress import progress, reported_to, stage


def test_texts_go_where_they_are_asked_for(capsys):
    told = []
    with reported_to(told.append):
        stage("reading", True)
        stage("not said", False)
        assert list(progress("ab", 2, "folds", True, lambda: ", AP 0.5")) == ["a", "b"]
        assert list(progress("ab", 2, "quiet", False)) == ["a", "b"]
    assert told == [
        "reading", "folds, 0 of 2 done", "folds, 1 of 2 done, 0 s left, AP 0.5", "folds, 2 of 2 done, 0 s left, AP 0.5"
    ]  # fmt: skip
    assert capsys.readouterr().err == ""
    stage("rules", True)
    assert list(progress("ab", 2, "folds", True)) == ["a", "b"]
    shown = capsys.readouterr().err
    assert shown.startswith("rules\n")
    assert "2/2" in shown
    assert len(told) == 4
