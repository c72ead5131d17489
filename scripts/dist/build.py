"""Builds of a program that are equal to the byte wherever the sources, Cargo's folder and Rust are, and that fetch nothing."""

import json
import os
import subprocess
import tomllib

from dist.tarball import Refusal

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
# Where all that is made is put.
FOLDER = os.path.join(ROOT, "target", "dist")
STATIC_TARGETS = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"]


def output(command, **options):
    """What a command of the repository's folder prints; a refusal if it fails."""
    try:
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, **options)
    except OSError as error:
        raise Refusal(f"{command[0]}: {error.strerror} (expected a program)") from None
    if done.returncode:
        raise Refusal(f"{' '.join(command)} failed (the lines above have the reason)")
    return done.stdout


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise Refusal(f"{path}: {error.strerror} (expected a file)") from None


def commit_seconds():
    """The time of all files, in seconds since 1970: that of the commit, or SOURCE_DATE_EPOCH."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is None:
        return int(output(["git", "log", "-1", "--format=%ct"]))
    if not given.isdigit():
        raise Refusal(f"SOURCE_DATE_EPOCH={given}: expected seconds since 1970")
    return int(given)


def version():
    return tomllib.loads(read(os.path.join(ROOT, "Cargo.toml")).decode())["workspace"]["package"]["version"]


def host_target():
    lines = output(["rustc", "-vV"]).decode().splitlines()
    return next(line.removeprefix("host: ") for line in lines if line.startswith("host: "))


def target_folder():
    return os.path.join(ROOT, os.environ.get("CARGO_TARGET_DIR", "target"))


def environment(target):
    """The environment of a build: no flags but those that replace the names of this machine's folders."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CARGO_PROFILE_", "CARGO_BUILD_RUSTFLAGS", "RUSTFLAGS"))}
    compiler = output(["rustc", "-vV"]).decode()
    commit = next(line.removeprefix("commit-hash: ") for line in compiler.splitlines() if line.startswith("commit-hash: "))
    library = os.path.join(output(["rustc", "--print", "sysroot"]).decode().strip(), "lib", "rustlib", "src", "rust")
    home = os.environ.get("CARGO_HOME", os.path.expanduser("~/.cargo"))
    # Of several that fit, the last counts.
    names = {ROOT: "hoistway", target_folder(): "hoistway/target", home: "cargo", library: f"/rustc/{commit}"}
    flags = [f"--remap-path-prefix={path}={name}" for path, name in names.items()]
    kept["CARGO_ENCODED_RUSTFLAGS"] = "\x1f".join(flags)
    if target in STATIC_TARGETS:
        # The linker that comes with Rust: one for all targets, and no compiler of C for another machine.
        kept[f"CARGO_TARGET_{target.upper().replace('-', '_')}_LINKER"] = "rust-lld"
    return kept


def build(program, profile, target):
    """Builds a program, and returns its path."""
    if target not in output(["rustup", "target", "list", "--installed"]).decode().split():
        raise Refusal(f"there is no target {target}: rustup target add {target}")
    command = ["cargo", "build", "--quiet", "--locked", "--offline", "-p", program, "--profile", profile, "--target", target]
    output(command, env=environment(target))
    return os.path.join(target_folder(), target, profile, program)


def metadata(target, manifest="Cargo.toml"):
    """Cargo's description of the crates for a target, and the parsed lock file beside the manifest."""
    command = ["cargo", "metadata", "--locked", "--offline", "--format-version", "1", "--filter-platform", target, "--manifest-path", manifest]
    lock = read(os.path.join(ROOT, os.path.dirname(manifest), "Cargo.lock"))
    return json.loads(output(command)), tomllib.loads(lock.decode())
