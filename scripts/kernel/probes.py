"""The probes of a recording, in the words of the kernel that is recorded.

Every probe has one or more ways, of which the guest takes the first that its kernel accepts: a probe on the tracepoint itself with its
typed arguments (Linux 6.5 and newer), otherwise a kprobe on the function that calls all that is attached to it, which has the same
arguments. The kernel only calls that function when two or more are attached; the guest sees to that. Offsets of fields come from the kernel's
BTF.

While a kprobe at a function's entry records, interrupts are on, and kprobes in an interrupt miss what happens. So kernels without other probes
get them behind the entry: a breakpoint, which keeps interrupts off, and the arguments are still in their registers.
"""

import re

from .failure import Failure

# Fields of a request and of a bio, as name: path, or paths of which a kernel has one.
REQUEST = {
    "sector": ["__sector"],
    "len": ["__data_len"],
    "opf": ["cmd_flags"],
    "rqf": ["rq_flags"],
    "tag": ["tag"],
    "stag": ["internal_tag"],
    "hctx": ["mq_hctx->queue_num"],
    "ctx": ["mq_ctx->cpu"],
    "prio": ["bio->bi_ioprio"],
}
BIO = {"sector": ["bi_iter.bi_sector"], "len": ["bi_iter.bi_size"], "opf": ["bi_opf"], "prio": ["bi_ioprio"]}
CHARGED = {"cg": ["bi_blkg->blkcg->css.cgroup->kn->name"]}
OWN_BIO = {"bio": ["bio"]}
TOKEN = {"tok": ["elv.priv[0]"]}
JIFFIES = "j=@jiffies_64:u64"

# Name, tracepoint, struct of the main argument and its fields, numbers among the other arguments by position.
TRACEPOINTS = [
    ("queue", "block_bio_queue", "bio", BIO, []),
    ("getrq", "block_getrq", "bio", BIO, []),
    ("backmerge", "block_bio_backmerge", "bio", BIO, []),
    ("frontmerge", "block_bio_frontmerge", "bio", BIO, []),
    ("split", "block_split", "bio", BIO, ["ns:u32"]),
    ("plug", "block_plug", None, {}, []),
    ("unplug", "block_unplug", None, {}, ["nr:u32", "expl:u8"]),
    ("insert", "block_rq_insert", "request", {**OWN_BIO, **REQUEST}, []),
    ("rqmerge", "block_rq_merge", "request", {**OWN_BIO, **REQUEST}, []),
    ("issue", "block_rq_issue", "request", {**OWN_BIO, **REQUEST, **TOKEN}, []),
    ("requeue", "block_rq_requeue", "request", REQUEST, []),
    ("complete", "block_rq_complete", "request", REQUEST, ["err:s32", "nb:u32"]),
]
TICKED = ("insert", "issue")

# Functions of the core: name, function, return or entry, arguments.
CORE = [
    ("run", "blk_mq_sched_dispatch_requests", False, "hctx"),
    ("runend", "blk_mq_sched_dispatch_requests", True, ""),
    ("free", "blk_mq_free_request", False, "request"),
    ("tofront", "bio_attempt_front_merge", False, "merge"),
    ("toback", "bio_attempt_back_merge", False, "merge"),
]
# The length of a function's entry, without and with a landing pad for indirect branches; a kernel refuses the wrong one.
ENTRIES = (5, 9)
REGISTERS = ("%di", "%si", "%dx", "%cx", "%r8", "%r9")
PREFIX = {"mq-deadline": "dd", "bfq": "bfq", "kyber": "kyber"}


