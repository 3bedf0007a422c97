import pytest

from experiment_cases import make_plan, write_tables
from toprank.experiment.evidence import main_tables, read_published, state_of, write_evidence
from toprank.experiment.runner import run
from toprank.experiment.store import Store

TREE = {"method": "gini-rate", "search": {"max_depth": [2]}}
OTHER = {"method": "entropy-rate", "search": {"max_depth": [2]}}
THIRD = {"method": "tree", "search": {"max_depth": [2]}}


@pytest.fixture
def folder(tmp_path):
    return write_tables(tmp_path, positive_rate=0.1)


@pytest.fixture
def no_plots(monkeypatch):
    """Tables alone: drawing takes most of the time, and the tests of all plots and of unfinished runs draw."""
    monkeypatch.setattr("toprank.experiment.evidence._save", lambda plots, folder, methods: [])


def store_of(plan, folder, n_trials=None):
    store = Store(":memory:")
    store.keep_plan(plan, folder)
    for progress in run(store, backend="threads", n_workers=1):
        if progress.n_run == n_trials:
            break
    return store


def titles(store, published=None):
    return [table.title for table in main_tables(store.results(), published, store.plan)]


def test_all_tables_and_plots_are_written(folder, tmp_path):
    methods = {"Gini": TREE | {"profile": {"max_depth": [1, 4, 9]}}, "Entropy": OTHER, "AP": THIRD}
    with store_of(make_plan(methods=methods, reference="Gini"), folder) as store:
        written = {path.relative_to(tmp_path / "out").as_posix() for path in write_evidence(store, tmp_path / "out")}
    assert {"results.md", "times.md", "tables/leaderboard.md", "tables/by_imbalance.md", "tables/precision_at_k.md",
            "tables/by_data_set.md", "tables/against.md", "plots/critical_difference.png", "plots/by_depth_10.png",
            "plots/precision_at_k_50.png"} <= written  # fmt: skip
    page = (tmp_path / "out" / "results.md").read_text()
    assert "12 of 12 trials done" in page
    assert "seconds" not in page.lower()


@pytest.mark.parametrize(
    ("methods", "n_trials"),
    [
        ({"Gini": TREE}, 0),
        ({"Gini": TREE, "Entropy": OTHER}, 1),
        ({"Gini": TREE, "AP": THIRD, "E": OTHER}, 2),
        ({"Gini": TREE, "AP": THIRD, "E": OTHER}, 7),
    ],
)
def test_an_unfinished_run_is_shown_as_far_as_it_is(folder, tmp_path, methods, n_trials, monkeypatch):
    monkeypatch.setattr("toprank.experiment.evidence.LEVELS", (50,))  # both tables lie below all levels
    with store_of(make_plan(methods=methods, reference="Gini"), folder, n_trials or 1) as store:
        if n_trials == 0:
            store._connection.execute("DELETE FROM trials")
        write_evidence(store, tmp_path / "out")
        done = len(store.outcomes())
        state = state_of(store, store.results())
    assert state["n_waiting"] == 4 * len(methods) - done
    assert f"{done} of {4 * len(methods)} trials done" in (tmp_path / "out" / "results.md").read_text()


@pytest.mark.usefixtures("no_plots")
def test_methods_with_fewer_seeds_stand_in_a_table_of_their_own(folder, tmp_path):
    methods = {"Gini": TREE, "Entropy": OTHER, "AP": THIRD | {"seeds": "1"}}
    with store_of(make_plan(methods=methods), folder) as store:
        assert titles(store) == ["Mean average precision over the data sets"], "what was not planned is not missing"
        write_evidence(store, tmp_path / "out")
    tables = tmp_path / "out" / "tables"
    assert "AP" not in (tables / "leaderboard.md").read_text().replace("Mean AP", "")
    assert "| AP |" in (tables / "leaderboard_all.md").read_text()


@pytest.mark.usefixtures("no_plots")
def test_methods_whose_seeds_cover_the_plan_belong_to_the_main_tables(folder, tmp_path):
    with store_of(make_plan(methods={"Gini": TREE, "AP": THIRD | {"seeds": "1-5"}}), folder) as store:
        write_evidence(store, tmp_path / "out")
    assert "| AP |" in (tmp_path / "out" / "tables" / "leaderboard.md").read_text()


@pytest.mark.usefixtures("no_plots")
def test_what_failed_is_counted_and_disappears_when_it_is_mended(folder, tmp_path):
    plan = make_plan(
        methods={"Gini": {"method": "gini-rate", "parameters": {"max_depth": -1}, "search": {}}, "E": OTHER}
    )
    with store_of(plan, folder) as store:
        write_evidence(store, tmp_path / "out")
        assert "failed" in (tmp_path / "out" / "tables" / "unfinished.md").read_text()
        store.keep_plan(make_plan(methods={"E": OTHER}), folder)
        write_evidence(store, tmp_path / "out")
    assert not (tmp_path / "out" / "tables" / "unfinished.md").exists()


@pytest.mark.usefixtures("no_plots")
def test_published_runs_that_share_nothing_are_no_error(folder, tmp_path):
    other = tmp_path / "published.csv"
    other.write_text("dataset,seed,method,ap_test\nelsewhere,1,Gini,50.0\n")
    with store_of(make_plan(methods={"Gini": TREE}), folder) as store:
        assert titles(store, read_published(other)) == ["Mean average precision over the data sets"]
        write_evidence(store, tmp_path / "out", published=other)


@pytest.mark.usefixtures("no_plots")
def test_published_runs_stand_beside_trials_that_failed(folder, tmp_path):
    failing = {"method": "gini-rate", "parameters": {"max_depth": -1}, "search": {}}
    with store_of(make_plan(methods={"Gini": TREE, "E": failing}), folder) as store:
        done = store.results().filter(store.results()["status"] == "done")
        other = tmp_path / "published.csv"
        rows = [f"{dataset},{split[5:]},{name},50.0\n" for dataset, split in done.select("dataset", "split").rows()
                for name in ("Gini", "AP")]  # fmt: skip
        other.write_text("dataset,seed,method,ap_test\n" + "".join(rows))
        assert "Beside the published figures" in titles(store, read_published(other))
        write_evidence(store, tmp_path / "out", published=other)
    assert "| AP |" in (tmp_path / "out" / "tables" / "published_by_imbalance.md").read_text()


def test_published_runs_that_cannot_be_read(tmp_path):
    other = tmp_path / "published.csv"
    other.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="it needs the columns dataset, seed"):
        read_published(other)


def test_unknown_formats(folder, tmp_path):
    with store_of(make_plan(methods={"Gini": TREE}), folder, 1) as store, pytest.raises(ValueError, match="'docx'"):
        write_evidence(store, tmp_path / "out", formats=["docx"])


def test_versions_that_changed_are_said(folder):
    plan = make_plan(methods={"Gini": TREE})
    with Store(":memory:") as store:
        store.keep_plan(plan, folder)
        store._keep_fact("versions", "toprank 0.0.1")
        with pytest.warns(UserWarning, match=r"were run with toprank 0\.0\.1"):
            store.keep_plan(plan, folder)
