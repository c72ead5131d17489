"""Schedulers written in Python."""

from __future__ import annotations

import re
from typing import Any

from ._errors import Error
from ._hoistway import Request
from ._hoistway import schedulers as built_in


class Scheduler:
    """A custom I/O scheduler: subclass it, and pass the class to `compare(schedulers=["none", MyScheduler])`.

    Each run creates an object of the class, without arguments, and calls it from one thread at a time. The object decides which of its
    waiting requests goes next. A request is the same `Request` object in all calls. The object is not asked about requests
    that go before all others, such as one that the driver has returned.

    `insert` and `dispatch` are required. An exception in any of its methods ends the comparison, and `compare` raises it.
    Such a scheduler is slow, since every step of a request takes a call into Python; a notice in the results says so.
    """

    name: str
    """Its name in results, of at most 15 characters. Default: the name of the class in lower case."""

    def insert(self, request: Request) -> None:
        """Receives a request, which waits from now on. `request.time_ns` is the current time."""
        raise NotImplementedError

    def dispatch(self, now_ns: int) -> Request | None:
        """Chooses the next request for the device, and removes it.

        None holds all waiting requests back until a request completes or arrives. If none is at the device, `dispatch` would
        never be called again, so the comparison ends with a `SchedulerError`. Returning a request that is not waiting
        here ends it in the same way. `now_ns` is the virtual time in ns.
        """
        raise NotImplementedError

    def finish(self, request: Request, now_ns: int) -> None:
        """Called when a dispatched request has completed. Overriding it is optional."""

    def has_work(self) -> bool:
        """Whether `dispatch` should be called. Default: whether any request is waiting."""
        return True

    def absorbed(self, survivor: Request, absorbed: Request) -> None:
        """Called when `absorbed` was merged into `survivor`. Both were waiting here; `absorbed` must no longer be dispatched.

        Waiting requests are merged only if a scheduler overrides this method; then `sector` and `bytes` of a waiting request may change
        at any time.
        """


def scheduler_class(scheduler: type[Scheduler]) -> dict[str, Any]:
    """The class in the native half's form."""
    name = scheduler_name(scheduler)

    def has(function: str) -> bool:
        return getattr(scheduler, function) is not getattr(Scheduler, function)

    for function in ("insert", "dispatch"):
        if not has(function):
            raise Error(f"schedulers {name}: has no {function} (expected a class with insert and dispatch)", option="schedulers")
    return {
        "name": name,
        "make": scheduler,
        "has_finish": has("finish"),
        "has_has_work": has("has_work"),
        "has_absorbed": has("absorbed"),
    }


def scheduler_name(scheduler: type[Scheduler]) -> str:
    """The name of a scheduler in results."""
    name = getattr(scheduler, "name", None) or scheduler.__name__.lower()
    expected = "expected a `name` of at most 15 letters, digits, - and _ that no other scheduler has"
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_-]{1,15}", name):
        raise Error(f"schedulers {scheduler.__name__}: {name!r} cannot be its name ({expected})", option="schedulers")
    if name in (*built_in(), "all", "default", "research", "shipping"):
        raise Error(f"schedulers {scheduler.__name__}: {name} is the name of another scheduler ({expected})", option="schedulers")
    return name
