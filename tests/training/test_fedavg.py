"""FedAvg against its plain-loop twin, and the promises that every later room builds on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from fedquorum.errors import InputError
from fedquorum.federation import Federation
from fedquorum.training import rounds
from fedquorum.training.algorithm import Learned, model_seed
from fedquorum.training.fedavg import FedAvg, flat
from fedquorum.training.models import Model, cnn, dnn, linear

SIZES = (7, 40, 23, 12)


def federation(
    sizes: tuple[int, ...] = SIZES,
    shape: tuple[int, ...] = (9,),
    classes: int = 4,
    **changes: Any,
) -> Federation:
    rng = np.random.default_rng(5)
    centres = rng.normal(size=(classes, *shape)).astype(np.float32)
    y = rng.integers(classes, size=sum(sizes))
    x = centres[y] + 0.5 * rng.normal(size=(sum(sizes), *shape)).astype(np.float32)
    test_y = rng.integers(classes, size=31)
    content = {
        "x": x,
        "y": y,
        "client": np.repeat(np.arange(len(sizes)), sizes),
        "test_x": centres[test_y],
        "test_y": test_y,
    }
    return Federation(**(content | {"classes": classes} | changes))


def train(algorithm: FedAvg, data: Federation, subsamples: Any, seeds: Any = None) -> list[Learned]:
    seeds = [model_seed(1, s) for s in subsamples] if seeds is None else seeds
    return list(algorithm.trainer(data)(np.array(subsamples), seeds))


# The twin: Algorithm 1 in plain loops and NumPy, with the gradient written out by hand.


def twin_gradient(w: dict[str, np.ndarray], x: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    depth = len(w) // 2
    h = [x]
    for i in range(depth):
        z = h[-1] @ w[f"dense{i}/w"] + w[f"dense{i}/b"]
        h.append(z if i == depth - 1 else np.maximum(z, 0))
    p = np.exp(h[-1] - h[-1].max(axis=1, keepdims=True))
    delta = p / p.sum(axis=1, keepdims=True)
    delta[np.arange(len(y)), y] -= 1
    delta /= len(y)
    gradient = {}
    for i in reversed(range(depth)):
        gradient[f"dense{i}/w"], gradient[f"dense{i}/b"] = (
            h[i].T @ delta,
            delta.sum(axis=0),
        )
        delta = (delta @ w[f"dense{i}/w"].T) * (h[i] > 0)
    return gradient


def twin(algorithm: FedAvg, data: Federation, subsample: list[int], seed: int) -> dict[str, np.ndarray]:
    initial, stream = rounds.keys(np.array(divmod(seed, 2**32), dtype=np.uint32))
    parameters = algorithm.model.init(initial, jnp.zeros((1, *data.x.shape[1:])))
    w = {name: value.astype(np.float64) for name, value in flat(parameters).items()}
    sizes = np.array([len(data.examples(i)[1]) for i in subsample])
    for number in range(algorithm.rounds):
        rows = np.asarray(rounds.batches(stream, number, sizes, algorithm.local_steps, algorithm.batch_size))
        g = []
        for position, client in enumerate(subsample):
            x, y = data.examples(client)
            w_i = dict(w)
            for step in range(algorithm.local_steps):
                batch = rows[position, step]
                gradient = twin_gradient(w_i, x[batch].astype(np.float64), y[batch])
                w_i = {name: w_i[name] - algorithm.learning_rate * gradient[name] for name in w}
            g.append({name: w_i[name] - w[name] for name in w})
        held = [0 if data.isolated[c] else len(data.examples(c)[1]) for c in subsample]
        for name, before in w.items():
            mean = sum(n * g_i[name] for n, g_i in zip(held, g, strict=True)) / sum(held)
            w[name] = before + algorithm.server_rate * mean
    return w


@pytest.mark.parametrize("model", [linear(4), dnn(4, hidden=(11, 6))], ids=lambda model: model.name)
@pytest.mark.parametrize("server_rate", [1.0, 0.7])
def test_it_does_what_its_plain_loop_twin_does(model: Model, server_rate: float) -> None:
    data = federation()
    algorithm = FedAvg(
        model,
        rounds=6,
        local_steps=3,
        batch_size=8,
        learning_rate=0.1,
        server_rate=server_rate,
    )
    for subsample in ([0, 1, 3], [1, 2, 3]):
        seed = model_seed(3, subsample)
        learned = train(algorithm, data, [subsample], [seed])[0]
        expected = twin(algorithm, data, subsample, seed)
        assert learned.parameters is not None and learned.parameters.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_allclose(learned.parameters[name], value, atol=1e-5, rtol=1e-5)


def test_it_learns_what_can_be_learnt() -> None:
    data = federation()
    learned = train(FedAvg(linear(4), rounds=40, learning_rate=0.2), data, [[1, 2]])[0]
    assert (learned.labels == data.test_y).mean() > 0.9


def test_batches_are_uniform_within_each_clients_rows() -> None:
    sizes = np.array([3, 1000])
    rows = np.asarray(rounds.batches(jax.random.key(1), 0, sizes, 100, 60))
    counts = np.bincount(rows[0].ravel(), minlength=3)
    assert len(counts) == 3 and abs(counts - 2000).max() < 5 * np.sqrt(6000 * 2 / 9)
    assert rows[1].min() == 0 and rows[1].max() == 999
    assert not np.array_equal(rows, np.asarray(rounds.batches(jax.random.key(1), 1, sizes, 100, 60)))


def test_images_as_bytes_are_the_same_as_their_values_divided_by_255() -> None:
    rng = np.random.default_rng(0)
    pixels, test = (
        rng.integers(256, size=(102, 9), dtype=np.uint8),
        rng.integers(256, size=(31, 9), dtype=np.uint8),
    )
    y, client = rng.integers(4, size=102), np.arange(102) % 4
    algorithm = FedAvg(dnn(4, (8,)), rounds=5)
    as_bytes = federation(x=pixels, y=y, client=client, test_x=test)
    as_floats = federation(
        x=pixels.astype(np.float32) / 255,
        y=y,
        client=client,
        test_x=test.astype(np.float32) / 255,
    )
    a, b = (train(algorithm, data, [[0, 2]])[0] for data in (as_bytes, as_floats))
    for name, value in (a.parameters or {}).items():
        np.testing.assert_allclose((b.parameters or {})[name], value, atol=1e-5)
    assert np.array_equal(a.labels, b.labels)


def test_any_optax_transformation_serves_as_the_local_optimiser() -> None:
    data = federation()
    by_default = train(FedAvg(linear(4), rounds=3, learning_rate=0.1), data, [[0, 1]])[0]
    by_hand = train(FedAvg(linear(4), rounds=3, optimizer=optax.sgd(0.1)), data, [[0, 1]])[0]
    with_momentum = train(
        FedAvg(linear(4), rounds=3, optimizer=optax.sgd(0.1, momentum=0.9)),
        data,
        [[0, 1]],
    )[0]
    assert same(by_default, by_hand) and not same(by_default, with_momentum)


def test_any_pair_of_init_and_apply_serves_as_a_model() -> None:
    class Constant:
        def init(self, key: jax.Array, x: jax.Array) -> list[jax.Array]:
            return [jnp.zeros(4)]

        def apply(self, parameters: list[jax.Array], x: jax.Array) -> jax.Array:
            return jnp.broadcast_to(parameters[0], (len(x), 4))

    data = federation(y=np.full(sum(SIZES), 2))
    learned = train(FedAvg(Constant(), rounds=2), data, [[0, 1]])[0]
    assert learned.parameters is not None and learned.parameters.keys() == {"0"} and (learned.labels == 2).all()


# Care 5: what a model may depend on.


def same(a: Learned, b: Learned) -> bool:
    assert a.parameters is not None and b.parameters is not None and a.parameters.keys() == b.parameters.keys()
    return a.labels.tobytes() == b.labels.tobytes() and all(
        value.tobytes() == b.parameters[name].tobytes() for name, value in a.parameters.items()
    )


INDEPENDENCE = """
import numpy as np
from fedquorum.federation import Federation
from fedquorum.training.fedavg import FedAvg
from fedquorum.training.models import cnn, dnn

