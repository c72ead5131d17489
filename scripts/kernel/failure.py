"""What the scripts share: the error that ends one (one line, exit status 2), complete files, progress."""

import argparse
import os
import signal
import sys
import time


class Failure(Exception):
    """What is wrong, where, and what was expected, in one line."""


class Progress:
    """A line for each step, with the time to the end."""

    def __init__(self, steps):
        self.steps, self.done, self.worked, self.begin = steps, 0, 0, time.monotonic()

    def step(self, what, worked=True):
        self.done += 1
        self.worked += worked
        left = ""
        if self.worked:
            each = (time.monotonic() - self.begin) / self.worked
            left = f", about {each * (self.steps - self.done) / 60:.0f} min left"
        print(f"[{self.done}/{self.steps}{left}] {what}", flush=True)


def seconds(text):
    """The value of an option that is a time limit."""
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text} is no time limit (expected seconds, 1 or more)")
    return int(text)


def write(path, contents):
    """Writes a complete file or none; an error names the file."""
    try:
        with open(path + ".partial", "wb") as file:
            file.write(contents if isinstance(contents, bytes) else contents.encode())
        os.replace(path + ".partial", path)
    except OSError as error:
        if os.path.exists(path + ".partial"):
            os.remove(path + ".partial")
        raise OSError(error.errno, error.strerror, path) from None


def run(main):
    """Runs a script's main function; a Failure or a full disk becomes one line and status 2."""
    # So that a guest ends with the script, and what is half done is removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    name = f"scripts/{sys.argv[0].rsplit('/', 1)[-1]}"
    try:
        sys.exit(main())
    except Failure as failure:
        message = str(failure)
    except OSError as error:
        message = f"{error.filename or 'a file'}: {error.strerror or error}"
    except KeyboardInterrupt:
        sys.exit(130)
    print(f"{name}: {message}", file=sys.stderr)
    sys.exit(2)
