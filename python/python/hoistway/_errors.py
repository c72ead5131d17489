"""The exceptions of the package."""

from __future__ import annotations


class Error(ValueError):
    """An argument is invalid.

    The message is that of the command line, with the names of Python's arguments.
    """

    file: str | None
    """The name of the text at fault: its file, if it came from one. None if no text is at fault."""
    line: int | None
    """The line in the text, from 1. None if the text as a whole is at fault."""
    option: str | None
    """The option of a job file or the key of a profile, if a text is at fault; otherwise the argument."""

    def __init__(self, message: str, file: str | None = None, line: int | None = None, option: str | None = None) -> None:
        # All arguments, so that the exception can be pickled.
        super().__init__(message, file, line, option)
        self.file = file
        self.line = line
        self.option = option

    def __str__(self) -> str:
        return str(self.args[0])


class SchedulerError(RuntimeError):
    """A scheduler written in Python lost a request, or dispatched one twice."""


class DataSetError(RuntimeError):
    """A folder of finished runs is damaged or incomplete, or cannot be written. It names the file, which is left unchanged."""


class VersionError(RuntimeError):
    """A worker has another version of hoistway: its runs would differ."""
