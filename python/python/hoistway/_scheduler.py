"""Schedulers that are written in Python."""

from __future__ import annotations

import re
from typing import Any

from ._errors import Error
from ._hoistway import Request
from ._hoistway import schedulers as built_in


class Scheduler:
    """An I/O scheduler of one's own: subclass it, and give the class to `compare(schedulers=["none", MyScheduler])`.

    Each run makes an object of the class, without arguments, and calls it from one thread at a time. It decides which of the
    requests that it was given goes next; they are `Request`s, and the same object stands for a request in all calls. What goes
    before all others anyway, such as a request that the driver has given back, it is not asked about.

    `insert` and `dispatch` are required. An exception in any of these functions ends the comparison and is raised there.
    It is slow, as every step of a request takes a call into Python: results say so in their notices.
    """

    name: str
    """What it is called in results, at most 15 characters; the class's name in lower case if nobody says."""

    def insert(self, request: Request) -> None:
        """Takes a request in, which waits from now on. `request.time_ns` is the present."""
        raise NotImplementedError

    def dispatch(self, now_ns: int) -> Request | None:
        """Chooses the request that goes to the device next and forgets it.

        None holds back those that wait until another one has ended or come; if none of them is at the device, nobody would ever
        ask again, and the comparison ends with a `SchedulerError`. So it does for a request that does not wait here. `now_ns` is
        virtual time in ns.
        """
        raise NotImplementedError

    def finish(self, request: Request, now_ns: int) -> None:
        """A request that was dispatched has ended. It need not be overridden."""

    def has_work(self) -> bool:
        """Whether it is worth asking for a request. Without an override: whether any waits."""
        return True

    def absorbed(self, survivor: Request, absorbed: Request) -> None:
        """`absorbed` was joined with `survivor`, which waits here too, and is no longer to be dispatched.

        Only schedulers that override this have requests merged while they wait; of `survivor`, `sector` and `bytes` may have changed
        whenever it is looked at.
        """


def scheduler_class(scheduler: type[Scheduler]) -> dict[str, Any]:
    """The class as the native half takes it."""
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
    """What it is called in results."""
    name = getattr(scheduler, "name", None) or scheduler.__name__.lower()
    expected = "expected a `name` of at most 15 letters, digits, - and _ that no other scheduler has"
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_-]{1,15}", name):
        raise Error(f"schedulers {scheduler.__name__}: cannot be called {name!r} ({expected})", option="schedulers")
    if name in (*built_in(), "all", "default", "research", "shipping"):
        raise Error(f"schedulers {scheduler.__name__}: there is another {name} ({expected})", option="schedulers")
    return name
