"""The error that ends a script: one line, exit status 2."""

import sys


class Failure(Exception):
    """What is wrong, where, and what was expected, in one line."""


def run(main):
    """Runs a script's main function; a Failure or a full disk becomes one line and status 2."""
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
