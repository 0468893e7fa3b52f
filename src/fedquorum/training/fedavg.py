"""FedAvg: what Algorithm 1 is asked to do, and the trainer that does it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fedquorum.errors import InputError
from fedquorum.training.algorithm import Learned, Trainer, failed

if TYPE_CHECKING:
    import jax

    from fedquorum.federation import Federation

AGGREGATIONS = ("mean",)


@dataclass(frozen=True)
class FedAvg:
    """Federated averaging (Algorithm 1), with the sign put right: each round, w <- w + server_rate * Agg(g).

    The clients of the subsample start from w, take `local_steps` steps on batches of `batch_size` of their own rows
    (uniform, with replacement), and send g_i = w_i - w; Agg is the mean weighted by how many rows each client holds.
    `model` is any object with `init(key, x)` and `apply(parameters, x)`; `optimizer` an Optax transformation, started
    afresh in each round (by default plain SGD at `learning_rate`). `lanes` is how many clients train side by side:
    1 on a CPU, where one client's working set should stay in the cache; hundreds on a GPU. Several devices take a group
    of lanes each.

    >>> from fedquorum.federation import Federation
    >>> from fedquorum.training.models import linear
    >>> x, y = np.eye(2, dtype=np.float32)[[0, 1] * 4], np.array([0, 1] * 4)
    >>> f = Federation(x, y, client=[0, 0, 1, 1, 2, 2, 3, 3], test_x=x[:2])
    >>> train = FedAvg(linear(classes=2), rounds=20, learning_rate=0.5).trainer(f)
    >>> [model.labels.tolist() for model in train(np.array([[0, 1], [1, 3]]), [11, 12])]
    [[0, 1], [0, 1]]
    """

    model: Any
    rounds: int = 60
    local_steps: int = 5
    batch_size: int = 32
    learning_rate: float = 0.05
    server_rate: float = 1.0
    aggregation: str = "mean"
    optimizer: Any = None
    lanes: int = 1

    def __post_init__(self) -> None:
        for name in ("rounds", "local_steps", "batch_size", "lanes"):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
                raise InputError(f"{name} is {value!r}; it must be a whole number of at least 1")
        for name in ("learning_rate", "server_rate"):
            value = getattr(self, name)
            if not isinstance(value, (int, float, np.number)) or not (math.isfinite(value) and value > 0):
                raise InputError(f"{name} is {value!r}; it must be a positive number")
        if self.aggregation not in AGGREGATIONS:
            raise InputError(f"aggregation is {self.aggregation!r}; it must be one of {', '.join(AGGREGATIONS)}")
        if not (callable(getattr(self.model, "init", None)) and callable(getattr(self.model, "apply", None))):
            raise InputError(f"model is {self.model!r}; it needs init(key, x) and apply(parameters, x)")
        if self.optimizer is not None and not hasattr(self.optimizer, "update"):
            raise InputError(f"optimizer is {self.optimizer!r}; it must be an Optax gradient transformation")

    def local_optimizer(self) -> Any:
        """The Optax transformation that clients use."""
        import optax  # type: ignore[import-untyped]

        return optax.sgd(self.learning_rate) if self.optimizer is None else self.optimizer

    def trainer(self, federation: Federation) -> Trainer:
        """Put the data on every device and prepare the two compiled functions (learn, predict), once per process."""
        import jax

        from fedquorum.training import aggregation, rounds
        from fedquorum.training.compiling import compiler_options

        # device_put takes an aligned array of the CPU's memory (a mapped file, for one) as it is, without a copy
        arrays = federation.x, np.asarray(federation.y, dtype=np.int32), federation.test_x
        data = [tuple(jax.device_put(np.asarray(array), device) for array in arrays) for device in jax.devices()]
        self._check_model(federation.x.shape[1:], int(federation.classes or 0))
        # lanes beyond the k clients of one model go to further models
        learn = partial(rounds.learn, self, getattr(aggregation, self.aggregation))
        compiled = partial(jax.jit, compiler_options=compiler_options())
        learn_one = compiled(learn)
        learn_many = compiled(jax.vmap(learn, in_axes=(None, None, 0, 0, 0, 0)))
        predict = compiled(partial(rounds.predict, self.model))

        def begin(members: np.ndarray, halves: np.ndarray, group: int, x: jax.Array, y: jax.Array) -> list[Any]:
            if group == 1:
                return [learn_one(x, y, *(part[0] for part in addresses(federation, members)), halves[0])]
            # one compiled size: the last, smaller group is filled up with copies of its first model
            filled = np.resize(np.arange(len(members)), group)
            stacked = learn_many(x, y, *addresses(federation, members[filled]), halves[filled])
            return [jax.tree.map(lambda leaf, i=i: leaf[i], stacked) for i in range(len(members))]

        def end(w: Any, member: np.ndarray, test_x: jax.Array) -> Learned:
            if federation.isolated[member].all():
                return failed(federation, "every client of the subsample is isolated")
            parameters = flat(w)
            if not all(np.isfinite(leaf).all() for leaf in parameters.values()):
                return failed(federation, "it diverged: a parameter is not a finite number", parameters)
            return Learned(np.asarray(predict(w, test_x)), parameters)

        def train(subsamples: np.ndarray, seeds: Sequence[int]) -> Iterator[Learned]:
            subsamples = np.sort(np.asarray(subsamples, dtype=np.int64), axis=1)
            if len(subsamples) != len(seeds):
                raise InputError(f"there are {len(subsamples)} subsamples but {len(seeds)} seeds")
            halves = np.array([divmod(int(seed) % 2**64, 2**32) for seed in seeds], dtype=np.uint32)
            group = max(1, self.lanes // max(1, subsamples.shape[1]))
            groups = [slice(first, first + group) for first in range(0, len(subsamples), group)]
            # a group at a time for each device: all of them are begun before the first is waited for
            for wave in range(0, len(groups), len(data)):
                begun = [
                    (begin(subsamples[those], halves[those], group, x, y), subsamples[those], test_x)
                    for those, (x, y, test_x) in zip(groups[wave : wave + len(data)], data, strict=False)
                ]
                for models, members, test_x in begun:
                    for w, member in zip(models, members, strict=True):
                        yield end(w, member, test_x)

        return train

    def _check_model(self, shape: tuple[int, ...], classes: int) -> None:
        """A model that does not fit the data is better found before a long run than as N failures."""
        import jax

        def logits(one: Any) -> Any:
            return self.model.apply(self.model.init(jax.random.key(0), one), one)

        try:
            found = jax.eval_shape(logits, np.zeros((1, *shape), np.float32)).shape
        except InputError:
            raise
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            raise InputError(f"the model cannot take one input of shape {shape}: {reason}") from error
        if found != (1, classes):
            raise InputError(f"the model gives one input logits of shape {found}; {(1, classes)} is needed")


def addresses(federation: Federation, subsamples: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where the clients' rows start, how many there are, and each client's share of its subsample's rows (s, k).

    An isolated client's share is 0.
    """
    starts, sizes = (
        federation.offsets[subsamples],
        np.diff(federation.offsets)[subsamples],
    )
    held = np.where(federation.isolated[subsamples], 0, sizes)
    shares = held / np.maximum(held.sum(axis=1, keepdims=True), 1)
    return starts.astype(np.int32), sizes.astype(np.int32), shares.astype(np.float32)


def flat(w: Any) -> dict[str, np.ndarray]:
    """A tree of parameters as "layer/name" -> array."""
    import jax

    leaves, _ = jax.tree_util.tree_flatten_with_path(w)
    return {
        "/".join(jax.tree_util.keystr((part,), simple=True) for part in path): np.asarray(leaf) for path, leaf in leaves
    }
