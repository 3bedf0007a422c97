"""A fuzzer of model files: one damaged file after another is loaded and used, in this process.

A crash takes the process down, so tests run it as a child: `python -m files.fuzz_models N SEED FOLDER`, in tests/. It
prints JSON: files refused and loaded, failures, the slowest file in seconds, and the peak of memory in MB. What is
tried is noted in FOLDER/current.json first, so that a crash leaves its cause behind.

Run with NUMBA_BOUNDSCHECK=1 and a NUMBA_CACHE_DIR of its own, kernels check every index.
"""

import contextlib
import copy
import io
import json
import re
import resource
import sys
import time
import traceback
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np

from files.make_formats import FOLDER, new_cases
from toprank import load
from toprank.files import model_file
from toprank.files.model_file import FORMAT_VERSION, ModelFileError

LIMIT_S = 5.0
SEEDS = FOLDER / f"version_{FORMAT_VERSION}"
TEXTS = ["", "x", "\x1b[31m", "é" * 300, "=1+1", "../..", "os.system"]
NUMBERS = [-1, 0, 1, 2**31 - 1, -(2**31), 2**63, -(2**64), 10**300, 1e308, -1e308, 0.5]
RANKER = {"ranker": "RankingTree", "parameters": {}}
HOLDERS = [[], {}, [[]], [1], {"a": 1}, {"float": "nan"}, {"float": "inf"}, RANKER]
JSON_VALUES = [None, True, False, *NUMBERS, *HOLDERS, *TEXTS]
FLOATS = [np.nan, np.inf, -np.inf, -1.0, 0.0, 1.0, 1.5, 1e308, -1e308, 5e-324, 2.0**31, 2.0**63]
OTHER_TYPES = [np.int8, np.uint8, np.int32, np.int64, np.uint64, np.float32, np.float64, bool]


def parts(path):
    """Description and arrays of a file."""
    with zipfile.ZipFile(path) as archive, np.load(io.BytesIO(archive.read("arrays.npz"))) as arrays:
        return json.loads(archive.read("model.json")), dict(arrays)


def packed(arrays):
    """Arrays as a file holds them."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def write(path, info, raw):
    """A model file with a checksum that fits."""
    info = info | {"checksum": model_file._checksum(info, raw)}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model.json", json.dumps(info))
        archive.writestr("arrays.npz", raw)


# --- damage -------------------------------------------------------------------------------------------------


def limits_of(array):
    """Values at the ends of an array's type, and around what indices may be."""
    if array.dtype.kind == "f":
        return FLOATS
    if array.dtype.kind == "b":
        return [False, True]
    ends = np.iinfo(array.dtype)
    near = [0, 1, -1, 255, 256, len(array) if array.ndim else 2, 2**31 - 1, -(2**31) + 1, ends.min, ends.max]
    return [value for value in near if ends.min <= value <= ends.max]


def change_values(rng, array):
    """One value, neighbours or all values at a limit; or values exchanged."""
    if array.dtype.kind == "U" or array.size == 0:
        return np.array(TEXTS[rng.integers(len(TEXTS))])
    out = array.copy().reshape(-1)
    chosen = [limits_of(array)[i] for i in rng.integers(len(limits_of(array)), size=3)]
    at = int(rng.integers(out.size))
    how = rng.integers(5)
    with np.errstate(all="ignore"):
        if how == 0:
            out[:] = chosen[0]
        elif how == 1:  # up to the limit and down again: sums and differences wrap
            out[at : at + 3] = chosen[: out[at : at + 3].size]
        elif how == 2:
            rng.shuffle(out)
        elif how == 3 and out.dtype.kind in "iuf":
            out[at] += out.dtype.type(1)
        else:
            out[at] = chosen[0]
    return out.reshape(array.shape)


def change_shape(rng, array):
    """Shorter, longer, of other dimensions, or empty."""
    flat = array.reshape(-1)
    return [
        lambda: flat[:-1],
        lambda: np.append(flat, flat[-1:]) if flat.size else np.zeros(3, array.dtype),
        lambda: array[np.newaxis],
        lambda: flat[:, np.newaxis],
        lambda: flat[:0],
        lambda: flat[:0].reshape(0, 4),
        lambda: np.repeat(flat, 3),
        lambda: np.asfortranarray(np.stack([flat, flat])),
        lambda: np.array(flat[0]) if flat.size else np.zeros((), array.dtype),
    ][rng.integers(9)]()


def change_type(rng, array):
    """The same values in another type, as far as it has them."""
    if array.dtype.kind == "U":
        return np.array(1.0)
    with np.errstate(all="ignore"):
        return array.astype(OTHER_TYPES[rng.integers(len(OTHER_TYPES))])


