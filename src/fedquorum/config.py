"""The configuration of a run: a TOML file, checked key by key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError, field_validator

from fedquorum.certificates import NAMES as CERTIFICATES
from fedquorum.errors import InputError
from fedquorum.subsamples import Design


def _no_switch_or_text(value: Any) -> Any:
    if isinstance(value, (bool, str)):
        raise ValueError("it must be a number")
    return value


Open = Annotated[Decimal, Field(gt=0, lt=1)]
Positive = Annotated[int, Field(ge=1, lt=2**31, strict=True)]
Real = Annotated[float, BeforeValidator(_no_switch_or_text), Field(gt=0, allow_inf_nan=False)]
Seed = Annotated[int, Field(ge=0, strict=True)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class Data(_Section):
    """Where the examples come from: a known data set, or a file of the user's own."""

    name: str
    path: str | None = None


class Clients(_Section):
    """How the examples are dealt to clients; by default as the data says, else evenly to 100."""

    partition: Literal["natural", "q", "iid", "dirichlet", "shards"] | None = None
    count: Positive | None = None
    q: Annotated[float, BeforeValidator(_no_switch_or_text), Field(ge=0, le=1)] | None = None
    concentration: Real | None = None
    shards: Positive | None = None
    seed: Seed = 1


class Subsamples(_Section):
    """How many models, from how many clients each, and how the clients are drawn."""

    size: Positive = 10
    count: Positive | Literal["all"] = 500
    design: Design = "independent"
    seed: Seed | Literal["secret"] | Annotated[str, StringConstraints(pattern="^0x[0-9a-f]{1,32}$")] = "secret"


class Algorithm(_Section):
    """The base federated algorithm and what it needs."""

    name: str = "fedavg"
    model: str = "dnn"
    rounds: Positive = 60
    local_steps: Positive = 5
    batch_size: Positive = 32
    learning_rate: Real = 0.05
    server_rate: Real = 1.0
    aggregation: str = "mean"
    time_limit: Real | None = None
    seed: Seed = 1


class Certify(_Section):
    """Which certificates, and how sure they must be."""

    certificates: tuple[str, ...] = ("ideal", "served", "membership")
    alpha: Open = Decimal("0.001")
    delta: Open = Decimal("0.001")

    @field_validator("certificates")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if not names:
            raise ValueError("at least one certificate is needed")
        for name in names:
            if name not in CERTIFICATES:
                raise ValueError(f"{name!r} is not a certificate; there are {', '.join(CERTIFICATES)}")
        return names


class Output(_Section):
    """What is kept of each model."""

    keep_models: Annotated[bool, Field(strict=True)] = False
    models_per_shard: Positive = 5


class Config(_Section):
    """A whole configuration. Every key has a default but `data.name`."""

    data: Data
    clients: Clients = Clients()
    subsamples: Subsamples = Subsamples()
    algorithm: Algorithm = Algorithm()
    certify: Certify = Certify()
    output: Output = Output()


def presets() -> list[str]:
    """The names of the configurations that come with fedquorum."""
    root = resources.files("fedquorum") / "presets"
    return sorted(_presets_under(root, ""))


def _presets_under(folder: Any, prefix: str) -> list[str]:
    names: list[str] = []
    for entry in folder.iterdir():
        if entry.is_dir():
            names += _presets_under(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".toml"):
            names.append(prefix + entry.name.removesuffix(".toml"))
    return names


def load_config(source: str, changes: Sequence[str] = ()) -> tuple[Config, Path]:
    """Read a preset or a TOML file, with `section.key=value` changes; also the folder its own paths start from.

    >>> config, _ = load_config("digits", ["algorithm.rounds=3", "subsamples.count=7"])
    >>> config.algorithm.rounds, config.subsamples.count
    (3, 7)
    """
    if source.endswith(".toml"):
        try:
            text = Path(source).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{source} cannot be read: {getattr(error, 'strerror', None) or error}") from None
        folder = Path(source).resolve().parent
    elif source in presets():
        text = (resources.files("fedquorum") / "presets" / f"{source}.toml").read_text(encoding="utf-8")
        folder = Path.cwd()
    else:
        raise InputError(
            f"unknown preset {source!r}; there are {', '.join(presets())}, or name a file that ends in .toml"
        )
    try:
        content = tomllib.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{source}: not valid TOML: {error}") from None
    for change in changes:
        _apply(content, change)
    return check_config(content, source), folder


def check_config(content: Mapping[str, Any], source: str) -> Config:
    """Validate a configuration; the error names the first key that is wrong."""
    try:
        return Config.model_validate(content)
    except ValidationError as error:
        # a key of several kinds reports once per kind; for a person it is one mistake
        problems = list({problem["loc"][:2]: problem for problem in reversed(error.errors())}.values())
        others = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise InputError(f"{source}: {_in_words(problems[-1])}{others}") from None


SEVERAL_KINDS = {
    "subsamples.count": 'it must be an integer of at least 1, or "all"',
    "subsamples.seed": 'it must be "secret", an integer of at least 0, or a revealed secret such as "0x1f"',
}


def _in_words(problem: Any) -> str:
    names = [str(part) for part in problem["loc"][:2]]
    key = ".".join(names)
    if problem["type"] == "extra_forbidden":
        section: Any = Config if len(names) == 1 else Config.model_fields[names[0]].annotation
        return f"unknown key '{key}'; known here: {', '.join(section.model_fields)}"
    if problem["type"] == "missing":
        return f"'{key}' is missing"
    message = problem["msg"].removeprefix("Value error, ")
    return f"'{key}' = {problem['input']!s}: {SEVERAL_KINDS.get(key, message[0].lower() + message[1:])}"


def _apply(content: dict[str, Any], change: str) -> None:
    key, equals, value = change.partition("=")
    parts = key.strip().split(".")
    if not equals or len(parts) != 2:
        raise InputError(f"--set {change}: write SECTION.KEY=VALUE, for example --set algorithm.rounds=80")
    try:
        parsed = tomllib.loads(f"value = {value}", parse_float=Decimal)["value"]
        if key.strip() == "subsamples.seed" and re.fullmatch("0x[0-9a-f]{32}", value.strip()):
            parsed = value.strip()  # a revealed secret, which TOML would read as a number
    except (ValueError, RecursionError):
        parsed = value  # a bare word is a string
    section = content.setdefault(parts[0], {})
    if not isinstance(section, dict):
        raise InputError(f"--set {change}: '{parts[0]}' is not a section")
    section[parts[1]] = parsed
