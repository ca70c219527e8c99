"""What the wheel says about itself, and what `import cuebook` loads."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import cuebook

#: What a quick import must not load: each takes a millisecond or more.
SLOW = {"asyncio", "concurrent", "dataclasses", "inspect", "json", "pathlib", "pyarrow", "re", "tempfile", "typing", "urllib"}


def test_the_wheel_needs_no_other_package() -> None:
    assert importlib.metadata.requires("cuebook") in (None, [])
    assert importlib.metadata.metadata("cuebook")["Requires-Python"] == ">=3.10"


def test_the_wheel_is_for_cpython_310_and_later() -> None:
    wheel = importlib.metadata.distribution("cuebook").read_text("WHEEL") or ""
    assert [line for line in wheel.splitlines() if line.startswith("Tag: cp310-abi3-")]
    [library] = [path for path in Path(cuebook.__file__).parent.iterdir() if path.name.startswith("_native.") and path.suffix != ".pyi"]
    assert ".abi3." in library.name or library.suffix == ".pyd"


def test_the_wheel_has_only_the_package() -> None:
    files = [str(path) for path in importlib.metadata.files("cuebook") or []]
    assert {name.split("/")[0] for name in files} == {"cuebook", f"cuebook-{cuebook.__version__}.dist-info"}
    assert {"cuebook/py.typed", "cuebook/_native.pyi"} <= set(files)


def test_import_loads_nothing_slow() -> None:
    site = str(Path(cuebook.__file__).parents[1])
    code = f"import sys; sys.path.append({site!r}); old = set(sys.modules); import cuebook; print(*set(sys.modules) - old)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert "cuebook._native" in loaded and not loaded & SLOW
    assert not {name for name in loaded if name.startswith("cuebook.") and name.count(".") > 1}
