"""The licences of the crates that a program is linked from, whose authors ask that their notices go with it."""

import os
import re

from dist import build, spdx

LINE = "-" * 79 + "\n"


def notices(crate):
    """The texts of licences and notices in a crate's folder."""
    folder = os.path.dirname(crate["manifest_path"])
    names = sorted(name for name in os.listdir(folder) if re.match(r"(LICEN[CS]E|COPYING|NOTICE|COPYRIGHT|UNLICENSE)", name, re.IGNORECASE))
    files = [os.path.join(folder, name) for name in names]
    return [build.read(path).decode(errors="replace").strip() + "\n" for path in files if os.path.isfile(path)]


def text(metadata, program):
    """Crates with their licences, and below each text once with the crates that it belongs to."""
    _, crates, _ = spdx.linked(metadata, program)
    crates = sorted((one for one in crates if one["source"] is not None), key=lambda one: (one["name"], one["version"]))
    users = {}
    for crate in crates:
        for notice in notices(crate):
            users.setdefault(notice, []).append(f"{crate['name']} {crate['version']}")
    rows = "".join(f"{one['name']} {one['version']}: {spdx.licence(one['license'])}\n" for one in crates)
    texts = "".join(f"\n{LINE}{', '.join(names)}\n{LINE}\n{notice}" for notice, names in users.items())
    return f"{program} contains code of these crates, under these licences:\n\n{rows}{texts}"