def learn(model, shape, kind, change):
    rng = np.random.default_rng(5)
    parts = []
    for name in ("a", "b", "c", "d"):
        y = rng.integers(4, size=30)
        x = rng.integers(256, size=(30, *shape)).astype(kind)
        if name == "c":
            x, y, name = change(x, y, name)
        parts.append((x, y, [name] * len(y)))
    x, y, client = (np.concatenate(part) for part in zip(*parts))
    data = Federation(x, y, client, test_x=rng.integers(256, size=(10, *shape)).astype(kind), classes=4)
    train = FedAvg(model, rounds=3, batch_size=16, learning_rate=1e-3).trainer(data)
    [learned] = train(np.array([[0, 1, 3]]), [2**63 + 12345])
    return learned.labels.tobytes() + b"".join(value.tobytes() for value in learned.parameters.values())

changes = {
    "nothing": lambda x, y, name: (x, y, name),
    "labels, row order and spelling": lambda x, y, name: (x[::-1], (y[::-1] + 1) % 4, "C, the third"),
    "larger size": lambda x, y, name: (np.concatenate([x] * 40), np.concatenate([y] * 40), name),
    "single row": lambda x, y, name: (x[:1], y[:1], name),
}
for model, shape, kind, tried in (
    (dnn(4, (24, 24)), (37,), np.float32, changes),
    (cnn(4), (20, 20), np.uint8, ("nothing", "larger size")),
):
    learnt = {name: learn(model, shape, kind, changes[name]) for name in tried}
    different = [name for name in tried if learnt[name] != learnt["nothing"]]
    assert not different, f"{model.name} saw a stranger's {different}"
