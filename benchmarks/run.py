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
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import draw
import measure
import peers
import table
from jobs import CNN, DNN, LOGISTIC, LOGISTIC_ROUNDS, Job
from measure import Contestant

from fedquorum.engines.local import worker_count
from fedquorum.platform_class import platform_class

RESULTS = Path(__file__).parent / "results"
SUBJECTS = ("dnn", "cnn", "logistic", "growth")
RIVALS = ("matmul", "torch", "flower", "fedjax")
# At least this share of the matrix product's rate, and this many times each rival's local steps per second.
TARGETS = {
    "dnn": {"matmul": 0.65, "torch": 2.5, "flower": 100.0},
    "cnn": {"matmul": 0.45, "torch": 1.7, "flower": 5.0},
}
YARDSTICK_SECONDS = 1.0

Rates = dict[str, dict[str, list[float]]]  # contestant -> "one process" or "one per core" -> steps per second


def ours(name: str, *arguments: str) -> Contestant:
    return Contestant(name, sys.executable, arguments, peers.core_environment())


def theirs(name: str, *arguments: str, alone: bool = False, stretch: float = 1.0) -> Contestant:
    return Contestant(name, str(peers.PYTHON), arguments, peers.peer_environment(), alone, stretch)


def contestants(job: Job, rivals: Sequence[str]) -> list[Contestant]:
    """fedquorum and its rivals, each with the command that serves windows of this job."""
    layouts = ("contiguous", "channels_last") if job is CNN else ("contiguous",)
    everybody = {
        "matmul": [ours("matmul", "matrix_product.py")],
        "fedquorum": [ours("fedquorum", "with_fedquorum.py", job.name)],
        "torch": [theirs(f"torch {layout}", "with_pytorch.py", job.name, layout) for layout in layouts],
        "fedjax": [theirs("fedjax", "with_fedjax.py", job.name)],
        # It starts anew for each window, and its rounds are long.
        "flower": [theirs("flower", "with_flower.py", job.name, layouts[-1], alone=True, stretch=4.0)],
    }
    return [one for name, group in everybody.items() if name in (*rivals, "fedquorum") for one in group]


def race(job: Job, rivals: Sequence[str], cores: int, seconds: float, repeats: int) -> tuple[Rates, dict[str, str]]:
    """Local SGD steps per second of each contestant, and why others are absent."""
    rates: Rates = {}
    with measure.ready(contestants(job, rivals), cores, job.parameters) as (taking_part, absent):
        for repeat in range(repeats):
            note(f"{job.name}: repeat {repeat + 1} of {repeats}")
            for mode in table.MODES:
                for contestant, processes in taking_part:
                    if contestant.alone and mode == "one process":
                        continue
                    chosen = processes[:1] if mode == "one process" else processes
                    windows = measure.windows(chosen, seconds * contestant.stretch)
                    # The machine's own rate counts as if a step were nothing but its products.
                    matmul = contestant.name == "matmul"
                    rate = measure.best(windows) / job.flops if matmul else measure.together(windows)
                    rates.setdefault(contestant.name, {}).setdefault(mode, []).append(rate)
    return rates, absent


def compare(job: Job, rates: Rates, absent: dict[str, str], cores: int) -> dict[str, Any]:
    """Ratios are taken within each repeat, then their median."""

    def over(mine: list[float], other: list[float]) -> dict[str, float]:
        return measure.summary([a / b for a, b in zip(mine, other, strict=True)])

    mine = rates["fedquorum"]
    ratios = {
        name: {mode: over(mine[mode], modes[mode]) for mode in modes}
        for name, modes in rates.items()
        if name != "fedquorum"
    }
    found = {name: modes["one per core"]["median"] for name, modes in ratios.items()}
    if "matmul" in rates:
        busy = [rate / cores for rate in mine["one per core"]]
        ratios["matmul"]["busy"] = over(busy, rates["matmul"]["one process"])
        found["matmul"] = ratios["matmul"]["busy"]["median"]
    # Of PyTorch's memory formats, the one that does best.
    formats = [found[name] for name in found if name.startswith("torch")]
    if formats:
        found["torch"] = min(formats)
    return {
        "title": job.title,
        "k": job.k,
        "batch_size": job.batch_size,
        "local_steps": job.local_steps,
        "flops_per_step": job.flops,
        "steps_per_second": summaries(rates, 1.0),
        "gflops": summaries(rates, job.flops / 1e9),
        "ratios": ratios,
        "targets": {
            rival: {"wanted": target, "found": found[rival], "met": found[rival] >= target}
            for rival, target in TARGETS[job.name].items()
            if rival in found
        },
        "absent": absent,
    }


