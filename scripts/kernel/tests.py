"""Tests of the recorder that need no guest: python3 -m unittest scripts/kernel/tests.py"""

import gzip
import io
import json
import os
import struct
import subprocess
import sys
import tarfile
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True
SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, SCRIPTS)
from kernel import btf, convert, failure, guest, io_cost, io_latency, loops, packages, page, probes, programs, recorder, scenarios
from kernel.failure import Failure

SYSTEM = """kernel=Linux 6.18.1 #1 SMP
cpus=1
queue nr_requests=64
queue nomerges=0
queue rotational=0
queue max_sectors_kb=1280
queue max_segments=128
queue wbt_lat_usec=0
queue rq_affinity=1
queue write_cache=write through
queue iosched/fifo_batch=16
device submit_queues=1
device hw_queue_depth=1
device completion_nsec=1000000
device irqmode=2
device size=1024
device memory_backed=0
device cache_size=0
device mbps=0
device blocking=0
"""
AT = "bio=0xa1 sector=8 len=4096 opf=0x0 prio=0x4004"
RQ = "rq=0xb1 bio=0xa1 sector=8 len=4096 opf=0x0 rqf=0x0 tag=-1 stag=3 hctx=0 ctx=0 prio=0x4004"
TRACE = f"""# tracer: nop
          r1-42    [000]  1000: queue: (block) {AT}
          r1-42    [000]  1100: getrq: (block) {AT}
          r1-42    [000]  1150: sinsert_dd: (dd) hctx=0 flags=0x1
          r1-42    [000]  1200: insert: (block) {RQ} j=100
          r1-42    [000]  1300: run: (block) hctx=0
          r1-42    [000]  1350: ask_dd: (dd) hctx=0
          r1-42    [000]  1400: dispatch_dd: (dd) rq=0xb1 j=100
          r1-42    [000]  1500: issue: (block) {RQ} tok=0 j=101
      <idle>-0     [000]  9000: complete: (block) {RQ} err=0 nb=4096
      <idle>-0     [000]  9100: free: (block) {RQ}
"""


def files(**changes):
    return {
        "log": "PROBE queue t\n",
        "system": SYSTEM,
        "processes": "PROCESS 42 r1 0:0 /\n",
        "trace": TRACE,
        "stats": "overrun: 0\ndropped events: 0\n",
        "missed": "  complete    40    0\n  free    40    0\n",
    } | changes


def scenario():
    return scenarios.table()["dd-mix-d1"] | {"jobs": ["name=r1 rw=randread"]}


