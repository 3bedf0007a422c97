"""Write small files of every estimator in the present format, with the scores that they must give for ever.

Run `python tests/files/make_formats.py` once per format version, from the root, and commit the new folder. The files of
released versions are never written again: that they still load is what `test_formats.py` is about.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

FOLDER = Path(__file__).parent / "formats"


def training_cases(n=200):
    """A table with numbers, missing values, text and dates, two classes, and three."""
    from ranker_cases import make_cases

    X, y = make_cases(n)
    X["opened"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(n) % 97, unit="D")
    return X, np.where(y, "yes", "no"), np.where(y, "yes", np.where(X["size"] > 0.5, "maybe", "no"))


def new_cases():
    """Rows to score: also dates that training did not know, and missing values."""
    return pd.read_csv(FOLDER / "cases.csv", parse_dates=["opened"])  # three decimals: all parsers agree


def models():
    """An estimator of every kind, unfitted, by name."""
    from sklearn.base import clone

    from ranker_cases import BOOSTERS, NEIGHBOURS, OTHERS, POINTS, RANKERS
    from toprank import KNN, SGBAP, GammaKNNClassifier, TAOClassifier, TreeRank

    kept = {name: clone(model) for name, model in (RANKERS | BOOSTERS | NEIGHBOURS | OTHERS | POINTS).items()}
    kept["oblique-categories"] = TreeRank(leaf_ranker="oblique", max_depth=3, leaf_depth=1, min_samples_leaf=5, cv=0)
    kept["sgbap-init"] = SGBAP(n_estimators=3, cv=0, init=SGBAP(n_estimators=2, cv=0, init=KNN(cv=0)), random_state=0)
    return kept | {"classes": TAOClassifier(max_depth=2, alpha=0.3), "neighbour-classes": GammaKNNClassifier()}


def outputs(model, X):
    """What must stay the same: scores, or class shares of a model that ranks nothing, where it has them."""
    methods = [name for name in ("decision_function", "predict_proba") if hasattr(model, name)]
    given = getattr(model, methods[0])(X) if methods else []
    return {"output": np.asarray(given).tolist(), "predict": [str(label) for label in model.predict(X)]}


def main():
    """Write the files and their outputs."""
    from toprank import load
    from toprank.files.model_file import FORMAT_VERSION

    folder = FOLDER / f"version_{FORMAT_VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    X, y, classes = training_cases()
    expected = {}
    for name, model in models().items():
        path = folder / f"{name}.toprank"
        model.fit(X, classes if name.endswith("classes") else y).save(path)
        expected[name] = outputs(load(path), new_cases())
    (folder / "outputs.json").write_text(json.dumps(expected, indent=0) + "\n")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    main()
