"""What can go wrong."""

from __future__ import annotations


class Error(ValueError):
    """Something that was asked for cannot be.

    The message is the command line's, but calls options as Python's arguments are called.
    """

    file: str | None
    """What the text at fault is called: its file, if it came from one. None if no text is at fault."""
    line: int | None
    """The line of it, from 1. None if the text as a whole is at fault."""
    option: str | None
    """The option of a job file or the key of a profile, if a text is at fault, or else the argument."""

    def __init__(self, message: str, file: str | None = None, line: int | None = None, option: str | None = None) -> None:
        # All of them, so that the exception comes back whole from another process.
        super().__init__(message, file, line, option)
        self.file = file
        self.line = line
        self.option = option

    def __str__(self) -> str:
        return str(self.args[0])


class SchedulerError(RuntimeError):
    """A scheduler that was written in Python broke its promises: it lost a request, or gave one out twice."""


class DataSetError(RuntimeError):
    """A folder of finished runs is damaged or incomplete, or cannot be written. It names the file, which is left as it is."""


class VersionError(RuntimeError):
    """A worker has another version of hoistway: its runs would be others."""
