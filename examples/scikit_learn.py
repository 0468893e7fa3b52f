"""Any scikit-learn estimator as the base algorithm: the clients of a subsample pool their examples.

    python examples/scikit_learn.py

or from a configuration: `algorithm.name = "examples/scikit_learn.py:fit"`.
"""

import numpy as np
from sklearn.linear_model import LogisticRegression

import fedquorum as fq
from fedquorum.datasets import load, partition


def fit(clients, seed):
    """Learn from the k clients of one subsample, [(x, y), ...]; return the function that predicts labels."""
    x = np.concatenate([x for x, _ in clients])
    y = np.concatenate([y for _, y in clients])
    return LogisticRegression(max_iter=200, random_state=seed).fit(x, y).predict


def main(count=300):
    """Certify the votes of 300 logistic regressions, each from 5 of 100 clients."""
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
