"""Which I/O scheduler, with which settings, for my device and my load?

Hoistway is the Linux multi-queue block layer with its I/O schedulers, in user space. `compare` runs a load over models of devices, in
virtual time:

    >>> import hoistway
    >>> comparison = hoistway.compare("my-load.fio", device="intel-s3520-1600gb", schedulers=["none", "mq-deadline", "bfq"])
    >>> print(comparison)
    >>> comparison.plot.pareto()

`run` does the same in real time, on a file, a disk or memory.
"""

from ._catalogue import device, devices, host, hosts, scenarios, schedulers
from ._compare import compare, load, trace
from ._comparison import Comparison, Estimate
from ._errors import DataSetError, Error, SchedulerError, VersionError
from ._hoistway import Request, Table, __version__
from ._load import Job, Load
from ._real import run
from ._scheduler import Scheduler
from ._sweep import Sweep, sweep
from ._tune import tune
from ._tuning import Setting, Tuning

__all__ = [
    "Comparison",
    "DataSetError",
    "Error",
    "Estimate",
    "Job",
    "Load",
    "Request",
    "Scheduler",
    "SchedulerError",
    "Setting",
    "Sweep",
    "Table",
    "Tuning",
    "VersionError",
    "__version__",
    "compare",
    "device",
    "devices",
    "host",
    "hosts",
    "load",
    "run",
    "scenarios",
    "schedulers",
    "sweep",
    "trace",
    "tune",
]
