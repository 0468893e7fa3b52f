"""What a client does in PyTorch, eagerly, on one thread: for the PyTorch and the Flower contestants alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import torch
from jobs import JOBS, Job, examples
from torch import Tensor, nn

MEMORY_FORMATS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}


def network(job: Job) -> nn.Module:
    if job.name == "dnn":
        return nn.Sequential(
            nn.Linear(561, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, job.classes)
        )
    return nn.Sequential(
        nn.Conv2d(1, 20, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(20, 50, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(800, 512),
        nn.ReLU(),
        nn.Linear(512, job.classes),
    )


@cache
def client(name: str, memory_format: str) -> tuple[nn.Module, Callable[[int, Sequence[Tensor]], list[Tensor]]]:
    """The network, and the function that trains it: from the global parameters to a client's own.

    Both are made once per process, so that the data stay where they are between rounds.
    """
    torch.set_num_threads(1)
    job, layout = JOBS[name], MEMORY_FORMATS[memory_format]
    images = len(job.shape) == 2
    x, y = (torch.from_numpy(part) for part in examples(job))
    model = network(job)
    if images:
        x = x[:, :, None]
        model = model.to(memory_format=layout)
    parameters = list(model.parameters())
    loss = nn.CrossEntropyLoss()

    def train(number: int, w: Sequence[Tensor]) -> list[Tensor]:
        with torch.no_grad():
            torch._foreach_copy_(parameters, list(w))
        rows = torch.randint(job.rows, (job.local_steps, job.batch_size))
        for batch in rows:
            inputs = x[number, batch]
            if images:
                inputs = (inputs.float() / 255).contiguous(memory_format=layout)
            # A step of SGD without torch.optim, whose fastest variant (fused) takes some percent longer.
            gradient = torch.autograd.grad(loss(model(inputs), y[number, batch]), parameters)
            with torch.no_grad():
                torch._foreach_add_(parameters, gradient, alpha=-job.learning_rate)
        return [parameter.detach().clone() for parameter in parameters]

    return model, train
