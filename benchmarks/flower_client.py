"""Flower's ClientApp. It has a file of its own so that Flower's actors import it, and keep what it caches."""

from __future__ import annotations

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from jobs import JOBS
from pytorch_training import client

app = ClientApp()


@app.train()
def train(message: Message, context: Context) -> Message:
    config = message.content["config"]
    job = JOBS[str(config["job"])]
    model, learn = client(job.name, str(config["memory-format"]))
    arrays = message.content["arrays"].to_torch_state_dict()
    w = learn(int(context.node_config["partition-id"]), [torch.as_tensor(array) for array in arrays.values()])
    names = [name for name, _ in model.named_parameters()]
    content = RecordDict(
        {
            "arrays": ArrayRecord(dict(zip(names, w, strict=True))),
            "metrics": MetricRecord({"num-examples": job.rows}),
        }
    )
    return Message(content=content, reply_to=message)
