"""What is built in."""

from __future__ import annotations

import tomllib
from typing import Any

from . import _hoistway


def devices() -> list[str]:
    """The names of the device presets."""
    return _hoistway.devices()


def device(name: str) -> dict[str, Any]:
    """A device preset with all its numbers, whose keys say their units: change some, and give it to `compare`.

    Raises:
        Error: There is none of this name.
    """
    return tomllib.loads(_hoistway.device_toml(name))


def hosts() -> list[str]:
    """The names of the host profiles."""
    return _hoistway.hosts()


def host(name: str) -> dict[str, Any]:
    """A host profile, as `device` gives a preset.

    Raises:
        Error: There is none of this name.
    """
    return tomllib.loads(_hoistway.host_toml(name))


def scenarios() -> list[str]:
    """The names of the bundled loads."""
    return _hoistway.scenarios()


def schedulers() -> list[str]:
    """The names of the schedulers, of which some are only in old kernels."""
    return _hoistway.schedulers()
