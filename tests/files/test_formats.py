"""Files of every format version that was ever written load, and give the scores that they gave then."""

import json

import numpy as np
import pytest

from files.make_formats import FOLDER, models, new_cases, outputs
from toprank import load
from toprank.files.model_file import FORMAT_VERSION, read_model_info
from toprank.register import BY_NAME

VERSIONS = sorted(FOLDER.glob("version_*"))
FILES = [path for folder in VERSIONS for path in sorted(folder.glob("*.toprank"))]


@pytest.mark.filterwarnings("ignore:Column 'place'", "ignore:.*not (seen|known) in training")
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_an_old_file_gives_its_old_scores(path):
    expected = json.loads((path.parent / "outputs.json").read_text())[path.stem]
    found = outputs(load(path), new_cases())
    np.testing.assert_allclose(found["output"], expected["output"], rtol=1e-12, atol=1e-12)
    assert found["predict"] == expected["predict"]


def test_every_estimator_has_a_file_of_the_present_version():
    present = FOLDER / f"version_{FORMAT_VERSION}"
    assert {path.stem for path in present.glob("*.toprank")} == {*models()}
    assert {read_model_info(path)["class"] for path in present.glob("*.toprank")} == {*BY_NAME}