def damage_arrays(rng, arrays):
    """Damage one array, or exchange two; returns what was done."""
    names = sorted(arrays)
    name, other = (names[i] for i in rng.integers(len(names), size=2))
    how = rng.choice(["values", "values", "values", "values", "shape", "type", "drop", "swap", "add"])
    if how == "drop":
        del arrays[name]
    elif how == "swap":
        arrays[name], arrays[other] = arrays[other], arrays[name]
    elif how == "add":
        arrays[f"{name}x"] = arrays[other]
    else:
        arrays[name] = {"values": change_values, "shape": change_shape, "type": change_type}[how](rng, arrays[name])
    return f"{how} of {name}"


def damage_json(rng, info):
    """Replace, delete or repeat one value somewhere in the description."""
    holder, way = info, []
    while True:
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        if not keys:
            return f"nothing at {way}"
        key = keys[rng.integers(len(keys))]
        way.append(key)
        inside = holder[key]
        if not isinstance(inside, dict | list) or not inside or rng.random() < 0.25:
            break
        holder = inside
    if way in (["checksum"], ["format"], ["format_version"]):
        return "nothing"
    how = rng.choice(["replace", "replace", "replace", "delete", "repeat"])
    if how == "delete":
        del holder[key]
    elif how == "repeat" and isinstance(holder, list):
        holder.append(copy.deepcopy(inside))
    else:
        holder[key] = copy.deepcopy(JSON_VALUES[rng.integers(len(JSON_VALUES))])
    return f"{how} at {way}: {str(holder)[:200]}"


# --- use ----------------------------------------------------------------------------------------------------


def use(model, X):
    """All that a user does with a loaded model."""
    if hasattr(model, "decision_function"):
        model.decision_function(X)
        model.top_k(X, 5, reasons=2)
    if hasattr(model, "explain"):
        model.explain(X.head(3))
    model.summary()
    model.predict(X)
    if hasattr(model, "predict_proba"):
        model.predict_proba(X)
    if hasattr(model, "rules"):
        model.rules()
        model.to_text()
        model.to_text(exact=True)
    if hasattr(model, "to_plain") or hasattr(model, "to_dict"):
        model.to_plain() if hasattr(model, "to_plain") else model.to_dict()
    for what in (lambda: model.nodes_, lambda: model.subtree([0]), lambda: model.node_classifier(0).predict(X)):
        with suppress(AttributeError, ValueError):  # models without a meta-tree, or of one leaf
            what()
    if hasattr(model, "staged_decision_function"):
        with suppress(ValueError):  # pruned trees have no stages
            list(model.staged_decision_function(X))


def describe(path):
    """Run `toprank describe`; raise AssertionError where it ends in anything but an answer or a refusal."""
    from toprank.cli.app import run

    for options in ([], ["--all"], ["--json"]):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(["describe", str(path), *options])
        assert code in (0, 2), f"describe: exit {code}, {err.getvalue()[-300:]}"


def attempt(path, X, with_describe):
    """Load and use a file: "refused" or "loaded"."""
    try:
        model = load(path)
    except ModelFileError:
        model = None
    if model is not None:
        use(model, X)
    if with_describe:
        describe(path)
    return "refused" if model is None else "loaded"


def peak_mb():
    """Most memory this program has used; `getrusage` also counts what the process had before it became this program."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text())[1]) / 1024


def main(n, seed, folder):
    """Fuzz n files and print what came of it."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    rng = np.random.default_rng(seed)
    seeds = {path.stem: parts(path) for path in sorted(SEEDS.glob("*.toprank"))}
    X, path = new_cases(), folder / "fuzzed.toprank"
    for name, (info, arrays) in seeds.items():  # compiles what there is to compile, before time is taken
        write(path, info, packed(arrays))
        assert attempt(path, X, False) == "loaded", name
    counts, failures, slowest = {"refused": 0, "loaded": 0}, [], 0.0
    names = list(seeds)
    for i in range(n):
        name = names[i % len(names)]
        info, arrays = copy.deepcopy(seeds[name][0]), dict(seeds[name][1])
        done = [damage_json(rng, info) if rng.random() < 0.3 else damage_arrays(rng, arrays)
                for _ in range(1 + (rng.random() < 0.1))]  # fmt: skip
        write(path, info, packed(arrays))
        (folder / "current.json").write_text(json.dumps([i, name, done]))
        start = time.perf_counter()
        try:
            counts[attempt(path, X, i % 10 == 0)] += 1
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            failures.append(
                [i, name, *done, f"{type(error).__name__}: {error}"[:300], f"{where.filename}:{where.lineno}"]
            )
        seconds = time.perf_counter() - start
        slowest = max(slowest, seconds)
        if seconds > LIMIT_S:
            failures.append([i, name, *done, f"took {seconds:.1f} s"])
    peak = peak_mb()
    found = counts | {"failures": failures, "slowest_s": round(slowest, 2), "peak_mb": round(peak)}
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
