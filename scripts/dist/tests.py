"""Tests of what a release is packed with: python3 -m unittest scripts/dist/tests.py"""

import hashlib
import io
import json
import os
import re
import struct
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import unittest
import unittest.mock

sys.dont_write_bytecode = True
SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
ROOT = os.path.join(SCRIPTS, "..")
sys.path.insert(0, SCRIPTS)
from dist import build, debian, licences, spdx, tarball
from dist.tarball import Refusal

TARGET = "x86_64-unknown-linux-musl"


def metadata():
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", TARGET]
    return json.loads(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout)


def crate(name, source="registry", licence="MIT"):
    return {"id": name, "name": name, "version": "1.0.0", "source": source, "license": licence, "repository": "https://example.org"}


def elf(kinds, machine=62):
    """The beginning of a 64-bit ELF file with these program headers."""
    head = bytearray(64)
    head[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<H", head, 18, machine)
    struct.pack_into("<Q", head, 32, 64)
    struct.pack_into("<HH", head, 54, 56, len(kinds))
    return bytes(head) + b"".join(struct.pack("<I", kind) + bytes(52) for kind in kinds)


class Components(unittest.TestCase):
    def test_only_what_is_linked_is_listed_with_licences_and_checksums(self):
        edge = lambda name, *kinds: {"pkg": name, "dep_kinds": [{"kind": kind} for kind in kinds]}
        nodes = [
            {"id": "program", "deps": [edge("used", None), edge("builder", "build"), edge("tester", "dev"), edge("both", "dev", None)]},
            {"id": "used", "deps": [edge("deeper", None)]},
            *({"id": name, "deps": []} for name in ["builder", "tester", "both", "deeper"]),
        ]
        crates = [crate("program", None), crate("used", licence="MIT/Apache-2.0"), *map(crate, ["builder", "tester", "both", "deeper"])]
        lock = {"package": [{"name": "used", "version": "1.0.0", "checksum": "ab" * 32}]}
        document = spdx.document({"packages": crates, "resolve": {"nodes": nodes}}, lock, "program", TARGET, 0)
        self.assertEqual([one["name"] for one in document["packages"]], ["both", "deeper", "program", "used"])
        used = document["packages"][3]
        self.assertEqual((used["licenseDeclared"], used["checksums"][0]["checksumValue"]), ("MIT OR Apache-2.0", "ab" * 32))
        self.assertEqual(document["creationInfo"]["created"], "1970-01-01T00:00:00Z")
        self.assertIn(("SPDXRef-used-1.0.0", "SPDXRef-deeper-1.0.0"), [(one["spdxElementId"], one["relatedSpdxElement"]) for one in document["relationships"]])

    def test_the_document_of_the_program_is_whole_and_the_same_each_time(self):
        with open(os.path.join(ROOT, "Cargo.lock"), "rb") as file:
            lock = tomllib.load(file)
        known = metadata()
        document = spdx.document(known, lock, "hoistway", TARGET, 1)
        known["packages"].reverse()
        self.assertEqual(json.dumps(document), json.dumps(spdx.document(known, lock, "hoistway", TARGET, 1)))
        identifiers = [one["SPDXID"] for one in document["packages"]]
        self.assertEqual(len(identifiers), len(set(identifiers)))
        for one in document["packages"]:
            self.assertRegex(one["SPDXID"], r"^SPDXRef-[A-Za-z0-9.-]+$")
            self.assertRegex(one["licenseDeclared"], r"^[A-Za-z0-9.() -]+$")
            self.assertEqual("checksums" in one, not one["name"].startswith("hoistway"), one["name"])
        for one in document["relationships"]:
            self.assertIn(one["relatedSpdxElement"], identifiers)
        self.assertTrue({"hoistway", "hoistway-blk", "clap"} <= {one["name"] for one in document["packages"]})
        self.assertNotIn("proptest", {one["name"] for one in document["packages"]})


class Tarball(unittest.TestCase):
    def test_the_same_files_give_the_same_bytes_in_any_order(self):
        files = {"b": (b"two", False), "a/c": (b"one", True)}
        packed = tarball.pack(files, "x-1", 86400)
        self.assertEqual(packed, tarball.pack(dict(reversed(files.items())), "x-1", 86400))
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            entries = [(one.name, one.mode, one.mtime, one.uid, one.gid, one.uname) for one in archive]
        self.assertEqual(entries, [("x-1/a/c", 0o755, 86400, 0, 0, ""), ("x-1/b", 0o644, 86400, 0, 0, "")])

    def test_a_program_that_needs_an_interpreter_is_refused(self):
        self.assertEqual(tarball.target(elf([1, 6]), "static"), TARGET)
        self.assertEqual(tarball.target(elf([1, 6], 183), "static"), "aarch64-unknown-linux-musl")
        refused = [(elf([1, 3]), "is linked dynamically"), (b"#!/bin/sh", "no 64-bit ELF program"), (elf([1], 8), "is for machine 8 of ELF")]
        for program, words in refused:
            with self.assertRaisesRegex(Refusal, f"^p: {words}"):
                tarball.target(program, "p")

    def test_nothing_is_overwritten_and_nothing_is_written_then(self):
        with tempfile.TemporaryDirectory() as folder:
            tarball.write_new(folder, {"one": b"1"})
            with self.assertRaisesRegex(Refusal, "one: exists"):
                tarball.write_new(folder, {"two": b"2", "one": b"x"})
            self.assertEqual(os.listdir(folder), ["one"])

    def test_the_checksums_are_those_that_sha256sum_reads(self):
        with tempfile.TemporaryDirectory() as folder:
            files = {"b": b"two", "a": b"one"}
            tarball.write_new(folder, files | {"SHA256SUMS": tarball.checksums(files)})
            subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=folder, check=True)
            self.assertTrue(tarball.checksums(files).startswith(hashlib.sha256(b"one").hexdigest().encode()))