def summaries(rates: Rates, scale: float) -> dict[str, dict[str, dict[str, float]]]:
    return {
        name: {mode: measure.summary([scale * value for value in values]) for mode, values in modes.items()}
        for name, modes in rates.items()
    }


def yardstick(rivals: Sequence[str], seconds: float, repeats: int) -> dict[str, Any]:
    """Seconds for all rounds of the logistic regression, in one process."""
    field = [ours("fedquorum", "logistic.py")]
    if "fedjax" in rivals:
        field.append(theirs("fedjax", "with_fedjax.py", LOGISTIC.name))
    steps = LOGISTIC_ROUNDS * LOGISTIC.k * LOGISTIC.local_steps
    times: dict[str, list[float]] = {}
    with measure.ready(field, 1, LOGISTIC.parameters) as (taking_part, absent):
        for repeat in range(repeats):
            note(f"logistic: repeat {repeat + 1} of {repeats}")
            for contestant, processes in taking_part:
                rate = measure.together(measure.windows(processes, seconds))
                times.setdefault(contestant.name, []).append(steps / rate)
    found = statistics.median(times["fedquorum"])
    return {
        "title": f"{LOGISTIC.title}, {LOGISTIC.clients} clients, {LOGISTIC.k} per round, {LOGISTIC_ROUNDS} rounds",
        "seconds": {name: measure.summary(values) for name, values in times.items()},
        "targets": {
            "seconds": {"wanted": YARDSTICK_SECONDS, "found": round(found, 4), "met": found < YARDSTICK_SECONDS}
        },
        "absent": absent,
    }


def growth(quick: bool) -> dict[str, dict[str, float]]:
    """Seconds over k, n, width, N and workers."""
    note("growth")
    command = [sys.executable, "growth.py", *(["--quick"] if quick else [])]
    done = subprocess.run(
        command, cwd=measure.HERE, env=peers.core_environment(), stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, dict[str, float]] = json.loads(done.stdout)
    return found


def machine(cores: int) -> dict[str, Any]:
    """What was measured where, as far as the figures depend on it."""
    pins = dict(line.split("==") for line in peers.PINS.read_text().splitlines() if "==" in line)
    own = {"python": platform.python_version(), "fedquorum": version("fedquorum"), "jaxlib": version("jaxlib")}
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cores": cores,
        "processor": platform_class()["processor"],
        "load_before": round(os.getloadavg()[0], 2),
        "versions": own | {name: pins[name] for name in ("torch", "flwr", "ray", "fedjax")},
    }


def note(text: str) -> None:
    """Progress, beside the results."""
    print(f"{time.monotonic() - BEGIN:5.0f} s  {text}", file=sys.stderr, flush=True)


BEGIN = time.monotonic()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two to three minutes and rough, instead of ten")
    parser.add_argument("--only", default="", help=f"some of {','.join(SUBJECTS + RIVALS)}, with commas between")
    options = parser.parse_args()
    only = [name for name in options.only.split(",") if name]
    if unknown := [name for name in only if name not in SUBJECTS + RIVALS]:
        parser.error(f"unknown part {unknown[0]!r}; there are {', '.join(SUBJECTS + RIVALS)}")
    subjects = [name for name in SUBJECTS if name in only] or SUBJECTS
    rivals = [name for name in RIVALS if name in only] or RIVALS

    cores = worker_count(None)
    results: dict[str, Any] = {"machine": machine(cores), "quick": options.quick}
    if results["machine"]["load_before"] > 0.5:
        note(f"this machine is busy (load {results['machine']['load_before']}), so what follows is rough")
    peers_wanted = set(rivals) - {"matmul"} and set(subjects) - {"growth"}
    if peers_wanted and (reason := peers.prepare()):
        results["no_peers"] = reason
        rivals = [name for name in rivals if name == "matmul"]
        note(f"the peers are left out: {reason}")
    seconds, repeats = (0.7, 2) if options.quick else (2.0, 5)
    # A quick or partial run does not replace the recorded one.
    stem = RESULTS / ("partial" if options.quick or only else "speed")

    def keep(subject: str, found: Any) -> None:
        results[subject] = found
        RESULTS.mkdir(exist_ok=True)
        stem.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n")

    for job in (DNN, CNN):
        if job.name in subjects:
            keep(job.name, compare(job, *race(job, rivals, cores, seconds, repeats), cores))
    if "logistic" in subjects:
        keep("logistic", yardstick(rivals, seconds, repeats))
    if "growth" in subjects:
        keep("growth", growth(options.quick))
    draw.figure(results, stem)
    print(table.markdown(results))
    note(f"written: benchmarks/results/{stem.name}.json, .svg and .png")


if __name__ == "__main__":
    main()
