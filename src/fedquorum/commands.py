"""What the commands do: the rooms, one after the other."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from fedquorum.certificates import Certificate, certify, check_name, membership, names_for, probability
from fedquorum.config import Config, load_config
from fedquorum.datasets.cache import cache_folder
from fedquorum.errors import InputError, one_line
from fedquorum.report.curve import down, print_curve
from fedquorum.report.figures import write_curve
from fedquorum.report.outputs import of_run, vote_accuracies, write_certificates
from fedquorum.runs import (
    Run,
    Task,
    clients_csv,
    load_run,
    locked,
    missing,
    notes_of,
    open_run,
    read_record,
    remove_leftovers,
    votes_of,
    write_array,
    write_whole,
)
from fedquorum.votes import Votes, load_votes


def _console() -> Console:
    # what is printed holds names that others chose, such as clients' ids: none of it is Rich's markup
    return Console(stderr=False, markup=False, highlight=False)


def _warn(console: Console, text: str) -> None:
    console.print(Text.assemble(("warning:", "yellow"), " ", one_line(text)), soft_wrap=True)


def run_command(
    source: str, out: Path | None, changes: Sequence[str], workers: int | None, engine: str, device: str
) -> None:
    """`fedquorum run`: train what is missing, then certify and report."""
    from fedquorum.engines.local import check_device, worker_count
    from fedquorum.experiment import prepare

    console = _console()
    if engine != "local":
        raise InputError(f"--engine {engine}: unknown engine; there is local")
    worker_count(workers)
    check_device(device)
    config, folder = load_config(source, changes)
    names = _names_for(config)
    out = out or Path("runs") / (Path(source).stem if source.endswith(".toml") else source)
    # hidden files are our own: the lock, and what a killed process left
    ours = out.is_dir() and all(entry.name == "shards" or entry.name[0] == "." for entry in out.iterdir())
    if out.is_dir() and not ours and not (out / "run.toml").exists():
        raise InputError(f"{out} holds other files and is not a run folder; choose another --out")
    old = read_record(out) if (out / "run.toml").exists() else None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        experiment = prepare(config, folder, old, device)
    for warning in caught:
        if issubclass(warning.category, UserWarning):
            _warn(console, str(warning.message))
    experiment.record["certify"]["certificates"] = list(names)
    with locked(out):
        fresh = not (out / "run.toml").exists()
        run = open_run(out, experiment.record)
        if isinstance(run.record["subsamples"]["seed"], str):
            committed = run.record["made_by"]["draw_commitment"]
            console.print(f"the draw is secret; its commitment, for the clients: {committed}", soft_wrap=True)
        if old is not None:
            _warn_of_platform(console, old, run.record)
            _warn_of_another_look(console, run)
        remove_leftovers(run)
        write_array(out / "subsamples.npy", experiment.subsamples.members)
        if experiment.federation.test_y is not None:
            write_array(out / "labels.npy", experiment.federation.test_y)
        write_whole(out / "clients.csv", clients_csv(experiment.federation))
        tasks, damage = missing(run, len(experiment.subsamples))
        for problem in damage:
            _warn(console, f"{problem}; learning its models again")
        try:
            _train(console, experiment, run, tasks, workers, device)
        except InputError:
            # found out only by a worker, which has everything at hand; leave nothing that a corrected command would trip over
            if fresh and not any((out / "shards").iterdir()):
                shutil.rmtree(out, ignore_errors=True)
            raise
        votes, failures = votes_of(run)
        notes = notes_of(run, failures)
        risks = {"alpha": str(config.certify.alpha), "delta": str(config.certify.delta)}
        found = _certificates(console, votes, names, risks, worker_count(workers))
        certificates = [of_run(run, certificate) for certificate in found]
        _report(console, out, votes, certificates, notes, source)


def _names_for(config: Config) -> tuple[str, ...]:
    """The certificates to give, checked before anything is trained: asked for ones must fit the design."""
    design, names = config.subsamples.design, config.certify.certificates
    for risk in ("alpha", "delta"):
        probability(risk, getattr(config.certify, risk))
    if "certificates" not in config.certify.model_fields_set:
        return tuple(name for name in names if name in names_for(design))
    for name in names:
        check_name(name, design)
    return tuple(dict.fromkeys(names))


def _certificates(
    console: Console,
    votes: Votes,
    names: Sequence[str],
    risks: Mapping[str, str],
    workers: int,
    exact: bool | None = None,
) -> list[Certificate]:
    """The certificates asked for; `membership`, which may take its time, with a bar, and kept in the cache as it goes."""

    def by_name(name: str) -> Certificate:
        if name != "membership":
            return certify(votes, name, alpha=risks["alpha"], delta=risks["delta"])
        # in this user's own cache, and not in the run: a folder from somebody else is not to be believed
        cache = cache_folder() / "membership"
        with Progress(*_columns("membership levels"), console=console, transient=True) as progress:
            bar = progress.add_task("", total=votes.d)

            def watch(done: int, total: int) -> None:
                progress.update(bar, completed=done, total=total)

            return membership.certify(votes, exact=exact, workers=workers, progress=watch, folder=cache)

    return [by_name(name) for name in names]


def _columns(what: str) -> tuple[ProgressColumn, ...]:
    return (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )


def _warn_of_platform(console: Console, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    names = ("jaxlib", "numpy", "system", "processor", "features", "device")
    changed = [name for name in names if old.get("made_by", {}).get(name) != new["made_by"][name]]
    if changed:
        _warn(
            console,
            f"this run was begun on another class of platform ({', '.join(changed)} differ); "
            "its certificates stay valid, but retrained models may differ in their last digits",
        )


def _warn_of_another_look(console: Console, run: Run) -> None:
    try:
        summary = json.loads((run.path / "summary.json").read_text(encoding="utf-8"))
        before = {entry["N"] for entry in summary.values()} - {run.record["subsamples"]["count"]}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return  # nothing that could be read was certified
    if before:
        _warn(
            console,
            f"these votes were certified at N = {min(before)} before: alpha and delta hold for one N that is chosen without "
            "looking at the certificates of another (share them out over the looks that you take)",
        )


def _train(
    console: Console, experiment: Any, run: Run, tasks: Sequence[Task], workers: int | None, device: str
) -> None:
    from fedquorum.engines import local
    from fedquorum.engines.job import Job

    total = len(experiment.subsamples)
    to_do = sum(len(task.models) for task in tasks)
    console.print(
        f"{run.path}: n={experiment.federation.n} clients, k={experiment.subsamples.k}, N={total} models, "
        f"{total - to_do} finished, {to_do} to learn",
        soft_wrap=True,
    )
    if not tasks:
        return
    members, seed = experiment.subsamples.members, int(run.record["algorithm"]["seed"])
    job = Job(experiment.federation, experiment.algorithm, members, seed, run, device)
    columns = _columns("models")
    columns = (*columns[:3], TextColumn("{task.fields[rate]}"), *columns[3:])
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("models", total=total, completed=total - to_do, rate="")
        failed = 0

        def watch(news: local.Progress) -> None:
            nonlocal failed
            failed += news.failed
            if news.note:
                _warn(progress.console, news.note)
            progress.update(bar, advance=news.models)
            speed = progress.tasks[0].speed
            progress.update(bar, rate="" if not speed else f"{speed:.1f}/s" if speed > 1 else f"{60 * speed:.1f}/min")

        local.run_local(job, tasks, workers=workers, watch=watch)
    if failed:
        _warn(console, f"{failed} models could not be learnt; each votes label 0 (the reasons are in the shards)")


def certify_command(
    source: Path,
    names: Sequence[str] | None,
    alpha: str | None,
    delta: str | None,
    out: Path | None,
    exact: bool = False,
    workers: int | None = None,
) -> None:
    """`fedquorum certify`: a run folder or a votes file in, certificates out."""
    from fedquorum.engines.local import worker_count

    console = _console()
    cores = worker_count(workers)
    notes: dict[str, Any] = {}
    settings: dict[str, Any] = {"alpha": "0.001", "delta": "0.001"}
    run = load_run(source) if source.is_dir() else None
    if run is not None:
        votes, failures = votes_of(run)
        settings |= {name: str(run.record["certify"][name]) for name in settings}
        notes = notes_of(run, failures)
        out = out or source
    else:
        votes = load_votes(source)
        out = out or source.with_name(f"{source.name.removesuffix('.npz')}.certified")
    settings |= {name: value for name, value in (("alpha", alpha), ("delta", delta)) if value is not None}
    if names:
        for name in names:
            check_name(name, votes.design)
    names = names or names_for(votes.design)
    for name in ("alpha", "delta"):
        probability(name, settings[name])
    if out.is_dir() and any(out.iterdir()) and not out.samefile(source):
        if (out / "run.toml").exists():
            raise InputError(f"{out} is a run folder, with certificates of its own; choose another --out")
        if not (out / ".lock").exists():
            raise InputError(f"{out} holds other files; choose another --out")
    with locked(out):
        if run is not None and load_run(source).record != run.record:
            raise InputError(f"{source} was changed by another fedquorum process just now; say the same again")
        found = _certificates(console, votes, tuple(dict.fromkeys(names)), settings, cores, exact or None)
        certificates = found if run is None else [of_run(run, certificate) for certificate in found]
        _report(console, out, votes, certificates, notes, source.name)


def _report(
    console: Console,
    out: Path,
    votes: Votes,
    certificates: Sequence[Certificate],
    notes: Mapping[str, Any],
    title: str,
) -> None:
    accuracies = vote_accuracies(votes)
    summary = write_certificates(out, certificates, votes.labels, accuracies | dict(notes))
    write_curve(out, summary, f"{title}: n={votes.n}, k={votes.k}, N={votes.N}")
    print_curve(console, summary)
    if accuracies:
        single, together = (down(accuracies[name]) for name in ("single_models_accuracy", "vote_accuracy"))
        text = f"single models are right on {single} of the inputs on average, their plain vote on {together}"
        console.print(text, soft_wrap=True)
    console.print(f"written to {out}", soft_wrap=True)


def verify_command(source: Path, retrain: int, workers: int | None) -> bool:
    """`fedquorum verify`: True if everything that could be checked is as it should be."""
    from fedquorum.verify import Finding, verify

    console = _console()
    if retrain < 0:
        raise InputError(f"--retrain {retrain}: it must be 0 or more")
    good = True

    def show(finding: Finding) -> None:
        mark = {True: ("ok      ", "green"), False: ("MISMATCH", "red"), None: ("not checked", "yellow")}[finding.good]
        console.print(Text.assemble(mark, " ", one_line(finding.text)), soft_wrap=True)

    try:
        for finding in verify(source, retrain, workers):
            show(finding)
            good = good and finding.good is not False
    except InputError as error:
        if good:
            raise
        show(Finding(None, str(error)))  # what was found before is what the command must end with
    return good
