"""From a configuration to the things it names: the federation, the base algorithm, and the record of both."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedquorum import datasets
from fedquorum._version import __version__
from fedquorum.config import Algorithm, Config
from fedquorum.errors import InputError
from fedquorum.federation import Federation
from fedquorum.platform_class import platform_class
from fedquorum.subsamples import Subsamples, draw
from fedquorum.training.algorithm import BaseAlgorithm

# Clients trained side by side: on a CPU one, whose working set stays in the cache; on an accelerator, many.
LANES = {"cpu": 1, "gpu": 256, "tpu": 256}
MODELS = ("linear", "dnn", "cnn")


@dataclass(frozen=True, eq=False)
class Experiment:
    """All that a run needs, and `record`, the content of its run.toml."""

    federation: Federation
    algorithm: BaseAlgorithm
    subsamples: Subsamples
    record: dict[str, Any]


def prepare(config: Config, folder: Path, old: Mapping[str, Any] | None = None, device: str = "cpu") -> Experiment:
    """Load the data, deal it to clients, draw the subsamples, and resolve every default.

    `folder` is where the configuration's own paths start; `old` the record of the run folder to resume, from
    which a secret seed is taken again.
    """
    federation, record, subsamples = resolve(config, folder, old, device)
    algorithm = base_algorithm(config.algorithm, folder, int(federation.classes or 0), LANES[device])
    return Experiment(federation, algorithm, subsamples, record)


def resolve(
    config: Config, folder: Path, old: Mapping[str, Any] | None = None, device: str = "cpu"
) -> tuple[Federation, dict[str, Any], Subsamples]:
    """As `prepare`, but for the base algorithm: code of the user's own is hashed, and not run."""
    federation, clients = _federation(config, folder)
    seed, written = _draw_seed(config, old)
    subsamples = draw(federation.n, config.subsamples.size, config.subsamples.count, config.subsamples.design, seed)
    record: dict[str, Any] = config.model_dump()
    record["clients"] |= clients
    record["subsamples"] |= {"count": len(subsamples), "seed": written}
    record["certify"]["certificates"] = list(config.certify.certificates)
    record["run"] = {
        "clients": federation.n,
        "inputs": len(federation.test_x),
        "classes": federation.classes,
        "fingerprint": federation.fingerprint,
        "code": code_of(config.algorithm, folder),
    }
    record["made_by"] = {
        # where the paths of [data] and [algorithm] begin
        "folder": os.fsencode(folder.resolve()).decode("utf-8", "backslashreplace"),
        "fedquorum": __version__,
        "draw_commitment": commitment(seed),
    } | platform_class(device)
    return federation, record, subsamples


def commitment(seed: int) -> str:
    """SHA-256 of the draw's seed: it binds whoever publishes it and tells nothing of a 128-bit secret.

    >>> commitment(1)[:16]
    'b95e5e657e85658b'
    """
    return hashlib.sha256(f"fedquorum draw {seed}".encode()).hexdigest()


def seed_number(written: int | str) -> int:
    """A seed as it stands in run.toml: an integer, or a revealed secret as "0x..."."""
    return int(written, 16) if isinstance(written, str) else int(written)


def _draw_seed(config: Config, old: Mapping[str, Any] | None) -> tuple[int, int | str]:
    written: int | str = config.subsamples.seed
    if written == "secret":
        kept = (old or {}).get("subsamples", {}).get("seed")
        written = kept if isinstance(kept, str) else f"0x{secrets.randbits(128):032x}"
    return seed_number(written), written


def _federation(config: Config, folder: Path) -> tuple[Federation, dict[str, Any]]:
    """The clients and their examples, and the resolved [clients] section."""
    name, wanted = config.data.name, config.clients
    path = None if config.data.path is None else _resolve(config.data.path, folder)
    if name not in datasets.NAMES:
        name = str(_resolve(name, folder))
    data = datasets.load(name, path, seed=wanted.seed)
    kind = wanted.partition or ("iid" if data.client is None else "natural")
    count = wanted.count
    if count is None and kind != "natural":
        count = 100
    own = {key: value for key in ("concentration", "shards") if (value := getattr(wanted, key)) is not None}
    client, clients = datasets.partition(data, kind, count=count, q=wanted.q, seed=wanted.seed, **own)
    federation = Federation(data.x, data.y, client, data.test_x, data.test_y, data.classes, clients)
    resolved: dict[str, Any] = {"partition": kind, "count": federation.n}
    if kind == "q":
        resolved["q"] = 0.5 if wanted.q is None else wanted.q
    return federation, resolved


def _resolve(path: str, folder: Path) -> Path:
    return folder / Path(path).expanduser()


def base_algorithm(section: Algorithm, folder: Path, classes: int, lanes: int = 1) -> BaseAlgorithm:
    """The base algorithm that a configuration names; this runs the user's own file, where it names one."""
    from fedquorum.training.plain import Plain

    if section.name != "fedavg":
        own = _own(section.name, "algorithm.name", folder)
        if not hasattr(own, "trainer"):
            return Plain(own) if section.time_limit is None else Plain(own, section.time_limit)
    if section.time_limit is not None:
        raise InputError("'algorithm.time_limit' is for a plain function of your own; FedAvg and trainers have none")
    if section.name != "fedavg":
        return own  # type: ignore[no-any-return]
    from fedquorum.training import models
    from fedquorum.training.fedavg import FedAvg

    if section.model in MODELS:
        model = getattr(models, section.model)(classes)
    else:
        model = _own(section.model, "algorithm.model", folder)
        if not hasattr(model, "apply"):
            try:
                model = model(classes)
            except Exception as error:
                raise InputError(
                    f"'algorithm.model' = {section.model}: no model for {classes} classes: {type(error).__name__}: {error}"
                ) from None
    return FedAvg(
        model,
        rounds=section.rounds,
        local_steps=section.local_steps,
        batch_size=section.batch_size,
        learning_rate=section.learning_rate,
        server_rate=section.server_rate,
        aggregation=section.aggregation,
        lanes=lanes,
    )


def code_of(section: Algorithm, folder: Path) -> str:
    """The SHA-256 of the user's own file that a configuration names; nothing where it names none."""
    if section.name != "fedavg":
        return _own_file(section.name, "algorithm.name", folder)[2]
    return "" if section.model in MODELS else _own_file(section.model, "algorithm.model", folder)[2]


def _own_file(reference: str, key: str, folder: Path) -> tuple[Path, str, str]:
    """FILE and NAME of "FILE.py:NAME", and the file's SHA-256."""
    file, colon, name = reference.rpartition(":")
    if not colon or not file.endswith(".py"):
        known = ", ".join(MODELS) if key == "algorithm.model" else "fedavg"
        raise InputError(f"'{key}' = {reference}: unknown; there are {known}, or FILE.py:NAME of your own")
    path = _resolve(file, folder)
    try:
        return path, name, hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise InputError(f"'{key}' = {reference}: {path} cannot be read: {error.strerror}") from None


def _own(reference: str, key: str, folder: Path) -> Any:
    """The object that "FILE.py:NAME" names. Workers get it by value, so the file need not be on their path."""
    import sys

    import cloudpickle

    path, name, _ = _own_file(reference, key, folder)
    spec = importlib.util.spec_from_file_location(f"fedquorum_user_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise InputError(f"'{key}' = {reference}: {path} fails to load: {type(error).__name__}: {error}") from None
    cloudpickle.register_pickle_by_value(module)
    if not hasattr(module, name):
        raise InputError(f"'{key}' = {reference}: {path} has no {name!r}")
    return getattr(module, name)
