"""Trials of Debian packages: each is installed below an empty folder, used there, and purged, which leaves nothing."""

import os
import re
import shutil
import subprocess
import tempfile
import time

from dist.build import output
from dist.tarball import Refusal

CHROOT = shutil.which("chroot") or "/usr/sbin/chroot"


def expect(is_so, what):
    if not is_so:
        raise Refusal(f"the package on trial: {what}")


class Root:
    """An empty system, with this one's libraries in the place of the package's dependencies."""

    def __init__(self, folder, program):
        self.folder = folder
        for name in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "var/log", "bin", "dev", "tmp", "run/hoistway", "var/lib/hoistway"]:
            os.makedirs(self.path(name))
        for name in ["status", "available"]:
            open(self.path(f"var/lib/dpkg/{name}"), "x").close()
        needed = output(["ldd", program, "/bin/sh"]).decode()
        for file in ["/bin/sh", *sorted(set(re.findall(r"/\S*\.so\S*", needed)))]:
            os.makedirs(os.path.dirname(self.path(file)), exist_ok=True)
            shutil.copy(file, self.path(file))

    def path(self, name):
        return os.path.join(self.folder, name.lstrip("/"))

    def dpkg(self, *arguments):
        options = ["--force-depends", "--force-script-chrootless", "--log=/dev/null"]
        done = subprocess.run(["dpkg", f"--root={self.folder}", *options, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        expect(done.returncode == 0, f"dpkg {arguments[0]} failed: {done.stdout.decode()}")
        return done.stdout.decode()

    def run(self, *command):
        """Runs a command in this system, with an empty environment."""
        done = subprocess.run([CHROOT, self.folder, *command], env={}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        expect(done.returncode == 0, f"{' '.join(command)}: {done.stderr.decode()}")
        return done.stdout.decode()


def hoistway(root):
    """Compares schedulers, and warns of settings in force when it is removed."""
    table = root.run("/usr/bin/hoistway", "compare", "--runtime", "100ms", "--repeat", "1")
    expect("mq-deadline" in table and "bfq" in table, "its comparison has no table")
    pages = os.listdir(root.path("usr/share/man/man1"))
    expect({"hoistway.1.gz", "hoistway-compare.1.gz", "hoistway-apply.1.gz"} <= set(pages), "a manual page is missing")
    expect("hoistway-serve.1.gz" not in pages, "it has a page of the server's package")
    journal = root.path("var/lib/hoistway/1.json")
    open(journal, "x").close()
    expect("hoistway apply --undo" in root.dpkg("--remove", "hoistway"), "its removal does not name the settings in force")
    os.remove(journal)


def hoistway_serve(root):
    """Checks its configuration and serves."""
    with open(root.path("etc/passwd")) as users:
        expect(re.search("^hoistway:", users.read(), re.MULTILINE), "it has made no user")
    disk = root.path("var/lib/hoistway/disk.img")
    with open(disk, "xb") as file:
        file.truncate(16 << 20)
    root.run("/usr/bin/hoistway-serve", "serve", "--check", "--config", "/etc/hoistway/serve.toml")
    with open(root.path("log"), "xb") as log:
        command = [CHROOT, root.folder, "/usr/bin/hoistway-serve", "serve", "--config", "/etc/hoistway/serve.toml"]
        server = subprocess.Popen(command, stderr=log)
    try:
        until = time.monotonic() + 10
        while not os.path.exists(root.path("run/hoistway/control.sock")) and time.monotonic() < until:
            time.sleep(0.05)
        state = root.run("/usr/bin/hoistway-ctl", "--control", "/run/hoistway/control.sock", "show")
        expect('export "disk"' in state, f"it does not serve: {state}")
    finally:
        server.terminate()
        server.wait()
    for page in ["hoistway-serve", "hoistway-serve-serve", "hoistway-ctl", "hoistway-top"]:
        expect(os.path.getsize(root.path(f"usr/share/man/man1/{page}.1.gz")) > 0, f"it has no page {page}")
    os.remove(disk)
    enabled = root.path("etc/systemd/system/multi-user.target.wants/hoistway-serve.service")
    os.makedirs(os.path.dirname(enabled))
    os.symlink("/lib/systemd/system/hoistway-serve.service", enabled)
    root.dpkg("--remove", "hoistway-serve")
    expect(not os.path.lexists(enabled), "its removal has left its unit enabled")
    expect(os.path.exists(root.path("etc/hoistway/serve.toml")), "its removal has removed its configuration")


def run(name, package, program):
    """Installs, uses and purges a package. As root."""
    with tempfile.TemporaryDirectory() as folder:
        root = Root(folder, program)
        root.dpkg("--install", package)
        {"hoistway": hoistway, "hoistway-serve": hoistway_serve}[name](root)
        root.dpkg("--purge", name)
        left = [path for path in ["usr/bin", "usr/share", "lib/systemd", "etc/hoistway", "var/lib/hoistway"] if os.path.exists(root.path(path))]
        expect(not left, f"its purge has left {', '.join(left)}")
