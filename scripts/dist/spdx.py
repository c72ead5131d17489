"""The list of the crates that a program is made of, as an SPDX document (version 2.3, JSON), from `cargo metadata` and Cargo.lock."""

import datetime
import hashlib
import re


def identifier(name, version):
    """The document's identifier of a package: letters, digits, dots and hyphens."""
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", f"{name}-{version}")


def licence(expression):
    """A licence of Cargo.toml as an SPDX expression: old crates separate alternatives by a slash."""
    return " OR ".join(part.strip() for part in expression.split("/")) if expression else "NOASSERTION"


def linked(metadata, program):
    """The packages that a program is linked from, and the edges between them; not those of build scripts and tests."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    first = next(package["id"] for package in metadata["packages"] if package["name"] == program)
    found, edges, waiting = {first}, [], [first]
    while waiting:
        user = waiting.pop()
        for used in nodes[user]["deps"]:
            if all(kind["kind"] is not None for kind in used["dep_kinds"]):
                continue
            edges.append((user, used["pkg"]))
            if used["pkg"] not in found:
                found.add(used["pkg"])
                waiting.append(used["pkg"])
    return packages[first], [packages[one] for one in found], [(packages[user], packages[used]) for user, used in edges]


def package(crate, checksums):
    """A crate as a package of the document."""
    name, version = crate["name"], crate["version"]
    is_from_registry = crate["source"] is not None
    entry = {
        "SPDXID": identifier(name, version),
        "name": name,
        "versionInfo": version,
        "downloadLocation": f"https://static.crates.io/crates/{name}/{name}-{version}.crate" if is_from_registry else crate["repository"] or "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": licence(crate["license"]),
        "copyrightText": "NOASSERTION",
    }
    if is_from_registry:
        url = f"pkg:cargo/{name}@{version}"
        entry["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": url}]
    if (name, version) in checksums:
        entry["checksums"] = [{"algorithm": "SHA256", "checksumValue": checksums[name, version]}]
    return entry


def document(metadata, lock, program, target, seconds):
    """The document about a program for a target, dated by seconds since 1970. `lock` is the parsed Cargo.lock."""
    checksums = {(one["name"], one["version"]): one["checksum"] for one in lock["package"] if "checksum" in one}
    first, crates, edges = linked(metadata, program)
    of = lambda crate: identifier(crate["name"], crate["version"])
    entries = sorted((package(crate, checksums) for crate in crates), key=lambda entry: entry["SPDXID"])
    name = f"{program}-{first['version']}-{target}"
    content = hashlib.sha256(repr(entries).encode()).hexdigest()
    relations = sorted({(of(user), "DEPENDS_ON", of(used)) for user, used in edges})
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": name,
        "documentNamespace": f"{first['repository']}/spdx/{name}-{content}",
        "creationInfo": {
            "created": datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": ["Tool: hoistway-scripts-tarball"],
        },
        "packages": entries,
        "relationships": [
            {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}
            for one, kind, other in [("SPDXRef-DOCUMENT", "DESCRIBES", of(first)), *relations]
        ],
    }
