"""A classifier of three layers on a small batch: two rectified layers, then softmax."""

import numpy as np


def relu(x):
    return np.maximum(x, 0)


def softmax(x):
    weights = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return weights / np.sum(weights, axis=-1, keepdims=True)


def mlp(x, w1, b1, w2, b2, w3, b3):
    x = relu(x @ w1 + b1)
    x = relu(x @ w2 + b2)
    return softmax(x @ w3 + b3)


def arguments(rng, batch, inputs, first, second, outputs):
    sizes = (inputs, first, second, outputs)
    layers = []
    for rows, columns in zip(sizes[:-1], sizes[1:]):
        layers += [rng.standard_normal((rows, columns)) / np.sqrt(rows), rng.standard_normal(columns)]
    return (rng.standard_normal((batch, inputs)), *layers)


SMALL, LARGE = (3, 4, 6, 5, 4), (8, 3, 3000, 2000, 1000)
DIFFERENTIABLE = (0, 1, 2, 3, 4, 5, 6)
