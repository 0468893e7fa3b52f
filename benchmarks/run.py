"""`make bench`: how fast FedAvg trains, against the machine's own rate and against what else one could use.

Every figure of one run is measured in turns with the others, and every claim is a ratio of two of them: absolute figures
drift with the machine's mood.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import draw
import measure
import peers
from jobs import CNN, DNN, JOBS, LOGISTIC, LOGISTIC_ROUNDS, Job
from measure import Contestant, Process

from fedquorum.engines.local import worker_count
from fedquorum.platform_class import platform_class

RESULTS = Path(__file__).parent / "results"
SUBJECTS = ("dnn", "cnn", "logistic", "growth")
RIVALS = ("matmul", "torch", "flower", "fedjax")
# At least this share of the matrix product's rate, and this many times each rival's local steps per second.
TARGETS = {
    "dnn": {"matmul": 0.65, "torch": 2.5, "flower": 100.0},
    "cnn": {"matmul": 0.45, "torch": 1.7, "flower": 5.0},
    "logistic": {"seconds": 1.0},
}


def contestants(job: Job, rivals: Sequence[str]) -> list[Contestant]:
    """fedquorum and its rivals, each with the command that serves windows of this job."""

    def ours(name: str, *arguments: str) -> Contestant:
        return Contestant(name, sys.executable, arguments, peers.core_environment())

    def theirs(name: str, *arguments: str, alone: bool = False, seconds: float = 1.0) -> Contestant:
        return Contestant(name, str(peers.PYTHON), arguments, peers.peer_environment(), alone, seconds)

    layouts = ("contiguous", "channels_last") if job is CNN else ("contiguous",)
    everybody = {
        "matmul": [ours("matmul", "matrix_product.py")],
        "fedquorum": [ours("fedquorum", "with_fedquorum.py", job.name)],
        "torch": [theirs(f"torch {layout}", "with_pytorch.py", job.name, layout) for layout in layouts],
        "fedjax": [theirs("fedjax", "with_fedjax.py", job.name)],
        "flower": [theirs("flower", "with_flower.py", job.name, layouts[-1], alone=True, seconds=4.0)],
    }
    return [one for name, group in everybody.items() if name in (*rivals, "fedquorum") for one in group]


def race(job: Job, rivals: Sequence[str], cores: int, seconds: float, repeats: int) -> dict[str, Any]:
    """Local SGD steps per second of each contestant, in one process and in one per core."""
    field = contestants(job, rivals)
    rates: dict[str, dict[str, list[float]]] = {}
    absent: dict[str, str] = {}
    with measure.ready(field, cores, job.parameters) as taking_part:
        for repeat in range(repeats):
            note(f"{job.name}: repeat {repeat + 1} of {repeats}")
            for side_by_side in ("one process", "one per core"):
                for contestant in field:
                    processes = taking_part[contestant.name]
                    if isinstance(processes, str):
                        absent[contestant.name] = processes
                        continue
                    if contestant.alone and side_by_side == "one process":
                        continue
                    chosen: list[Process] = processes[:1] if side_by_side == "one process" else processes
                    matmul = contestant.name == "matmul"
                    rate = measure.window(
                        chosen, seconds * contestant.seconds, measure.best if matmul else measure.together
                    )
                    steps = rate / job.flops if matmul else rate
                    rates.setdefault(contestant.name, {}).setdefault(side_by_side, []).append(steps)
    return {"rates": rates, "absent": absent}


def compare(job: Job, raced: dict[str, Any], cores: int) -> dict[str, Any]:
    """Ratios within each repeat, and their medians."""
    rates: dict[str, dict[str, list[float]]] = raced["rates"]
    ours = rates["fedquorum"]
    ratios: dict[str, Any] = {}

    def over(name: str, mine: list[float], other: list[float]) -> None:
        ratios[name] = measure.summary([a / b for a, b in zip(mine, other, strict=True)])

    if "matmul" in rates:
        matmul = rates["matmul"]
        per_core = [rate / cores for rate in ours["one per core"]]
        over("matmul, one process", ours["one process"], matmul["one process"])
        over("matmul, one per core", ours["one per core"], matmul["one per core"])
        over("matmul, a core of ours while all are busy over one product alone", per_core, matmul["one process"])
    for rival in ("torch", "fedjax", "flower"):
        group = [name for name in rates if name.split()[0] == rival]
        if group:
            name = max(group, key=lambda name: statistics.median(rates[name]["one per core"]))
            over(name, ours["one per core"], rates[name]["one per core"])
            if "one process" in rates[name]:
                over(f"{name}, one process", ours["one process"], rates[name]["one process"])

    def wanted(rival: str) -> Any:
        if rival == "matmul":
            return ratios.get("matmul, a core of ours while all are busy over one product alone")
        return next((ratio for name, ratio in ratios.items() if name.split()[0] == rival), None)

    targets = {
        rival: {"wanted": target, "found": found["median"], "met": found["median"] >= target}
        for rival, target in TARGETS[job.name].items()
        if (found := wanted(rival))
    }
    return {
        "title": job.title,
        "k": job.k,
        "batch_size": job.batch_size,
        "local_steps": job.local_steps,
        "flops_per_step": job.flops,
        "steps_per_second": {
            name: {mode: measure.summary(values) for mode, values in modes.items()} for name, modes in rates.items()
        },
        "gflops": {
            name: {
                mode: measure.summary([value * job.flops / 1e9 for value in values]) for mode, values in modes.items()
            }
            for name, modes in rates.items()
        },
        "ratios": ratios,
        "targets": targets,
        "absent": raced["absent"],
    }


def yardstick(rivals: Sequence[str], seconds: float, repeats: int) -> dict[str, Any]:
    """Seconds for all rounds of the logistic regression, in one process."""
    field = [Contestant("fedquorum", sys.executable, ("logistic.py",), peers.core_environment())]
    if "fedjax" in rivals:
        arguments = ("with_fedjax.py", LOGISTIC.name)
        field.append(Contestant("fedjax", str(peers.PYTHON), arguments, peers.peer_environment()))
    steps = LOGISTIC_ROUNDS * LOGISTIC.k * LOGISTIC.local_steps
    times: dict[str, list[float]] = {}
    with measure.ready(field, 1, LOGISTIC.parameters) as taking_part:
        absent = {name: reason for name, reason in taking_part.items() if isinstance(reason, str)}
        for repeat in range(repeats):
            note(f"logistic: repeat {repeat + 1} of {repeats}")
            for name, processes in taking_part.items():
                if name not in absent:
                    times.setdefault(name, []).append(steps / measure.window(processes, seconds, measure.together))
    median, target = statistics.median(times["fedquorum"]), TARGETS["logistic"]["seconds"]
    return {
        "title": f"{LOGISTIC.title}, {LOGISTIC.clients} clients, {LOGISTIC.k} per round, {LOGISTIC_ROUNDS} rounds",
        "seconds": {name: measure.summary(values) for name, values in times.items()},
        "targets": {"seconds": {"wanted": target, "found": round(median, 4), "met": median < target}},
        "absent": absent,
    }


def growth(quick: bool) -> dict[str, Any]:
    """Seconds over k, n, width, N and workers."""
    note("growth")
    command = [sys.executable, "growth.py", *(["--quick"] if quick else [])]
    done = subprocess.run(
        command, cwd=measure.HERE, env=peers.core_environment(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ChildProcessError(done.stderr.strip().splitlines()[-1])
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def note(text: str) -> None:
    """Progress, beside the results."""
    print(text, file=sys.stderr, flush=True)


def machine(cores: int) -> dict[str, Any]:
    """What was measured where, as far as the figures depend on it."""
    pins = dict(line.strip().split("==") for line in peers.PINS.read_text().splitlines() if "==" in line)
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cores": cores,
        "processor": platform_class()["processor"],
        "load_before": round(os.getloadavg()[0], 2),
        "versions": {
            "python": platform.python_version(),
            "fedquorum": version("fedquorum"),
            "jaxlib": version("jaxlib"),
        }
        | {name: pins[name] for name in ("torch", "flwr", "ray", "fedjax")},
    }


def table(results: dict[str, Any]) -> str:
    """The results as Markdown."""
    lines = []
    for name in ("dnn", "cnn"):
        if name not in results:
            continue
        job = results[name]
        lines += [f"\n{job['title']}, {job['flops_per_step'] / 1e6:.1f} MFLOP a step\n"]
        lines += ["| | one process, steps/s | GFLOP/s | one per core, steps/s | GFLOP/s |", "|---|---|---|---|---|"]
        for contestant, modes in job["steps_per_second"].items():
            cells = [contestant]
            for mode in ("one process", "one per core"):
                if mode in modes:
                    found = modes[mode]
                    cells += [f"{found['median']:,.0f} ({found['low']:,.0f} to {found['high']:,.0f})"]
                    cells += [f"{job['gflops'][contestant][mode]['median']:,.0f}"]
                else:
                    cells += ["", ""]
            lines.append("| " + " | ".join(cells) + " |")
        lines += ["", "| fedquorum over | median | low to high |", "|---|---|---|"]
        for ratio, found in job["ratios"].items():
            lines.append(f"| {ratio} | {found['median']:.3g} | {found['low']:.3g} to {found['high']:.3g} |")
    if "logistic" in results:
        lines += [f"\n{results['logistic']['title']}\n", "| | seconds |", "|---|---|"]
        for contestant, found in results["logistic"]["seconds"].items():
            lines.append(f"| {contestant} | {found['median']:.3f} ({found['low']:.3f} to {found['high']:.3f}) |")
    for axis, line in results.get("growth", {}).items():
        lines.append(f"\nseconds over {axis}: " + ", ".join(f"{at}: {value:.3g}" for at, value in line.items()))
    lines.append("")
    for name in ("dnn", "cnn", "logistic"):
        for rival, target in results.get(name, {}).get("targets", {}).items():
            verdict = "met" if target["met"] else "MISSED"
            lines.append(f"target {name}, {rival}: {target['wanted']} wanted, {target['found']:.3g} found: {verdict}")
        for rival, reason in results.get(name, {}).get("absent", {}).items():
            lines.append(f"not measured: {name}, {rival}: {reason}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="about two minutes instead of fifteen")
    parser.add_argument("--only", default="", help=f"some of {','.join(SUBJECTS + RIVALS)}, with commas")
    options = parser.parse_args()
    only = [name for name in options.only.split(",") if name]
    if unknown := [name for name in only if name not in SUBJECTS + RIVALS]:
        parser.error(f"unknown part {unknown[0]!r}; there are {', '.join(SUBJECTS + RIVALS)}")
    subjects = [name for name in SUBJECTS if name in only] or list(SUBJECTS)
    rivals = [name for name in RIVALS if name in only] or list(RIVALS)

    cores = worker_count(None)
    results: dict[str, Any] = {"machine": machine(cores), "quick": options.quick}
    if results["machine"]["load_before"] > 0.5:
        note(f"this machine is busy (load {results['machine']['load_before']}): the ratios below are rough")
    if reason := peers.prepare():
        results["peers"] = reason
        rivals = [name for name in rivals if name == "matmul"]
        note(f"the peers are left out: {reason}")
    seconds, repeats = (0.7, 2) if options.quick else (2.0, 5)
    for job in (DNN, CNN):
        if job.name in subjects:
            results[job.name] = compare(job, race(job, rivals, cores, seconds, repeats), cores)
    if "logistic" in subjects:
        results["logistic"] = yardstick(rivals, seconds, repeats)
    if "growth" in subjects:
        results["growth"] = growth(options.quick)

    # A quick or partial run does not replace the recorded one.
    stem = RESULTS / ("partial" if options.quick or only else "speed")
    RESULTS.mkdir(exist_ok=True)
    stem.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n")
    draw.figure(results, stem)
    print(table(results))
    note(f"written: {', '.join(stem.with_suffix(ending).name for ending in ('.json', '.svg', '.png'))} in results")


if __name__ == "__main__":
    main()
