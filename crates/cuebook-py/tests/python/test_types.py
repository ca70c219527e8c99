"""The package and its tests are clean under mypy --strict and pyright, and wrong calls are found."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
SOURCE = HERE.parent.parent / "python"


def _mypy(tmp_path: Path, *what: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), *what]
    return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)


def test_the_package_is_typed(tmp_path: Path) -> None:
    done = _mypy(tmp_path, "--python-version", "3.10", "-p", "cuebook")
    assert done.returncode == 0, done.stdout


def test_programs_that_use_it_are_typed(tmp_path: Path) -> None:
    done = _mypy(tmp_path, *(str(file) for file in sorted(HERE.glob("*.py"))))
    assert done.returncode == 0, done.stdout


def test_pyright_agrees(tmp_path: Path) -> None:
    import cuebook

    (tmp_path / "cuebook").symlink_to(Path(cuebook.__file__).parent)
    (tmp_path / "wrong.py").write_text('from cuebook import Book\nBook(".").render("p").spans.sort()\nBook(7)\n')
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--pythonversion", "3.10"]
    package = subprocess.run([*command, "cuebook"], capture_output=True, text=True, cwd=tmp_path)
    assert package.returncode == 0, package.stdout + package.stderr
    wrong = subprocess.run([*command, "wrong.py"], capture_output=True, text=True, cwd=tmp_path)
    assert wrong.returncode == 1 and "wrong.py:2" in wrong.stdout and "wrong.py:3" in wrong.stdout, wrong.stdout


def test_a_wrong_call_is_found(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text('from cuebook import Book\nlength: str = len(Book(".").render("p").spans)\nBook(7)\n')
    done = _mypy(tmp_path, str(program))
    assert done.returncode == 1
    assert 'program.py:2: error: Incompatible types in assignment' in done.stdout
    assert 'program.py:3: error: Argument 1 to "Book"' in done.stdout


def test_the_stub_names_what_the_native_half_has() -> None:
    import ast

    from cuebook import _native

    stub = ast.parse((SOURCE / "cuebook/_native.pyi").read_text())
    for one in stub.body:
        if isinstance(one, ast.ClassDef):
            native = {name for name in vars(getattr(_native, one.name)) if not name.startswith("_")}
            stubbed = {part.name for part in one.body if isinstance(part, ast.FunctionDef) and not part.name.startswith("_")}
            assert native == stubbed, one.name
        elif isinstance(one, ast.FunctionDef):
            assert callable(getattr(_native, one.name))
    public = {name for name in vars(_native) if not name.startswith("_")}
    stubbed = {one.name for one in stub.body if isinstance(one, (ast.ClassDef, ast.FunctionDef))}
    stubbed |= {one.target.id for one in stub.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)}
    assert public == {name for name in stubbed if not name.startswith("_")}


def test_the_import_is_small() -> None:
    """`typing` and what it imports would take more time than everything else."""
    code = "import sys, cuebook; print([name for name in ('typing', 're', 'inspect', 'asyncio', 'json', 'threading') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {_folder()!r}; {code}"], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_the_package_needs_no_other() -> None:
    assert importlib.metadata.requires("cuebook") is None


def _folder() -> list[str]:
    import cuebook

    return [str(Path(cuebook.__file__).parents[1])]


def test_names_that_are_imported_later_are_there() -> None:
    import cuebook

    assert cuebook.Span.__name__ == "Span" and "RunResult" in dir(cuebook)
    assert all(hasattr(cuebook, name) for name in cuebook.__all__) and not hasattr(cuebook, "Spam")