print("independent")
"""


def in_one_thread(script: str) -> str:
    """Bytes are compared in a process whose XLA pool has one thread, as the engine's workers have."""
    environment = os.environ | {"PJRT_NPROC": "1", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_client_outside_the_subsample_changes_no_byte_of_the_model() -> None:
    assert in_one_thread(INDEPENDENCE) == "independent"


COMPANIONS = """
import numpy as np
from fedquorum.federation import Federation
from fedquorum.training.fedavg import FedAvg
from fedquorum.training.models import dnn

rng = np.random.default_rng(5)
x, test_x = rng.normal(size=(90, 37)), rng.normal(size=(9, 37))
data = Federation(x, rng.integers(4, size=90), np.arange(90) % 6, test_x=test_x)
subsamples, seeds = np.array([[0, 1, 3], [1, 2, 5], [2, 3, 4], [0, 4, 5], [1, 3, 4]]), [5, 6, 7, 8, 9]
def learn(order):
    algorithm = FedAvg(dnn(4, (24, 24)), rounds=3, lanes=LANES)
    learned = algorithm.trainer(data)(subsamples[order], [seeds[i] for i in order])
    return {i: [value.tobytes() for value in model.parameters.values()] for i, model in zip(order, learned)}
first = learn([0, 1, 2, 3, 4])
assert learn([3, 1, 4, 2, 0]) == first, "order"
assert learn([4]) == {4: first[4]}, "alone"
print("same")
"""


@pytest.mark.parametrize("lanes", [1, 3, 7])
def test_a_models_bytes_do_not_depend_on_the_models_trained_beside_it(lanes: int) -> None:
    # with 7 lanes and k = 3, two models are trained side by side, and a lonely one beside its own copy
    assert in_one_thread(COMPANIONS.replace("LANES", str(lanes))) == "same"


DEVICES = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=" + os.environ["DEVICES"]
import jax
import numpy as np
from fedquorum.federation import Federation
from fedquorum.training.fedavg import FedAvg
from fedquorum.training.models import dnn

assert len(jax.devices()) == int(os.environ["DEVICES"])
rng = np.random.default_rng(0)
data = Federation(rng.normal(size=(90, 37)), rng.integers(4, size=90), np.arange(90) % 6, test_x=rng.normal(size=(9, 37)))
subsamples = np.array([[0, 1, 3], [1, 2, 5], [2, 3, 4], [0, 4, 5], [1, 3, 4]])
learned = FedAvg(dnn(4, (24, 24)), rounds=3, lanes=LANES).trainer(data)(subsamples, [5, 6, 7, 8, 9])
print([[value.tolist() for value in model.parameters.values()] for model in learned])
"""


@pytest.mark.parametrize("lanes", [1, 6])
def test_several_devices_learn_what_one_does(lanes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for devices in ("1", "3"):
        monkeypatch.setenv("DEVICES", devices)
        found.append(json.loads(in_one_thread(DEVICES.replace("LANES", str(lanes)))))
    for one, three in zip(*found, strict=True):
        for a, b in zip(one, three, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5)


@pytest.mark.parametrize("lanes", [2, 7])
def test_lanes_learn_the_same_to_the_last_digits(lanes: int) -> None:
    subsamples = [[0, 1, 3], [1, 2, 3], [0, 1, 2]]
    one, many = (train(FedAvg(linear(4), rounds=3, lanes=n), federation(), subsamples) for n in (1, lanes))
    for a, b in zip(one, many, strict=True):
        for name, value in (a.parameters or {}).items():
            np.testing.assert_allclose((b.parameters or {})[name], value, atol=1e-6)
        assert np.array_equal(a.labels, b.labels)


def test_a_model_seed_belongs_to_its_subsample_in_any_order_and_spelling() -> None:
    assert model_seed(1, [3, 1, 2]) == model_seed(1, np.array([1, 2, 3], dtype=np.int16))
    seeds = {model_seed(seed, s) for seed in (0, 1, 12) for s in ([1], [2], [12], [1, 2], [1, 12], [2, 11])}
    assert len(seeds) == 18 and all(0 <= seed < 2**64 for seed in seeds)


def test_both_halves_of_the_seed_matter() -> None:
    data, algorithm = federation(), FedAvg(linear(4), rounds=1)
    a, b, c, again = train(algorithm, data, [[0, 1]] * 4, [1, 1 + 2**32, 2, 1])
    assert same(a, again) and not same(a, b) and not same(a, c)


# Bad data stays inside.


def test_an_isolated_client_teaches_nothing_and_stops_nobody() -> None:
    x = federation().x.copy()
    x[0, 0] = np.nan
    with pytest.warns(UserWarning, match="isolated"):
        data = federation(x=x)
    algorithm = FedAvg(linear(4), rounds=4)
    learned = train(algorithm, data, [[0, 1]])[0]
    expected = twin(algorithm, data, [0, 1], model_seed(1, [0, 1]))
    for name, value in expected.items():
        np.testing.assert_allclose((learned.parameters or {})[name], value, atol=1e-5)
    with pytest.warns(UserWarning, match="isolated"):
        other_labels = federation(
            x=x,
            y=np.where(np.arange(sum(SIZES)) < SIZES[0], 3 - federation().y, federation().y),
        )
    assert same(learned, train(algorithm, other_labels, [[0, 1]])[0])


def test_a_subsample_of_isolated_clients_only_votes_label_0() -> None:
    x = federation().x.copy()
    x[[0, SIZES[0]], 0] = np.nan
    with pytest.warns(UserWarning, match="isolated"):
        data = federation(x=x)
    for lanes in (1, 4):
        lost, learned = train(FedAvg(linear(4), rounds=10, lanes=lanes), data, [[0, 1], [1, 2]])
        assert not lost.labels.any() and lost.failure == "every client of the subsample is isolated"
        assert learned.labels.any() and learned.failure is None


def test_a_model_that_diverged_votes_label_0_and_its_neighbour_is_unharmed() -> None:
    x = federation().x.copy()
    x[0] = 3e38
    data, honest = federation(x=x), federation()
    algorithm = FedAvg(linear(4), rounds=20)
    lost, kept = train(algorithm, data, [[0, 1], [1, 2]])
    assert not lost.labels.any()
    assert same(kept, train(algorithm, honest, [[1, 2]])[0])


@pytest.mark.parametrize("d", [1, 127, 128, 129, 300])
def test_every_chunk_of_the_test_set_is_predicted(d: int) -> None:
    inputs = jax.random.normal(jax.random.key(d), (d, 9))
    model = linear(4)
    w = model.init(jax.random.key(0), inputs)
    assert np.array_equal(rounds.predict(model, w, inputs), np.argmax(model.apply(w, inputs), axis=1))


# Wrong settings.


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rounds": 0}, "rounds is 0"),
        ({"batch_size": 2.5}, "batch_size is 2.5"),
        ({"local_steps": True}, "local_steps is True"),
        ({"lanes": -1}, "lanes is -1"),
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"server_rate": "fast"}, "server_rate is 'fast'"),
        ({"aggregation": "meen"}, "aggregation is 'meen'; it must be one of mean"),
        ({"model": 3}, "model is 3"),
        ({"optimizer": "adam"}, "optimizer is 'adam'"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        FedAvg(**({"model": linear(2)} | settings))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda: linear(3), "logits of shape"),
        (lambda: cnn(4), "cannot take one input of shape"),
    ],
)
def test_a_model_that_does_not_fit_the_data_is_found_before_training(model: Callable[[], Model], message: str) -> None:
    with pytest.raises(InputError, match=message):
        FedAvg(model()).trainer(federation())