class Conversion(unittest.TestCase):
    def test_a_request_becomes_the_events_of_the_format(self):
        recording, unknown = convert.convert(files(), scenario(), 250)
        lines = recording.decode().splitlines()
        self.assertEqual(unknown, {})
        self.assertEqual([line.split('"e":"')[1].split('"')[0] for line in lines[1:]], "queue getrq insert run dispatch issue complete free".split())
        self.assertIn('"by":"sched","batch":1,"head":true', lines[3])
        self.assertIn('"hctx":0,"asked":350,"rq":1,"op":"R","sector":8,"n":8,"j":0', lines[5])
        self.assertIn('"prio":[2,4]', lines[1])
        self.assertIn('"err":0,"done":8', lines[7])

    def test_a_request_is_finished_before_it_is_free_whichever_the_kernel_says_first(self):
        done = "      <idle>-0     [000]  {}: sdone_bfq: (bfq) rq=0xb1\n"
        again = f"          r1-42    [000]  9900: insert: (block) {RQ} j=101\n"
        for trace in (TRACE + done.format(9150) + again, TRACE.replace("      <idle>-0     [000]  9100", done.format(9050) + "      <idle>-0     [000]  9100") + again):
            recording, _ = convert.convert(files(trace=trace), scenario(), 250)
            ends = [json.loads(line) for line in recording.decode().splitlines()[-3:]]
            self.assertEqual([(event["e"], event["rq"]) for event in ends], [("finish", 1), ("free", 1), ("insert", 2)])
            self.assertLessEqual(ends[0]["t"], ends[1]["t"])

    def test_the_kernel_says_which_flag_means_a_flush_sequence(self):
        for bit, flags, expected in ((1, 0x2, 4), (1, 0x10, 0), (None, 0x10, 4), (None, 0x2, 0)):
            recording, _ = convert.convert(files(trace=TRACE.replace("rqf=0x0", f"rqf={flags:#x}")), scenario(), 250, bit)
            self.assertEqual(recording.count(b'"flushseq":true'), expected)

    def test_lost_events_are_refused(self):
        with self.assertRaisesRegex(Failure, "7 events were lost"):
            convert.convert(files(stats="overrun: 3\ndropped events: 4\n"), scenario(), 250)
        with self.assertRaisesRegex(Failure, r"kprobes missed events \(2 of complete; "):
            convert.convert(files(missed="  complete    40    2\n  free    40    0\n"), scenario(), 250)
        again = f"          r1-42    [000]  9050: issue: (block) {RQ} tok=0 j=101\n"
        with self.assertRaisesRegex(Failure, "1 requests were issued again before they were freed"):
            convert.convert(files(trace=TRACE.replace("      <idle>-0     [000]  9100", again + "      <idle>-0     [000]  9100")), scenario(), 250)

    def test_a_guest_that_complains_is_refused_with_its_words(self):
        with self.assertRaisesRegex(Failure, "no scheduler bfq"):
            convert.convert(files(log="BAD no scheduler bfq\n"), scenario(), 250)

    def test_what_is_not_understood_is_counted_once(self):
        _, unknown = convert.convert(files(trace=TRACE + " a-1 [000] 9900: news: x=1\n a-1 [000] 9901: news: x=2\n"), scenario(), 250)
        self.assertEqual(unknown, {"event: news": 2})

    def test_the_same_recording_makes_the_same_file_and_none_is_left_half_written(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, name) for name in "ab"]
            for path in paths:
                failure.write(path, convert.packed(b"{}\n"))
            contents = []
            for path in paths:
                with open(path, "rb") as file:
                    contents.append(file.read())
            self.assertEqual(contents[0], contents[1])
            self.assertEqual(gzip.decompress(contents[0]), b"{}\n")
            with self.assertRaisesRegex(OSError, "no/c"):
                failure.write(os.path.join(folder, "no", "c"), b"")
            self.assertEqual(sorted(os.listdir(folder)), ["a", "b"])


