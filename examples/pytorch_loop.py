"""A PyTorch training loop as the base algorithm: FedAvg as one would write it by hand.

    pip install torch
    python examples/pytorch_loop.py

or from a configuration: `algorithm.name = "examples/pytorch_loop.py:fit"`.
"""

import numpy as np
import torch

import fedquorum as fq
from fedquorum.datasets import load, partition

ROUNDS, LOCAL_STEPS, BATCH, RATE = 20, 5, 16, 0.5


def fit(clients, seed):
    """Learn from the k clients of one subsample, [(x, y), ...]; return the function that predicts labels."""
    torch.manual_seed(seed)  # the model must be a function of its clients and this seed alone
    torch.set_num_threads(1)  # one worker process per core does the rest
    shards = [(torch.from_numpy(x), torch.from_numpy(y).long()) for x, y in clients]
    total = sum(len(y) for _, y in shards)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    for _ in range(ROUNDS):
        w = {name: value.clone() for name, value in model.state_dict().items()}
        average = {name: torch.zeros_like(value) for name, value in w.items()}
        for x, y in shards:
            model.load_state_dict(w)
            optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
            for _ in range(LOCAL_STEPS):
                batch = torch.randint(len(y), (BATCH,))
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
                optimizer.step()
            for name, value in model.state_dict().items():
                average[name] += value * (len(y) / total)
        model.load_state_dict(average)

    def predict(x: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return model(torch.from_numpy(x)).argmax(dim=1).numpy()

    return predict


def main(count=300):
    """Certify the votes of 300 PyTorch models, each from 5 of 100 clients."""
    digits = load("digits")
    client, clients = partition(digits, "iid", count=100)
    federation = fq.Federation(digits.x, digits.y, client, digits.test_x, digits.test_y, digits.classes, clients)
    subsamples = fq.draw(federation.n, k=5, count=count, design="independent", seed=1)
    votes = fq.train(federation, fit, subsamples)
    certificate = fq.certify(votes, "ideal", alpha=0.001)
    print(certificate.statement)
    for m, accuracy in enumerate(certificate.accuracy(federation.test_y)[:12]):
        print(f"CA@{m} = {accuracy:.3f}")
    return certificate


if __name__ == "__main__":
    main()