class Probes:
    """Definitions for one kernel."""

    def __init__(self, btf):
        self.btf = btf

    def kprobes(self, name, function, arguments):
        """Ways to record the arguments of a function."""
        ways = [f"p:oq/{name} {function} {arguments}"]
        if not self.btf.has_struct("trace_fprobe"):
            registers = re.sub(r"\$arg(\d)", lambda found: REGISTERS[int(found[1]) - 1], arguments)
            ways[:0] = [f"p:oq/{name} {function}+{length} {registers}" for length in ENTRIES]
        return ways

    def fields(self, root, kind, fields):
        out = []
        for name, paths in fields.items():
            found = next(filter(None, (self.btf.fetch(root, kind, path) for path in paths)), None)
            if found is None:
                if name != "cg":
                    raise Failure(f"the kernel's struct {kind} has no {paths[0]} (expected, to record `{name}`)")
                # Without cgroups in the kernel nothing is charged to one.
                continue
            if name == "cg":
                found = f"+0({found.rsplit(':', 1)[0]}):string"
            elif name in ("tag", "stag", "tok"):
                found = found.replace(":u", ":s")
            out.append(f"{name}={found}")
        return " ".join(out)

    def arguments(self, types, first, kind, fields, numbers):
        """The arguments of a probe on something with these types; `first` is the number of the first of them."""
        parts, rest = [], []
        main = next((index for index, number in enumerate(types) if self.btf.pointed_at(number) == kind), None)
        for index, number in enumerate(types):
            if self.btf.pointed_at(number) is None and self.btf.type(number)[0] != 0:
                rest.append(f"$arg{first + index}")
        if kind:
            if main is None:
                return None
            root = f"$arg{first + main}"
            parts.append(f"{'rq' if kind == 'request' else 'bio'}={root}:x64")
            parts.append(self.fields(root, kind, fields))
        if len(rest) < len(numbers):
            return None
        for argument, number in zip(rest, numbers):
            name, width = number.split(":")
            parts.append(f"{name}={argument}:{width}")
        return " ".join(parts)

    def tracepoint(self, name, point, kind, fields, numbers):
        types = self.btf.arguments(tracepoint=point)
        tick = [JIFFIES] if name in TICKED else []
        # The function that calls has the data of the attached one as its first argument.
        both = [self.arguments(types, first, kind, fields, numbers) if types is not None else None for first in (1, 2)]
        if None in both:
            raise Failure(f"the kernel cannot be asked for `{name}`: its tracepoint {point} is not as expected ({kind or 'no'} argument, {len(numbers)} numbers)")
        attached, called = (" ".join([arguments, *tick]) for arguments in both)
        return [f"t:oq/{name} {point} {attached}".strip(), *(way.strip() for way in self.kprobes(name, f"__traceiter_{point}", called))]

    def function(self, name, function, at_return, arguments):
        ways = [f"f:oq/{name} {function}{'%return' if at_return else ''} {arguments}".strip()]
        return ways + [way.strip() for way in ([f"r:oq/{name} {function} {arguments}"] if at_return else self.kprobes(name, function, arguments))]

    def core(self, name, function, at_return, what):
        arguments = {
            "": "",
            "hctx": "hctx=" + str(self.btf.fetch("$arg1", "blk_mq_hw_ctx", "queue_num")),
            "merge": "rq=$arg1:x64 bio=$arg2:x64",
        }.get(what)
        if what == "request":
            arguments = "rq=$arg1:x64 " + self.fields("$arg1", "request", REQUEST)
        return self.function(name, function, at_return, arguments)

    def scheduler(self, scheduler):
        """The calls of a scheduler by the core."""
        prefix = PREFIX[scheduler]
        hctx = "hctx=" + str(self.btf.fetch("$arg1", "blk_mq_hw_ctx", "queue_num"))
        probes = [
            self.function(f"ask_{prefix}", f"{prefix}_dispatch_request", False, hctx),
            self.function(f"dispatch_{prefix}", f"{prefix}_dispatch_request", True, f"rq=$retval:x64 {JIFFIES}"),
            # A flag or a truth value: bit 0 is insertion at the head in both.
            self.function(f"sinsert_{prefix}", f"{prefix}_insert_requests", False, f"{hctx} flags=$arg3:x8"),
        ]
        if scheduler == "bfq":
            finish = self.function("sdone_bfq", "bfq_finish_requeue_request", False, "rq=$arg1:x64")
            probes += [finish, self.function("itimer", "bfq_idle_slice_timer", False, "")]
        if scheduler == "kyber":
            probes.append(self.function("sdone_kyber", "kyber_finish_request", False, "rq=$arg1:x64"))
            probes.append(self.function("slat_kyber", "kyber_completed_request", False, "rq=$arg1:x64"))
        return probes

    def lines(self, schedulers, charged):
        """One line for each probe: its ways, separated by `|`."""
        probes = []
        for name, point, kind, fields, numbers in TRACEPOINTS:
            if name == "getrq" and charged:
                fields = {**fields, **CHARGED}
            probes.append(self.tracepoint(name, point, kind, fields, numbers))
        probes += [self.core(*row) for row in CORE]
        for scheduler in schedulers:
            if scheduler in PREFIX:
                probes += self.scheduler(scheduler)
        return ["|".join(ways) for ways in probes]
