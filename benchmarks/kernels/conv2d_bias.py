"""Convolution of a batch of images with many channels, and a bias: one sum an output pixel."""

import numpy as np


def conv2d_bias(images, weights, bias):
    k = weights.shape[0]
    count, height, width, _ = images.shape
    rows, columns = height - k + 1, width - k + 1
    out = np.empty((count, rows, columns, weights.shape[3]))
    for i in range(rows):
        for j in range(columns):
            patch = images[:, i : i + k, j : j + k, :, np.newaxis]
            out[:, i, j, :] = np.sum(patch * weights[np.newaxis], axis=(1, 2, 3))
    return out + bias


def arguments(rng, count, size, k, channels, outputs):
    return (
        rng.standard_normal((count, size, size, channels)),
        rng.standard_normal((k, k, channels, outputs)),
        rng.standard_normal(outputs),
    )


SMALL, LARGE = (2, 6, 3, 2, 4), (8, 24, 3, 3, 16)
DIFFERENTIABLE = (0, 1, 2)
