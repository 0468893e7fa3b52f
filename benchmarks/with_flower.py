"""The same FedAvg as Flower's simulation: its own strategy, its Ray backend with a core per client, no evaluation.

Starting the simulation is not counted, nor are its first rounds, in which the actors load their data.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Callable

# Before Flower is imported.
os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
# Ray then takes 127.0.0.1 for the node's address, and its servers listen nowhere else, on Linux too.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"

import ray
from contestant import Unit, serve, timed
from flower_client import app as client_app
from flwr.app import ArrayRecord, ConfigRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from jobs import JOBS, Job
from pytorch_training import network

ROUNDS = {"dnn": 5, "cnn": 2}


def prepare(job: Job, memory_format: str) -> tuple[int, Callable[[float], list[Unit]]]:
    logging.getLogger("flwr").setLevel(logging.ERROR)
    arrays = ArrayRecord(dict(network(job).named_parameters()))
    config = ConfigRecord({"job": job.name, "memory-format": memory_format})
    rounds = ROUNDS[job.name]

    def window(seconds: float) -> list[Unit]:
        units: list[Unit] = []
        server = ServerApp()

        @server.main()
        def main(grid: Grid, context: Context) -> None:
            strategy = FedAvg(fraction_evaluate=0.0, min_train_nodes=job.k, min_available_nodes=job.k)

            def unit() -> float:
                strategy.start(grid, arrays, num_rounds=rounds, train_config=config)
                return rounds * job.k * job.local_steps

            unit()
            units.extend(timed(unit, seconds))

        with tempfile.TemporaryDirectory(prefix="ray-") as folder:
            local = {"include_dashboard": False, "_temp_dir": folder}
            run_simulation(
                server,
                client_app,
                num_supernodes=job.k,
                backend_config={"init_args": local, "client_resources": {"num_cpus": 1, "num_gpus": 0.0}},
            )
            ray.shutdown()  # nothing of it may run while others are timed
        return units

    return sum(array.numpy().size for array in arrays.values()), window


if __name__ == "__main__":
    serve(lambda: prepare(JOBS[sys.argv[1]], sys.argv[2]))
