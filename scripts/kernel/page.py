"""The page of scripts/check-kernel: what its runs found, as data and as Markdown."""

import json
import os
import subprocess

from .failure import Failure

FORMAT = "hoistway-kernel-check/1"


def program(root):
    """The built `hoistway-evidence` and `hoistway`, or those that the environment names."""
    target = os.environ.get("CARGO_TARGET_DIR") or os.path.join(root, "target")
    found = []
    for variable, name in (("EVIDENCE", "hoistway-evidence"), ("PROGRAM", "hoistway")):
        built = [os.path.join(target, profile, name) for profile in ("release", "debug")]
        built = [os.environ[variable]] if os.environ.get(variable) else sorted(filter(os.path.exists, built), key=os.path.getmtime)
        if not built or not os.access(built[-1], os.X_OK):
            raise Failure(f"{name}: is not built (expected `cargo build -p hoistway-evidence -p hoistway`, or {variable} with its path)")
        found.append(built[-1])
    return found


def output_of(command):
    """What a program of ours prints; a status of 2 is a result, too, where it refuses some of several files."""
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if not run.stdout:
        raise Failure(f"{os.path.basename(command[0])} {command[1]}: {(run.stderr.strip().splitlines() or ['printed nothing'])[-1]}")
    try:
        return json.loads(run.stdout)
    except ValueError:
        raise Failure(f"{os.path.basename(command[0])} {command[1]}: printed something else than JSON: {run.stdout[:80]!r}") from None


def pooled(traces):
    """Decisions and those that are equal: of each scheduler, and of each of its rules."""
    schedulers, rules = {}, {}
    for trace in traces:
        row = schedulers.setdefault(trace["scheduler"], {"recordings": 0, "decisions": 0, "identical": 0})
        row["recordings"] += 1
        for rule in trace["rules"]:
            row["decisions"] += rule["decisions"]
            row["identical"] += rule["identical"]
            entry = rules.setdefault((trace["scheduler"], rule["rule"], rule["reason"]), {"decisions": 0, "identical": 0})
            entry["decisions"] += rule["decisions"]
            entry["identical"] += rule["identical"]
    listed = [{"scheduler": scheduler, "rule": rule, "reason": reason, **entry} for (scheduler, rule, reason), entry in sorted(rules.items())]
    return schedulers, listed


def differing(traces):
    """Each recording with a decision that differs: how many do, and the first one."""
    out = []
    for trace in traces:
        count = sum(rule["decisions"] - rule["identical"] for rule in trace["rules"])
        if count:
            name = os.path.basename(trace["file"]).removesuffix(".jsonl.gz")
            out.append({"recording": name, "scheduler": trace["scheduler"], "decisions": count, "first": trace["mismatches"][0] if trace["mismatches"] else None})
    return out


def loop_schedulers(rows, half):
    """The schedulers of the closed loops of a half, in their order."""
    return list(dict.fromkeys(row["scheduler"] for row in rows if row["half"] == half))


def errors_line(half, scheduler, rows):
    """The errors of the closed loops of a half under a scheduler."""
    chosen = [row for row in rows if row["half"] == half and row["scheduler"] == scheduler]
    cells = []
    for figure in ("iops", "mean_us"):
        errors = sorted(abs(row[f"our_{figure}"] / row[f"kernel_{figure}"] - 1) * 100 for row in chosen if row[f"kernel_{figure}"])
        cells += [f"{errors[int(share * (len(errors) - 1))]:.1f}" for share in (0.5, 0.9)] if errors else ["-", "-"]
    return f"| {half} | {scheduler} | {len(chosen)} | " + " | ".join(cells) + " |"


def document(kernel, seed, conformance, refused, loops, diff):
    schedulers, rules = pooled(conformance["traces"])
    return {
        "format": FORMAT,
        "kernel": kernel.release,
        "origin": kernel.origin,
        "seed": seed,
        "schedulers": schedulers,
        "rules": rules,
        "differing": differing(conformance["traces"]),
        # Recordings that could not be made, or that conform refuses to read.
        "refused": refused + [f"{row['file']}: {row['reason']}" for row in conformance["refused"] + conformance["skipped"]],
        "closed_loops": loops,
        "diff": diff,
    }


