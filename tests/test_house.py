"""The house: data flows one way, light rooms stay light, and nothing names the machine it was built on."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "fedquorum"

# From left to right; a module may import what is left of it or beside it in its own room.
ROOMS = [
    ["_version", "errors", "platform_class"],
    ["federation"],
    ["datasets"],
    ["subsamples"],
    ["training"],
    ["votes"],
    ["certificates"],
    ["config"],
    ["runs"],
    ["engines"],
    ["plan"],
    ["experiment"],
    ["report"],
    ["verify"],
    ["plan_command"],
    ["commands"],
    ["cli"],
]
PLACE = {room: place for place, rooms in enumerate(ROOMS) for room in rooms}


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} if node.module != "fedquorum" else {f"fedquorum.{name.name}" for name in node.names}
    return found


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


MODULES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_room_imports_one_to_its_right(path: Path) -> None:
    for name in imports(path):
        if name.startswith("fedquorum."):
            assert PLACE[name.split(".")[1]] <= PLACE[room(path)], f"{path.name} imports {name}"


def test_certificates_need_only_numpy_and_scipy() -> None:
    allowed = {"numpy", "scipy", "fedquorum"} | sys.stdlib_module_names
    for path in [*(SOURCE / "certificates").rglob("*.py"), SOURCE / "votes.py", SOURCE / "errors.py"]:
        assert {name.split(".")[0] for name in imports(path)} <= allowed, path


@pytest.mark.parametrize(
    ("statement", "heavy"),
    [
        ("import fedquorum", ["jax", "scipy", "sklearn", "pyarrow", "matplotlib", "pydantic"]),
        ("import fedquorum.cli", ["numpy", "jax", "scipy", "sklearn", "pyarrow", "matplotlib", "pydantic"]),
        ("import fedquorum.certificates", ["jax", "sklearn", "pyarrow", "matplotlib", "pydantic", "scipy.stats"]),
        ("import fedquorum.commands", ["jax", "sklearn", "pyarrow", "matplotlib", "scipy.stats"]),
    ],
)
def test_heavy_libraries_are_imported_when_they_are_needed(statement: str, heavy: list[str]) -> None:
    code = f"import sys; {statement}; print([name for name in {heavy} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_every_public_name_can_be_had() -> None:
    import fedquorum

    for name in fedquorum.__all__:
        assert getattr(fedquorum, name) is not None
    with pytest.raises(AttributeError):
        fedquorum.nothing_of_the_kind  # noqa: B018