class Scenarios(unittest.TestCase):
    def test_fresh_scenarios_stay_within_the_device_and_the_load_generators_bounds(self):
        for seed in range(60):
            for row in scenarios.table().values():
                out = scenarios.fresh(row, seed)
                self.assertEqual(out["scheduler"], row["scheduler"])
                self.assertEqual(len(out["jobs"]), len(row["jobs"]))
                for job in out["jobs"]:
                    words = dict(scenarios.words_of(job))
                    depth, batch = int(words.get("qd", 1)), int(words.get("batch", 1))
                    end = scenarios.bytes_of(words.get("off", "0")) + scenarios.bytes_of(words.get("size", "64m"))
                    self.assertTrue(1 <= batch <= depth <= 128, job)
                    self.assertLessEqual(end, scenarios.SIZE_MIB << 20, job)

    def test_a_seed_draws_the_same_scenario_and_another_one_another(self):
        row = scenarios.table()["bfq-classes"]
        self.assertEqual(scenarios.fresh(row, 7), scenarios.fresh(row, 7))
        self.assertNotEqual(scenarios.fresh(row, 7)["jobs"], scenarios.fresh(row, 8)["jobs"])

    def test_the_table_has_every_scheduler_and_a_quick_set_of_forty(self):
        rows = scenarios.table().values()
        self.assertGreaterEqual(len(rows), 40)
        self.assertEqual({row["scheduler"] for row in rows}, set(scenarios.SCHEDULERS))
        self.assertGreaterEqual(sum(row["quick"] for row in rows if not row["since"]), 40)

    def test_changes_of_scheduler_are_probed_and_never_to_the_same_one(self):
        for seed in range(20):
            out = scenarios.fresh(scenarios.table()["switch-bfq-dd-kyber"], seed)
            used = scenarios.schedulers_of(out)
            self.assertEqual(used[0], "bfq")
            self.assertGreater(len(used), 1)

    def test_an_unknown_key_is_named(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write('[a]\nscheduler = "none"\ndepth = 1\nservice_us = 1\njobs = []\nspeed = 3\n')
            file.flush()
            with self.assertRaisesRegex(Failure, r"\[a\] speed: is no key"):
                scenarios.table(file.name)


class Guests(unittest.TestCase):
    def test_the_same_files_make_the_same_archive_which_cpio_reads(self):
        archives = []
        for order in (("b", "a/c"), ("a/c", "b")):
            built = guest.Initramfs()
            for path in order:
                built.add(path, path)
            archives.append(built.archive())
        self.assertEqual(archives[0], archives[1])
        listed = subprocess.run(["busybox", "cpio", "-t"], input=archives[0], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.assertEqual(listed.stdout.split(), [b"a", b"a/c", b"b"])

    def test_fields_of_structs_within_structs_are_found(self):
        strings = b"\0outer\0inner\0first\0second\0there\0u32\0FIRST\0FLUSH\0"

        def name(text):
            return strings.index(b"\0" + text + b"\0") + 1

        types = struct.pack("<IIII", name(b"u32"), 1 << 24, 4, 32)
        types += struct.pack("<III", name(b"inner"), 4 << 24 | 2, 8)
        types += struct.pack("<III", name(b"first"), 1, 0) + struct.pack("<III", name(b"second"), 1, 32)
        types += struct.pack("<III", 0, 2 << 24, 2)
        types += struct.pack("<III", name(b"outer"), 4 << 24 | 2, 16)
        types += struct.pack("<III", name(b"there"), 3, 0) + struct.pack("<III", 0, 2, 64)
        types += struct.pack("<III", 0, 6 << 24 | 2, 4) + struct.pack("<II", name(b"FIRST"), 0) + struct.pack("<II", name(b"FLUSH"), 5)
        data = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(types), len(types), len(strings)) + types + strings
        read = btf.Btf(data)
        self.assertEqual(read.fetch("$arg1", "outer", "there->second"), "+4(+0($arg1)):u32")
        self.assertEqual(read.fetch("$arg1", "outer", "second"), "+12($arg1):u32")
        self.assertIsNone(read.fetch("$arg1", "outer", "third"))
        self.assertEqual([read.enumerator(name) for name in ("FIRST", "FLUSH", "SECOND")], [0, 5, None])
        with self.assertRaisesRegex(Failure, "BTF is damaged"):
            btf.Btf(b"x" * 40)


class Kernels(unittest.TestCase):
    def kernel(self, folder, built_in):
        for name, contents in (("image", ""), ("modules.builtin", built_in)):
            with open(os.path.join(folder, name), "w") as file:
                file.write(contents)
        return packages.Kernel(os.path.join(folder, "image"), folder, "here")

    def test_a_kernel_without_null_blk_or_btf_is_named(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch("kernel.guest.require_qemu"):
            with self.assertRaisesRegex(Failure, "has no null_blk"):
                recorder.Recorder(self.kernel(folder, "kernel/drivers/block/loop.ko\n"), folder)
            sent = io.BytesIO()
            with tarfile.open(fileobj=sent, mode="w:gz"):
                pass
            with unittest.mock.patch("kernel.guest.boot", return_value=(sent.getvalue(), [])):
                with self.assertRaisesRegex(Failure, "has no BTF"):
                    recorder.Recorder(self.kernel(folder, "kernel/drivers/block/null_blk/null_blk.ko\n"), folder)


class SeveralCpus(unittest.TestCase):
    def test_a_kernel_that_would_hang_is_not_booted(self):
        machine = recorder.Recorder.__new__(recorder.Recorder)
        machine.limit_s = 1
        row = scenarios.table()["none-2hwq"]
        for release, refused in (("6.1.0-56-amd64", True), ("6.12.118+deb13-amd64", False)):
            machine.kernel = unittest.mock.Mock(release=release)
            machine.archive = lambda _: b""
            with unittest.mock.patch.object(guest, "boot", side_effect=Failure("booted")), self.assertRaises(Failure) as raised:
                machine.record(row, "nowhere")
            self.assertEqual("needs 2 CPUs" in str(raised.exception), refused, raised.exception)


class Folders(unittest.TestCase):
    def test_recordings_of_two_builds_of_a_release_do_not_share_a_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            machines = []
            for build in "ab":
                modules = os.path.join(folder, build, "6.18.0")
                os.makedirs(os.path.join(modules, "kernel"))
                for name, contents in (("image", ""), ("kernel/bfq.ko", build)):
                    with open(os.path.join(modules, name), "w") as file:
                        file.write(contents)
                machines.append(recorder.Recorder.__new__(recorder.Recorder))
                machines[-1].kernel = packages.Kernel(os.path.join(modules, "image"), modules, "here")
            output = os.path.join(folder, "out")
            machines[0].claim(output)
            machines[0].claim(output)
            with self.assertRaisesRegex(Failure, "out: has recordings of another build, 6.18.0 "):
                machines[1].claim(output)


class Ways(unittest.TestCase):
    def test_kernels_without_other_probes_get_breakpoints_behind_the_entry(self):
        btf = unittest.mock.Mock()
        for newer, expected in ((True, ["p:oq/x f rq=$arg2:x64"]), (False, ["p:oq/x f+5 rq=%si:x64", "p:oq/x f+9 rq=%si:x64", "p:oq/x f rq=$arg2:x64"])):
            btf.has_struct.return_value = newer
            self.assertEqual(probes.Probes(btf).kprobes("x", "f", "rq=$arg2:x64"), expected)


class Pages(unittest.TestCase):
    def test_the_page_names_the_rule_of_the_first_decision_that_differs(self):
        first = {"line": 5, "t_ns": 1000, "inside": [], "more": 0, "kernel": "rq 1", "ours": "rq 2", "rule": "DD-14", "reason": "the batch continues"}
        rules = [{"rule": "DD-14", "reason": "the batch continues", "decisions": 10, "identical": 8}]
        trace = {"file": "x/dd-a.jsonl.gz", "scheduler": "mq-deadline", "rules": rules, "mismatches": [first]}
        kernel = type("Kernel", (), {"release": "6.18", "origin": "here"})
        loop = {"load": "fresh-7-0", "half": loops.half("fresh-7-0"), "scheduler": "none", "job": "a", "direction": "read", "kernel_iops": 100, "our_iops": 110}
        loop |= {"our_iops_least": 109, "our_iops_most": 112, "kernel_mean_us": 50, "our_mean_us": 40}
        text = page.markdown(page.document(kernel, 7, {"traces": [trace], "refused": [], "skipped": []}, ["b: lost"], [loop], None))
        self.assertIn("**2 of 10 decisions differ from ours.**", text)
        self.assertIn("| mq-deadline | DD-14 | the batch continues | 10 | 8 |", text)
        self.assertIn("First: line 5, 0.000001 s. The kernel: rq 1. Ours: rq 2, by DD-14", text)
        self.assertIn("- b: lost", text)
        self.assertIn(f"| {loop['half']} | none | 1 | 10.0 | 10.0 | 20.0 | 20.0 |", text)

    def test_stored_loops_have_the_settings_of_their_rows(self):
        root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
        cells = {(cell.load, cell.scheduler): cell for cell in loops.stored(root)}
        self.assertEqual(len(cells), 11 * len(scenarios.SCHEDULERS))
        self.assertEqual(cells["weights-1-4", "bfq"].groups(), "a:100,b:400")
        self.assertEqual(cells["reader-writers", "bfq"].groups(), "")
        self.assertEqual(cells["kyber-tight", "kyber"].tunables(), [("read_lat_nsec", "1000000"), ("write_lat_nsec", "1000000")])
        self.assertEqual(cells["kyber-tight", "bfq"].tunables(), [])

    def test_a_seed_draws_the_same_fresh_loads_in_both_halves(self):
        names = [f"fresh-{seed}-{number}" for seed in range(20) for number in range(loops.FRESH)]
        self.assertEqual([loops.fresh(name) for name in names], [loops.fresh(name) for name in names])
        judged = sum(loops.half(name) == "judged" for name in names)
        self.assertTrue(60 < judged < 120, judged)


class Groups(unittest.TestCase):
    def test_a_name_draws_groups_under_io_cost(self):
        names = [f"cost-{seed}-{number}" for seed in range(10) for number in range(16)]
        drawn = [io_cost.experiment(name) for name in names]
        self.assertEqual(drawn, [io_cost.experiment(name) for name in names])
        self.assertEqual({one["kind"] for one in drawn}, set(io_cost.KINDS))
        for one in drawn:
            self.assertEqual(one["job"].count("cgroup=g"), len(one["groups"]))
            self.assertEqual("min=50" in one["qos"], one["kind"] == "free")

    def test_errors_are_those_of_shares_and_figures(self):
        drawn = {"name": "cost-1-0", "half": "judged", "kind": "full", "groups": {"g0": 100, "g1": 300}}
        recorded = {name: {"iops": 10, "mean_us": 50, "device_time_us": time} for name, time in (("g0", 100), ("g1", 300))}
        simulated = {name: {"iops": 11, "mean_us": 60, "device_time_us": 50} for name in ("g0", "g1")}
        rows = io_cost.rows(drawn, {"groups": recorded, "rates_percent": [90.0, 110.0]}, {"groups": simulated, "rate_percent": 95})
        self.assertEqual([(row["kernel_share"], row["our_share"]) for row in rows], [(0.25, 0.5), (0.75, 0.5)])
        found = {figure: [round(value, 6) for value in values] for figure, values in io_cost.errors(rows).items()}
        self.assertEqual(found, {"share": [33.333333, 100], "iops": [10, 10], "mean_us": [20, 20], "rate": [5, 5]})

    def test_a_name_draws_groups_under_io_latency_with_one_strictest_target(self):
        names = [f"latency-{seed}-{number}" for seed in range(10) for number in range(16)]
        drawn = [io_latency.experiment(name) for name in names]
        self.assertEqual(drawn, [io_latency.experiment(name) for name in names])
        self.assertEqual({one["kind"] for one in drawn}, set(io_latency.KINDS))
        for one in drawn:
            self.assertEqual(one["job"].count("cgroup="), len(one["leaves"]))
            victim, *others = [one["targets_us"][path] for path in one["leaves"]]
            self.assertTrue(victim and all(other == 0 or other > victim for other in others), one)
            self.assertEqual("runtime=3\n" in one["job"], one["kind"] == "stop")

    def test_looks_at_io_stat_have_depths_by_time(self):
        log = "QUEUE x=1\nUPTIME 4.10\nIOSTAT io.stat 252:0 rbytes=1\n"
        log += "IOSTAT a/v/io.stat 252:0 rbytes=1 missed=3 total=40 depth=max\n"
        log += "UPTIME 4.20\nIOSTAT p0/io.stat 252:0 rbytes=1 use_delay=2 delay_nsec=70 depth=4 avg_lat=9 win=50\n"
        found = io_latency.looks(log)
        self.assertEqual([look["at_s"] for look in found], [4.1, 4.2])
        self.assertEqual(found[0]["groups"], {"a/v": {"depth": 0, "missed": 3, "total": 40}})
        self.assertEqual(found[1]["groups"], {"p0": {"depth": 4, "use_delay": 2, "delay_nsec": 70, "avg_lat": 9, "win": 50}})


class Programs(unittest.TestCase):
    def test_a_name_draws_one_program_that_the_guest_can_run(self):
        for name in programs.names(1, 200):
            job, device = programs.draw(name)
            self.assertEqual((job, device), programs.draw(name))
            self.assertIn(job.count("[job"), (2, 3, 4))
            self.assertEqual("directory=/mnt" in job, device["files"] == "1")
            self.assertLessEqual(int(device["depth"]) * 1_000_000, 16_000 * int(device["completion_us"]))
        drawn = [programs.draw(name)[0] for name in programs.names(1, 200)]
        for word in ("thinktime=", "rate_iops=", "fdatasync=", "iodepth_batch_submit=", "prioclass=", "fsync="):
            self.assertTrue(any(word in job for job in drawn), word)

    def test_a_recording_with_lost_events_is_refused_and_nothing_is_written(self):
        kernel = unittest.mock.Mock(release="6.18.15")
        for trace in ("", "# entries-in-buffer/entries-written: 5/6   #P:1\n"):
            with tempfile.TemporaryDirectory() as folder, unittest.mock.patch("kernel.closed_loop.run", return_value=("{}", "", "", trace)):
                with self.assertRaisesRegex(Failure, "expected every event"):
                    programs.record(kernel, "program-1-0", "none", folder, 1)
                self.assertEqual(os.listdir(folder), [])


class Refusals(unittest.TestCase):
    def refused(self, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, os.path.join(SCRIPTS, "record-kernel"), "--state", os.path.join(folder, "state"), "-o", os.path.join(folder, "out")]
            run = subprocess.run([*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder)
            self.assertEqual((run.returncode, run.stderr.count("\n")), (2, 1), run.stderr)
            self.assertFalse(os.path.exists(os.path.join(folder, "out")))
            return run.stderr

    def test_bad_input_is_one_line_that_names_it(self):
        self.assertIn("/no/such: no such file or folder", self.refused("/no/such", "quick"))
        self.assertIn("zz: no such scenario", self.refused("/no/such", "zz"))
        with tempfile.TemporaryDirectory() as empty:
            self.assertIn("has 0 sets of modules", self.refused(empty, "quick"))
        with tempfile.NamedTemporaryFile(suffix=".deb") as damaged:
            self.assertIn("expected a Debian package", self.refused(damaged.name, "quick"))
        with tempfile.NamedTemporaryFile() as image:
            self.assertIn("an image needs --modules", self.refused(image.name, "quick"))


if __name__ == "__main__":
    unittest.main()