class Builds(unittest.TestCase):
    def test_no_flag_or_profile_of_the_caller_reaches_a_build_and_no_folder_of_this_machine(self):
        given = {"RUSTFLAGS": "-Ctarget-cpu=native", "CARGO_PROFILE_RELEASE_LTO": "fat", "CARGO_ENCODED_RUSTFLAGS": "-g", "CARGO_HOME": "/a home/cargo"}
        with unittest.mock.patch.dict(os.environ, given):
            made = build.environment("aarch64-unknown-linux-musl")
        self.assertEqual(set(made) & {"RUSTFLAGS", "CARGO_PROFILE_RELEASE_LTO"}, set())
        flags = made["CARGO_ENCODED_RUSTFLAGS"].split("\x1f")
        self.assertEqual({flag.split("=")[0] for flag in flags}, {"--remap-path-prefix"})
        self.assertIn("--remap-path-prefix=/a home/cargo=cargo", flags)
        self.assertIn(f"--remap-path-prefix={build.ROOT}=hoistway", flags)
        self.assertEqual(made["CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER"], "rust-lld")

    def test_the_time_of_files_is_seconds(self):
        with unittest.mock.patch.dict(os.environ, {"SOURCE_DATE_EPOCH": "86400"}):
            self.assertEqual(build.commit_seconds(), 86400)
        with unittest.mock.patch.dict(os.environ, {"SOURCE_DATE_EPOCH": "today"}), self.assertRaisesRegex(Refusal, "=today: expected seconds"):
            build.commit_seconds()

    def test_every_script_refuses_arguments_that_it_does_not_know_in_one_line(self):
        for name in ["release", "tarball", "package", "wheel", "crates"]:
            done = subprocess.run([os.path.join(SCRIPTS, name), "--no-such-option"], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (2, ""), name)
            self.assertRegex(done.stderr, rf"^scripts/{name}: --no-such-option: expected [^\n]*\n$")


