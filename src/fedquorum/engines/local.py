"""One machine: a single-threaded worker process per core, each compiled once, fed shard by shard."""

from __future__ import annotations

import hashlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fedquorum.datasets.cache import cache_folder
from fedquorum.engines.job import Job, platform_name, save_job
from fedquorum.errors import InputError, MachineError
from fedquorum.runs import Task, make_folder, remove_leftovers

DEVICES = {"cpu": "cpu", "gpu": "cuda", "tpu": "tpu"}  # and what JAX calls their platforms
CACHES = ("JAX_COMPILATION_CACHE_DIR", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS")
DEATHS = 3  # of workers on one shard, before the run gives up


@dataclass(frozen=True)
class Progress:
    """What the engine tells whoever watches: a model was learnt, or models of an unfinished shard were lost again."""

    models: int = 0
    failed: int = 0
    note: str = ""


@dataclass(eq=False)
class _Worker:
    process: subprocess.Popen[bytes]
    task: Task
    learnt: int = 0
    rest: bytes = field(default=b"")


def worker_count(workers: int | None, device: str = "cpu") -> int:
    """One worker per core that this process may use, one in all for an accelerator, unless the user says otherwise."""
    if workers is None and device != "cpu":
        return 1
    if workers is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if workers < 1:
        raise InputError(f"workers={workers}: at least 1 worker is needed")
    return workers


def check_device(device: str) -> None:
    """Refuse a kind of device that there is none of."""
    if device not in DEVICES:
        raise InputError(f"--device {device}: unknown; there are {', '.join(DEVICES)}")


def worker_environment(device: str = "cpu") -> dict[str, str]:
    """Every pool at one thread: with several, results depend on how many, and two workers get in each other's way.

    `PJRT_NPROC` is what sets the size of XLA's pool; it must stand before JAX is imported.
    """
    check_device(device)
    # How a user's shell sets up JAX is not part of a run: two numerics must not meet in one.
    environment = {
        name: value for name, value in os.environ.items() if name != "XLA_FLAGS" and not name.startswith("JAX_")
    } | {name: os.environ[name] for name in CACHES if name in os.environ}
    for name in ("PJRT_NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        environment[name] = "1"
    environment["JAX_PLATFORMS"] = DEVICES[device]
    # What one worker compiles, the next and those of later runs load; compiled code is for one class of platform.
    platform = hashlib.sha256(platform_name(device).encode()).hexdigest()[:16]
    environment.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache_folder() / "compiled" / platform))
    environment.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
    environment["PYTHONHASHSEED"] = "0"
    environment["PYTHONPATH"] = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
    return environment


def run_local(
    job: Job, tasks: Sequence[Task], *, workers: int | None = None, watch: Callable[[Progress], None] = lambda _: None
) -> None:
    """Do all tasks. A worker that dies is replaced and its shard tried again, three times at most.

    However this ends, no worker is left, and every shard that was finished is on disk.
    """
    # in the run folder, so that the next command on it finds and removes what a killed one left behind
    folder = job.run.path / f".job-{os.getpid()}"
    shutil.rmtree(folder, ignore_errors=True)
    make_folder(folder)
    environment = worker_environment(job.device)
    log = folder / "log"
    waiting = deque(tasks)
    deaths: dict[int, int] = {}
    busy: dict[int, _Worker] = {}
    selector = selectors.DefaultSelector()

    def start(task: Task) -> None:
        with open(log, "ab") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "fedquorum.engines.worker", str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                start_new_session=True,  # Ctrl-C is for the parent, which then ends its workers
            )
        assert process.stdout is not None
        worker = _Worker(process, task)
        busy[process.pid] = worker
        selector.register(process.stdout, selectors.EVENT_READ, worker)
        send(worker, task)

    def send(worker: _Worker, task: Task) -> None:
        worker.task, worker.learnt = task, 0
        assert worker.process.stdin is not None
        try:
            worker.process.stdin.write(json.dumps({"shard": task.shard, "models": task.models}).encode() + b"\n")
            worker.process.stdin.flush()
        except BrokenPipeError:
            pass  # it died; the end of its output tells

    def part(worker: _Worker) -> int:
        assert worker.process.stdin is not None and worker.process.stdout is not None
        selector.unregister(worker.process.stdout)
        del busy[worker.process.pid]
        worker.process.stdin.close()
        worker.process.stdout.close()
        return worker.process.wait()

    def hear(worker: _Worker, line: bytes) -> None:
        answer = json.loads(line)
        if "learnt" in answer:
            worker.learnt += 1
            watch(Progress(models=1))
        elif "error" in answer:
            kind = {"InputError": InputError, "MachineError": MachineError}[answer["kind"]]
            raise kind(answer["error"])
        else:
            watch(Progress(failed=answer["failed"]))
            if waiting:
                send(worker, waiting.popleft())
            else:
                part(worker)

    def bury(worker: _Worker) -> None:
        code = part(worker)
        task = worker.task
        deaths[task.shard] = deaths.get(task.shard, 0) + 1
        cause = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        if deaths[task.shard] == DEATHS:
            raise MachineError(
                f"shard {task.shard} (models {task.models[0]} to {task.models[-1]}): its worker died {DEATHS} times "
                f"(the last was {cause}{_last_line(log)}); everything finished is kept, run the same command to go on"
            )
        watch(Progress(models=-worker.learnt, note=f"a worker died on shard {task.shard} ({cause}); trying it again"))
        start(task)

    try:
        save_job(job, folder)
        for _ in range(min(worker_count(workers, job.device), len(waiting))):
            start(waiting.popleft())
        while busy:
            for key, _ in selector.select():
                worker: _Worker = key.data
                assert worker.process.stdout is not None
                chunk = os.read(worker.process.stdout.fileno(), 1 << 16)
                if not chunk:
                    bury(worker)
                    continue
                *lines, worker.rest = (worker.rest + chunk).split(b"\n")
                for line in lines:
                    hear(worker, line)
    except OSError as error:
        raise MachineError(f"the workers' files in {folder} cannot be written: {error.strerror}") from None
    finally:
        for worker in list(busy.values()):
            worker.process.kill()
            part(worker)
        selector.close()
        remove_leftovers(job.run)
        shutil.rmtree(folder, ignore_errors=True)


def _last_line(log: Path) -> str:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        return ""
    return f"; its last words: {lines[-1]}" if lines else ""
