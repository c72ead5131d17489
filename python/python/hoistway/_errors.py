"""The exceptions of the package."""

from __future__ import annotations


class Error(ValueError):
    """An argument is invalid.

    The message is that of the command line, with the names of the Python arguments.
    """

    file: str | None
    """The name of the text that contains the error: its file, if it was read from one. None if the error is not in a text."""
    line: int | None
    """The line of the error in that text, from 1. None if the error concerns the text as a whole."""
    option: str | None
    """If the error is in a text: the option of the job file, or the key of the profile. Otherwise: the argument."""

    def __init__(self, message: str, file: str | None = None, line: int | None = None, option: str | None = None) -> None:
        # The base class gets all arguments, so that the exception can be pickled.
        super().__init__(message, file, line, option)
        self.file = file
        self.line = line
        self.option = option

    def __str__(self) -> str:
        return str(self.args[0])


class SchedulerError(RuntimeError):
    """A scheduler written in Python lost a request, or dispatched one twice."""


class DataSetError(RuntimeError):
    """A folder of finished runs is damaged or incomplete, or cannot be written. The message names the file, which is left unchanged."""


class VersionError(RuntimeError):
    """A worker has another version of hoistway: its runs would differ."""
