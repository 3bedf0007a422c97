"""What models by neighbours say about themselves: in `summary`, in their file, on the page of `describe`."""

import json
import re

import numpy as np
import pytest
from sklearn.base import clone

from cli_files import run, save_classifier, write_cases
from ranker_cases import NEIGHBOURS, make_cases
from toprank import KNN, MLFP, GammaKNN, GammaKNNClassifier, LocalGammaKNN
from toprank.files.model_file import read_model_info
from toprank.rankers.neighbours.facts import column_weights, distance_facts, gamma_text, gammas_text, weights_text
from toprank.rankers.neighbours.space import Space
from toprank.tree.columns import Column


def test_a_gamma_says_what_it_means():
    assert gamma_text(0.4) == "0.4: a known positive counts as if it were 2.5 times nearer"
    assert gamma_text(0.99) == "0.99: a known positive counts as if it were 1 % nearer"
    assert gamma_text(1.0).startswith("1: a known positive counts as far away as it is")
    assert gamma_text(2.0, "a case counts") == "2: a case counts as if it were 2 times farther away"
    assert gamma_text(0.0).endswith("at distance 0")
    assert gammas_text(np.array([0.25, 0.25])) == f"{gamma_text(0.25)}, in 2 clusters"
    assert "2 times to 4 times nearer" in gammas_text(np.array([0.5, 0.25, 0.3]))
    assert "nearer" not in gammas_text(np.array([0.5, 1.2]))


@pytest.mark.parametrize("scoring", ["f1", "g_mean"])
def test_gamma_knn_says_its_gamma_and_what_it_was_tuned_for(scoring):
    X, y = make_cases(300)
    model = GammaKNN(scoring=scoring).fit(X, y)
    text = model.summary()
    assert f"\ngamma: {gamma_text(model.gamma_)}\n" in text
    assert f"\ntuned for: {scoring} {model.tuned_score_:.3f} on left-out training cases, slightly optimistic\n" in text
    assert f"score exceeds {model.fp_cost_:.4g}; predict follows it" in text
    fixed = GammaKNN(gamma=0.5, budget=10).fit(X, y).summary()
    assert "\nmeasured: f1 " in fixed
    assert "optimistic" not in fixed
    assert "predict follows the budget instead" in fixed
    assert fixed.count("budget 10 cases") == 1


def test_a_local_model_says_how_it_did_on_held_out_folds(tmp_path):
    X, y = make_cases(400)
    model = LocalGammaKNN(n_clusters=2, cv=3).fit(X, y)
    assert 0 < model.held_out_score_ < 1
    assert f"\ntuned for: f1 {model.held_out_score_:.3f} on cases of held-out folds\n" in model.summary()
    without = LocalGammaKNN(n_clusters=2, cv=0).fit(X, y)
    assert without.held_out_score_ is None
    assert "\ntuned for: f1\n" in without.summary()
    far = LocalGammaKNN(n_clusters=2, cv=3, version=1).fit(X, np.roll(y, 7))  # labels that no column explains
    assert far.held_out_score_ < model.held_out_score_


def test_a_learned_distance_lists_its_largest_weights():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X[:, 1] + 0.1 * rng.normal(size=300) > 1.2
    model = MLFP(mu=0.0001, c=0.5).fit(X, y)
    weights = column_weights(model.components_, model._space)
    assert weights == pytest.approx(np.sqrt(np.diag(model.get_mahalanobis_matrix())))
    line = re.search(r"\nweights: (.*)\n", model.summary())[1]
    named = re.findall(r"x(\d) [\d.]+", line)
    assert named == [str(i) for i in np.argsort(-weights) if weights[i] >= 0.0005]
    assert line.endswith("; 1 is as much as towards negatives")
    assert "weights" not in GammaKNN().fit(X, y).summary()


def test_weights_of_categories_are_the_root_mean_square_of_their_coordinates():
    X = np.array([[0.0, 1.0, 5.0], [1.0, 2.0, 5.0], [2.0, 4.0, 5.0]])
    space = Space.learn(X, np.array([3, 0, 0]))
    weights = column_weights(np.diag([1.0, 1.0, 0.0, 0.5]), space)
    assert weights == pytest.approx([np.sqrt(2 / 3), 0.5, 0.0])
    columns = [Column("place", ("a", "b", "c")), Column("size"), Column("same")]
    assert weights_text(columns, weights) == "place 0.82, size 0.5; 1 column nothing; 1 is as much as towards negatives"
    assert weights_text(columns, np.zeros(3)).startswith("no column counts")


def test_distances_name_categories_and_missing_values_only_where_there_are_some():
    X = np.array([[0.0, 1.0], [1.0, np.nan], [0.0, 4.0]])
    both = distance_facts([Column("place", ("a", "b")), Column("size")], Space.learn(X, np.array([2, 0])), "euclidean",
                          "minmax", 2.0)  # fmt: skip
    assert both["categories"] == "two different categories are 2 apart, as far as the two ends of a number"
    assert "it is one unit away from known ones;" in both["missing values"]
    assert "1.41 from every category" in both["missing values"]
    numbers = distance_facts([Column("size")], Space.learn(X[:, :1], np.array([0])), "manhattan", None, 3.0)
    assert numbers == {"distance": "manhattan; numbers are not scaled",
                       "missing values": "a missing number counts as the median"}  # fmt: skip


@pytest.mark.parametrize("kind", NEIGHBOURS)
def test_the_page_of_a_neighbour_model_has_its_facts_and_no_share_of_gain(kind, tmp_path):
    X, y = make_cases(200)
    model = clone(NEIGHBOURS[kind]).fit(X, y)
    path = tmp_path / "model.toprank"
    model.save(path)
    told = read_model_info(path)["facts"]
    assert told == {"size": model._size_in_words()} | model._facts()
    page = " ".join(run("describe", path, "--all").out.split())
    assert "share of gain" not in page
    for name, text in told.items():
        assert f"{name} {text}" in page
    if isinstance(model, KNN):
        assert f"rule {model.rule}: " in page


def test_the_page_of_a_classifier_without_trees(tmp_path):
    X, y = make_cases(200)
    labels = np.where(y, "fraud", np.where(np.nan_to_num(X["size"]) > 0.5, "large", "small"))
    model, path = GammaKNNClassifier().fit(X, labels), tmp_path / "my classes.toprank"
    model.save(path)
    said = run("describe", path).out
    assert said.startswith("GammaKNNClassifier\n  size            3 neighbours among 200 cases of 3 classes\n")
    assert "rules" not in said
    assert "misclassified" not in said
    page = " ".join(said.split())
    for name, text in model._facts().items():
        assert f"{name} {text}" in page
    found = json.loads(run("describe", path, "--json").out)
    assert found["rules"] == []
    assert found["info"]["figures"]["gammas"] == model.gammas_.tolist()
    assert re.search(r"^  size +number", run("describe", path, "--all").out, re.MULTILINE)
    refused = run("describe", path, "--exact")
    assert refused.code == 2
    error = " ".join(refused.err.split())
    assert "GammaKNNClassifier, which is not one" in error
    assert f"`toprank describe '{path}' --all`" in error
    history = write_cases(tmp_path / "history.csv")
    done = run("topk", path, history)
    assert done.code == 2
    assert "which predicts classes and does not rank" in " ".join(done.err.split())
    assert "misclassified" in run("describe", save_classifier(tmp_path)).out  # a tree counts its training cases
