"""The command line: `fedquorum --help` is the manual. What a command needs is imported when it runs."""

from __future__ import annotations

import errno
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
import typer.core

from fedquorum._version import __version__
from fedquorum.errors import InputError, MachineError, one_line

# Help is plain text here, but typer escapes its brackets for Rich wherever Rich is installed.
typer.core.HAS_RICH = False

app = typer.Typer(
    name="fedquorum",
    help="Ensemble federated learning whose predictions a bounded number of malicious clients provably cannot change.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where to write.")]
Certificates = Annotated[
    list[str] | None,
    typer.Option("--certificate", metavar="NAME", help="Which certificate; may be given several times."),
]


@app.command()
def run(
    source: Annotated[str, typer.Argument(metavar="PRESET|FILE.toml", help="What to run: a preset, or your own file.")],
    out: Out = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a key: --set algorithm.rounds=80.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Worker processes; one per core if not given.")] = None,
    engine: Annotated[str, typer.Option(help="Where the trainings happen: local.")] = "local",
    device: Annotated[str, typer.Option(help="What the models are trained on: cpu, gpu or tpu.")] = "cpu",
) -> None:
    """Train (or resume), certify and report: the main job. Running the same command again resumes."""
    from fedquorum.commands import run_command

    run_command(source, out, changes or [], workers, engine, device)


@app.command()
def certify(
    source: Annotated[Path, typer.Argument(metavar="RUN|VOTES.npz", help="A run folder, or votes of any origin.")],
    names: Certificates = None,
    alpha: Annotated[
        str | None, typer.Option(help="The probability of a wrong `paper` or `ideal` certificate.")
    ] = None,
    delta: Annotated[str | None, typer.Option(help="The probability of a wrong `served` certificate.")] = None,
    out: Out = None,
    exact: Annotated[
        bool,
        typer.Option("--exact", help="Look for the largest `membership` level of every input, a minute each at most."),
    ] = False,
    workers: Annotated[int | None, typer.Option(help="Processes for that; one per core if not given.")] = None,
) -> None:
    """Certify votes, without any training: all certificates that are valid for how the subsamples were drawn."""
    from fedquorum.commands import certify_command

    certify_command(source, names, alpha, delta, out, exact, workers)


@app.command()
def verify(
    source: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    retrain: Annotated[
        int,
        typer.Option(
            metavar="J", help="Train J random models again and compare. This runs code of the run's own, if it has any."
        ),
    ] = 0,
    workers: Annotated[int | None, typer.Option(help="Worker processes; one per core if not given.")] = None,
) -> None:
    """Check a run folder: draw again, read every shard, compute every certificate again by a second, exact path."""
    from fedquorum.commands import verify_command

    if not verify_command(source, retrain, workers):
        raise typer.Exit(1)


@app.command()
def plan(
    clients: Annotated[int, typer.Option("--clients", metavar="N", help="How many clients there are.")],
    tolerate: Annotated[
        int | None, typer.Option("--tolerate", metavar="M", help="How many of them may be malicious.")
    ] = None,
    models: Annotated[
        int, typer.Option("--models", metavar="N", help="How many models you can afford to train.")
    ] = 500,
    size: Annotated[
        int | None, typer.Option("--size", metavar="K", help="What this many clients per model would buy.")
    ] = None,
    alpha: Annotated[str, typer.Option(help="Of `paper` and `ideal`.")] = "0.001",
    delta: Annotated[str, typer.Option(help="Of `served`.")] = "0.001",
    inputs: Annotated[int, typer.Option(metavar="D", help="Test inputs that share alpha.")] = 10_000,
    classes: Annotated[int, typer.Option(metavar="C", help="How many labels there are.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the tables.")] = False,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Write plan.json and a picture too.")] = None,
) -> None:
    """Before anything is trained: what can be certified, at what share of the votes, for what price."""
    from fedquorum.plan_command import plan_command

    plan_command(
        clients,
        tolerate,
        models,
        size,
        alpha=alpha,
        delta=delta,
        inputs=inputs,
        classes=classes,
        print_json=as_json,
        out=out,
    )


@app.command()
def data(
    name: Annotated[str, typer.Argument(metavar="NAME", help="digits, mnist, har or fashion-mnist.")],
    origin: Annotated[
        Path | None, typer.Option("--from", metavar="PATH", help="Where its files are, if you have them.")
    ] = None,
) -> None:
    """Fetch and check a data set into the cache, so that runs find it there."""
    from fedquorum.datasets import NAMES, fetch

    if name not in NAMES:
        raise InputError(f"unknown data set {name!r}; there are {', '.join(NAMES)}")
    print(fetch(name, origin))


@app.callback(invoke_without_command=True)
def _global(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    if version:
        print(__version__)
        raise typer.Exit


def _interrupt(signum: int, frame: Any) -> NoReturn:
    raise KeyboardInterrupt


def main() -> NoReturn:
    """Run the command line; every way to end has its exit code and, if it is an error, one line on standard error."""
    import click

    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code = app(standalone_mode=False)
        if code == 130:  # typer's own word for Ctrl-C
            raise KeyboardInterrupt
        sys.exit(code if isinstance(code, int) else 0)
    except InputError as error:
        _end(2, str(error))
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message(), file=sys.stderr)
        sys.exit(2)
    except click.ClickException as error:
        _end(2, f"{error.format_message()} (see 'fedquorum --help')")
    except MachineError as error:
        _end(3, str(error))
    except (KeyboardInterrupt, click.Abort):
        _end(130, "interrupted; everything finished is kept, run the same command again to go on")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        _end(3, "nobody reads the output")
    except OSError as error:
        wrong = isinstance(error, (PermissionError, FileNotFoundError, NotADirectoryError, IsADirectoryError))
        named = f"{error.filename}: " if error.filename else ""
        code = 2 if wrong or error.errno == errno.ENAMETOOLONG else 3
        _end(code, f"{named}{error.strerror or error}")
    except MemoryError:
        _end(3, "this machine has too little memory for it; everything finished is kept")
    except Exception as error:
        # 1 is for findings, and a mistake of ours is none; whoever mends it needs to know where it was
        where = traceback.extract_tb(error.__traceback__)[-1]
        _end(
            3,
            f"a mistake of fedquorum's own ({type(error).__name__}: {error}; {Path(where.filename).name}:{where.lineno})",
        )


def _end(code: int, message: str) -> NoReturn:
    print(f"fedquorum: {one_line(message)}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