def percent(part, whole):
    return "-" if not whole else "100 %" if part == whole else f"{100 * part / whole:.2f} %"


def markdown(page):
    lines = [f"# Linux {page['kernel']} and our schedulers", "", f"Kernel: {page['origin']}. Scenarios: {'as in the table' if page['seed'] is None else 'fresh, seed ' + str(page['seed'])}.", ""]
    total = sum(row["decisions"] for row in page["schedulers"].values())
    same = sum(row["identical"] for row in page["schedulers"].values())
    lines += [f"**{total - same} of {total} decisions differ from ours.**", ""]
    lines += ["| scheduler | recordings | decisions | equal | |", "| --- | --- | --- | --- | --- |"]
    for name, row in sorted(page["schedulers"].items()):
        lines.append(f"| {name} | {row['recordings']} | {row['decisions']} | {row['identical']} | {percent(row['identical'], row['decisions'])} |")
    lines += ["", "By the rule of our choice (docs/rules):", "", "| scheduler | rule | the choice | decisions | equal |", "| --- | --- | --- | --- | --- |"]
    for row in page["rules"]:
        lines.append(f"| {row['scheduler']} | {row['rule']} | {row['reason']} | {row['decisions']} | {row['identical']} |")
    lines += ["", "## Decisions that differ", ""]
    if not page["differing"]:
        lines.append("None.")
    for row in page["differing"]:
        lines.append(f"- `{row['recording']}` ({row['scheduler']}): {row['decisions']} differ.")
        first = row["first"]
        if first:
            lines.append(f"  First: line {first['line']}, {first['t_ns'] / 1e9:.6f} s. The kernel: {first['kernel']}. Ours: {first['ours']}, by {first['rule']} ({first['reason']}).")
    if page["refused"]:
        lines += ["", "## Not checked", ""] + [f"- {reason}" for reason in page["refused"]]
    if page["closed_loops"]:
        lines += ["", "## Closed loops: errors", "", "In percent of the kernel's figure; *judged* loads were not looked at when models were made.", ""]
        lines += ["| half | scheduler | figures | IOPS, median | 90th percentile | mean latency, median | 90th percentile |", "| --- | --- | --- | --- | --- | --- | --- |"]
        lines += [errors_line(half, scheduler, page["closed_loops"]) for half in ("judged", "fitted") for scheduler in loop_schedulers(page["closed_loops"], half)]
        lines += ["", "## Closed loops: fio in this kernel, and `hoistway compare` (median and range of its seeds)", "", "| job file | scheduler | job | IOPS, kernel | ours | mean us, kernel | ours |", "| --- | --- | --- | --- | --- | --- | --- |"]
        for row in page["closed_loops"]:
            ours = f"{row['our_iops']:.0f} ({row['our_iops_least']:.0f} to {row['our_iops_most']:.0f})"
            figures = f"{row['kernel_iops']:.0f} | {ours} | {row['kernel_mean_us']:.0f} | {row['our_mean_us']:.0f}"
            lines.append(f"| {row['load']} | {row['scheduler']} | {row['job']} {row['direction']} | {figures} |")
    if page["diff"]:
        lines += ["", f"## What changed since {page['diff']['since']}", ""]
        lines.append("The same scenarios on both kernels. A difference may be a matter of microseconds; a changed rule shows in many scenarios.")
        lines += ["", "| scenario | scheduler | decisions | the same | first difference | settings that differ |", "| --- | --- | --- | --- | --- | --- |"]
        for row in page["diff"]["comparisons"]:
            first = row["first"]
            place = f"decision {first['number']}, {first['t_ns'] / 1e9:.6f} s: {(first['first'] or ['the end'])[0]} / {(first['second'] or ['the end'])[0]}" if first else "none"
            settings = ", ".join(f"{setting['name']}: {setting['first']} / {setting['second']}" for setting in row["settings"]) or "none"
            lines.append(f"| {row['scenario']} | {row['scheduler']} | {row['decisions'][0]} / {row['decisions'][1]} | {row['common']} | {place} | {settings} |")
    return "\n".join(lines) + "\n"
