"""The types of the package."""

import pathlib
import subprocess
import sys

import hoistway
from hoistway import _hoistway

PYTHON = pathlib.Path(__file__).parent.parent


def test_the_package_is_typed() -> None:
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", "-p", "hoistway"]
    checked = subprocess.run(command, cwd=PYTHON, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_the_native_stub_matches_the_module(tmp_path: pathlib.Path) -> None:
    # Custom attributes are in the object's dictionary.
    allowed = tmp_path / "allowed"
    allowed.write_text("hoistway._hoistway.Request.__getattr__\nhoistway._hoistway.Request.__setattr__\n")
    command = [sys.executable, "-m", "mypy.stubtest", "hoistway._hoistway", "--ignore-missing-stub", "--allowlist", str(allowed)]
    command += ["--mypy-config-file", "pyproject.toml"]
    checked = subprocess.run(command, cwd=PYTHON, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_everything_public_is_documented() -> None:
    for name in hoistway.__all__:
        assert name == "__version__" or getattr(hoistway, name).__doc__, name
    assert _hoistway.__doc__