class Notices(unittest.TestCase):
    def test_each_text_is_there_once_with_the_crates_that_it_belongs_to(self):
        with tempfile.TemporaryDirectory() as folder:
            crates = []
            for name, text in [("one", "MIT of A"), ("two", "MIT of A"), ("three", "MIT of B")]:
                os.mkdir(os.path.join(folder, name))
                with open(os.path.join(folder, name, "LICENSE-MIT"), "x") as file:
                    file.write(text)
                crates.append(crate(name) | {"manifest_path": os.path.join(folder, name, "Cargo.toml")})
            program = crate("program", None)
            nodes = [{"id": one["id"], "deps": []} for one in [program, *crates]]
            nodes[0]["deps"] = [{"pkg": one["id"], "dep_kinds": [{"kind": None}]} for one in crates]
            text = licences.text({"packages": [program, *crates], "resolve": {"nodes": nodes}}, "program")
        self.assertEqual((text.count("MIT of A"), text.count("MIT of B"), text.count("one 1.0.0, two 1.0.0")), (1, 1, 1))

    def test_nearly_all_crates_of_the_program_bring_a_notice(self):
        _, crates, _ = spdx.linked(metadata(), "hoistway")
        without = [one["name"] for one in crates if one["source"] is not None and not licences.notices(one)]
        self.assertLess(len(without), 8, without)


class Debian(unittest.TestCase):
    def test_the_changelog_and_the_copyright_have_the_form_that_debian_reads(self):
        changelog = debian.changelog("hoistway", 0).decode()
        self.assertRegex(changelog, r"^hoistway \([0-9.]+\) unstable; urgency=medium\n\n  \* .*\n\n -- .* <.*@.*>  Thu, 01 Jan 1970 00:00:00 \+0000\n$")
        paragraphs = debian.copyright("hoistway").decode().split("\n\n")
        self.assertEqual([one.split(":")[0] for one in paragraphs], ["Format", "Files", "License", "License"])
        for line in "\n".join(paragraphs).splitlines():
            self.assertRegex(line, r"^([A-Z][A-Za-z-]*: \S| \S)")

    def test_each_package_has_a_folder_and_fields(self):
        self.assertEqual(sorted(debian.PACKAGES), sorted(os.listdir(os.path.join(ROOT, "packaging"))))
        for name, (profile, _, fields) in debian.PACKAGES.items():
            self.assertIn(profile, ["release", "server"], name)
            self.assertTrue(all(line.startswith(" ") for line in fields["Description"].split("\n")[1:]), name)


class Policy(unittest.TestCase):
    def test_public_crates_and_all_that_they_need_may_be_published_and_no_others(self):
        known = metadata()
        crates = {one["name"]: one for one in known["packages"] if one["source"] is None}
        needed, waiting = set(), [f"hoistway-{name}" for name in known["metadata"]["public"]]
        while waiting:
            name = waiting.pop()
            if name not in needed:
                needed.add(name)
                # A dependency of tests without a version is left out of what is published.
                dependencies = [one for one in crates[name]["dependencies"] if one["req"] != "*"]
                waiting += [one["name"] for one in dependencies if one["name"] in crates]
        published = {name for name, one in crates.items() if one["publish"] is None}
        self.assertEqual(published, needed)
        with open(os.path.join(ROOT, "CONTRIBUTING.md")) as file:
            section = re.search(r"\n## What is published\n(.*?)\n## ", file.read(), re.DOTALL).group(1)
        for name in needed:
            self.assertIn(f"`{name.removeprefix('hoistway-')}`", section)

    def test_each_job_of_the_hosted_checks_is_one_of_ci_run_and_all_are_there(self):
        with open(os.path.join(ROOT, ".github", "workflows", "ci.yml")) as file:
            hosted = re.findall(r"run: \.ci/run (\w+)", file.read())
        with open(os.path.join(ROOT, ".ci", "run")) as file:
            known = re.search(r"these: ([a-z, ]+)", file.read()).group(1).split(", ")
        self.assertEqual(sorted(hosted), sorted(known))


if __name__ == "__main__":
    unittest.main()
