"""Data flows one way: model is theory, calibrate is evidence, dashboard is presentation."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("model", "calibrate", "dashboard")

MLX = {"mlx", "mlx_lm", "mlx_vlm", "transformers", "tokenizers", "huggingface_hub"}
MAY_IMPORT = {
    "model": {"model", "numpy", "scipy"},
    "calibrate": {"model", "calibrate", "numpy", "scipy", "tqdm"} | MLX,
    "dashboard": {"model", "calibrate", "dashboard", "numpy", "altair", "streamlit", "vl_convert"}
    | {"pyarrow"},
}
MLX_FILES = {
    "chain.py",
    "decode.py",
    "environment.py",
    "head_start.py",
    "kernels.py",
    "mlx_device.py",
    "networks.py",
    "random_weights.py",
    "smollm2.py",
    "stacks.py",
}
MLX_FOLDERS = {"decoding", "vlm"}
WITHOUT_STREAMLIT = {
    *("equations", "markup"),
    *("answers", "charts", "command", "figure", "figures", "rows", "scores", "selection"),
}
TAKEN_NAMES = {*PACKAGES, "tests", "tokroof", *MAY_IMPORT["dashboard"], *sys.stdlib_module_names}


ORDER = ("network", "machine", "cost", "strategies", "prediction", "planners", "articles")
"""The parts of model/ as its data flows: each imports only what stands before it."""
BESIDE = {"progress": (), "commands": (*ORDER, "progress")}
"""Progress knows no machine; commands may ask for everything."""


def imported_modules(node: ast.AST, in_function: bool = False) -> Iterator[tuple[str, bool]]:
    """Every module that is imported below a node, and whether only when a function runs."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((alias.name, in_function) for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.level == 0:
            yield child.module or "", in_function
        elif isinstance(child, ast.Call) and ast.unparse(child.func).endswith(
            ("import_module", "__import__")
        ):
            names = [word.value for word in child.args[:1] if isinstance(word, ast.Constant)]
            yield from ((name, in_function) for name in names if isinstance(name, str))
        deeper = in_function or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from imported_modules(child, deeper)


def breaches(file: Path, source: str) -> list[str]:
    """What one file of a package (its path from the root) imports against the rules."""
    layer = file.parts[0]
    found: list[str] = []
    for module, in_function in imported_modules(ast.parse(source)):
        top = module.partition(".")[0]
        if top not in MAY_IMPORT[layer] and top not in sys.stdlib_module_names:
            found.append(f"{file} imports {module}, which is not for {layer}/")
        elif layer == "model" and top == "scipy" and not in_function:
            found.append(f"{file} imports {module} for all; in model/ only a function that solves")
        elif layer == "calibrate" and top in MLX and not runs_networks(file):
            found.append(f"{file} imports {module}, which only the kernel and run modules do")
        elif top == "streamlit" and not WITHOUT_STREAMLIT.isdisjoint({file.stem, *file.parts}):
            found.append(f"{file} imports {module}; charts are functions of records, no more")
    return found


def runs_networks(file: Path) -> bool:
    """Whether a file of calibrate/ is a kernel or run module."""
    return file.name in MLX_FILES or not MLX_FOLDERS.isdisjoint(file.parts)


def against_the_flow(file: Path, source: str) -> list[str]:
    """What a file of model/ (its path from the root) imports from a part that comes later."""
    part = file.parts[1]
    if part in ORDER:
        allowed: tuple[str, ...] = (*ORDER[: ORDER.index(part)], "progress")
    else:
        allowed = BESIDE.get(part, ())
    parts = {
        module.split(".")[1]
        for module, _ in imported_modules(ast.parse(source))
        if "." in module and module.startswith("model.")
    }
    return [
        f"{file} imports model.{late}"
        for late in sorted(parts & {*ORDER, *BESIDE})
        if late not in (part, *allowed)
    ]


def test_data_flows_one_way_through_the_model() -> None:
    files = [path.relative_to(ROOT) for path in (ROOT / "model").rglob("*.py")]
    assert {file.parts[1] for file in files if len(file.parts) > 2} == {*ORDER, *BESIDE}
    assert [
        line for file in files for line in against_the_flow(file, (ROOT / file).read_text())
    ] == []


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("model/network/mixer.py", "from model.machine.row_law import Product"),
        ("model/machine/machine.py", "from model.cost.forward import forward_pass"),
        ("model/cost/forward.py", "def late():\n    from model.strategies.plain import Plain"),
        ("model/progress/acceptance.py", "import model.machine.machine"),
        ("model/units.py", "from model.network.matrix import Matrix"),
    ],
)
def test_a_current_against_the_flow_is_caught(file: str, source: str) -> None:
    assert len(against_the_flow(Path(file), source)) == 1


def test_each_file_imports_what_its_layer_may() -> None:
    files = [path.relative_to(ROOT) for name in PACKAGES for path in (ROOT / name).rglob("*.py")]
    assert {file.parts[0] for file in files} == set(PACKAGES)
    assert [line for file in files for line in breaches(file, (ROOT / file).read_text())] == []


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("model/roofline.py", "import calibrate.fit"),
        ("model/roofline.py", "from dashboard import charts"),
        ("model/roofline.py", "import numpy, mlx.core as mx"),
        ("model/roofline.py", "import tokroof"),
        ("model/sweep.py", "from scipy.optimize import brentq"),
        ("model/sweep.py", "if TYPE_CHECKING:\n    from scipy.optimize import OptimizeResult"),
        ("model/sweep.py", "def solve():\n    import streamlit"),
        ("model/commands/predict.py", "import_module('calibrate.profiles')"),
        ("model/commands/predict.py", "importlib.import_module('mlx.core')"),
        ("calibrate/fit.py", "import mlx.core as mx"),
        ("calibrate/fit.py", "def fit():\n    from mlx_lm import load"),
        ("calibrate/fit.py", "from dashboard.theme import PALETTE"),
        ("calibrate/kernels.py", "import streamlit"),
        ("calibrate/kernels.py", "import torch"),
        ("dashboard/app.py", "import mlx.core"),
        ("dashboard/app.py", "from tokroof import COMMANDS"),
        ("dashboard/figure.py", "import streamlit as st"),
        ("dashboard/charts/roofline.py", "import streamlit as st"),
        ("dashboard/figures/bottleneck.py", "def show():\n    import streamlit"),
    ],
)
def test_a_planted_breach_is_caught(file: str, source: str) -> None:
    assert len(breaches(Path(file), source)) == 1


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("model/sweep.py", "import math\nimport numpy as np\nfrom model.units import GB"),
        ("model/sweep.py", "def solve():\n    from scipy.optimize import brentq"),
        ("model/strategies/plain.py", "from . import base"),
        (
            "calibrate/fit.py",
            "from scipy.optimize import least_squares\nimport model.machine.row_law",
        ),
        ("calibrate/kernels.py", "import mlx.core as mx"),
        ("dashboard/app.py", "import streamlit as st\nimport calibrate.profiles"),
        ("dashboard/charts/bottleneck.py", "import altair as alt\nfrom model.units import GB"),
    ],
)
def test_what_is_allowed_passes(file: str, source: str) -> None:
    assert breaches(Path(file), source) == []


def test_no_file_beside_the_dashboard_script_hides_a_package() -> None:
    """Streamlit puts the folder of its script first on the import path."""
    names = {path.stem for path in (ROOT / "dashboard").iterdir()}
    assert names & TAKEN_NAMES == set()
