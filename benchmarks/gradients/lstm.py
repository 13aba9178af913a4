"""The log likelihood of a sequence under a small LSTM, and its gradient: ADBench's LSTM.

    python benchmarks/gradients/lstm.py [--large]

Each gate weighs each feature by itself. Parameters: `main` (2 layers, 4 b): in pairs of rows, weights and biases
of the four gates of a layer; `extra` (3, b): weights of the input, weights and biases of the prediction. `state` (2
layers, b): in pairs of rows, hidden and cell of a layer. `sequence` (characters, b).
"""

from __future__ import annotations

import argparse
import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402
from rows import Row, compiled, pointer, report  # noqa: E402


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def layer(weight, bias, hidden, cell, x):
    b = len(x)
    forget = sigmoid(x * weight[:b] + bias[:b])
    ingate = sigmoid(hidden * weight[b : 2 * b] + bias[b : 2 * b])
    outgate = sigmoid(x * weight[2 * b : 3 * b] + bias[2 * b : 3 * b])
    change = np.tanh(hidden * weight[3 * b :] + bias[3 * b :])
    cell = cell * forget + ingate * change
    return outgate * np.tanh(cell), cell


def arrays(main, extra, state, sequence):
    state = state.copy()
    total = 0.0
    for t in range(len(sequence) - 1):
        x = sequence[t] * extra[0]
        for i in range(0, len(state), 2):
            state[i], state[i + 1] = layer(main[i], main[i + 1], state[i], state[i + 1], x)
            x = state[i]
        prediction = x * extra[1] + extra[2]
        prediction = prediction - np.log(np.exp(prediction).sum() + 2)
        total += np.sum(sequence[t + 1] * prediction)
    return -total / ((len(sequence) - 1) * sequence.shape[1])


def loops(main, extra, state, sequence):
    n, b = sequence.shape
    layers = len(state) // 2
    state = state.copy()
    x = np.zeros(b)
    prediction = np.zeros(b)
    total = 0.0
    for t in range(n - 1):
        for j in range(b):
            x[j] = sequence[t, j] * extra[0, j]
        for i in range(layers):
            for j in range(b):
                forget = sigmoid(x[j] * main[2 * i, j] + main[2 * i + 1, j])
                ingate = sigmoid(state[2 * i, j] * main[2 * i, b + j] + main[2 * i + 1, b + j])
                outgate = sigmoid(x[j] * main[2 * i, 2 * b + j] + main[2 * i + 1, 2 * b + j])
                change = np.tanh(state[2 * i, j] * main[2 * i, 3 * b + j] + main[2 * i + 1, 3 * b + j])
                state[2 * i + 1, j] = state[2 * i + 1, j] * forget + ingate * change
                state[2 * i, j] = outgate * np.tanh(state[2 * i + 1, j])
                x[j] = state[2 * i, j]
        weight = 0.0
        for j in range(b):
            prediction[j] = x[j] * extra[1, j] + extra[2, j]
            weight += np.exp(prediction[j])
        largest = np.log(weight + 2)
        for j in range(b):
            total += sequence[t + 1, j] * (prediction[j] - largest)
    return -total / ((n - 1) * b)


TEXT = r"""
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static void layer(long b, const double *restrict w, const double *restrict bias, double *restrict hidden,
                  double *restrict cell, const double *restrict x) {
    for (long j = 0; j < b; j++) {
        double forget = sigmoid(x[j] * w[j] + bias[j]);
        double ingate = sigmoid(hidden[j] * w[b + j] + bias[b + j]);
        double outgate = sigmoid(x[j] * w[2 * b + j] + bias[2 * b + j]);
        double change = tanh(hidden[j] * w[3 * b + j] + bias[3 * b + j]);
        cell[j] = cell[j] * forget + ingate * change;
        hidden[j] = outgate * tanh(cell[j]);
    }
}

double lstm(long layers, long n, long b, const double *restrict main, const double *restrict extra,
            const double *restrict given, const double *restrict sequence) {
    double *state = malloc(sizeof(double) * (2 * layers * b + 2 * b));
    double *first = state + 2 * layers * b, *prediction = first + b, total = 0;
    memcpy(state, given, sizeof(double) * 2 * layers * b);
    for (long t = 0; t < n - 1; t++) {
        const double *x = first, *next = sequence + (t + 1) * b;
        for (long j = 0; j < b; j++) first[j] = sequence[t * b + j] * extra[j];
        for (long i = 0; i < layers; i++) {
            layer(b, main + 8 * i * b, main + (8 * i + 4) * b, state + 2 * i * b, state + (2 * i + 1) * b, x);
            x = state + 2 * i * b;
        }
        double sum = 0;
        for (long j = 0; j < b; j++) prediction[j] = x[j] * extra[b + j] + extra[2 * b + j];
        for (long j = 0; j < b; j++) sum += exp(prediction[j]);
        sum = log(sum + 2);
        for (long j = 0; j < b; j++) total += next[j] * (prediction[j] - sum);
    }
    free(state);
    return -total / ((n - 1) * b);
}
"""


def by_hand(function):
    from ctypes import c_long

    def objective(main, extra, state, sequence):
        n, b = sequence.shape
        sizes = c_long(len(state) // 2), c_long(n), c_long(b)
        return function(*sizes, *map(pointer, (main, extra, state, sequence)))

    return objective


def row(n: int, b: int = 14, layers: int = 2) -> Row:
    rng = np.random.default_rng(0)
    main, extra = rng.uniform(-1, 1, (2 * layers, 4 * b)), rng.uniform(-1, 1, (3, b))
    state = rng.uniform(-1, 1, (2 * layers, b))
    sequence = (rng.random((n, b)) < 0.5).astype(float)  # the bits of characters
    objectives = {label: by_hand(f) for label, f in compiled(TEXT, "lstm").items()}
    arguments = main, extra, state, sequence
    return Row("LSTM", f"{n} characters", arguments, objectives, {"arrays": arrays, "loops": loops}, (0, 1))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--form", action="append", default=[])
    options = parser.parse_args()
    for n in [300, 1024] + ([4096] if options.large else []):
        report(row(n), options.form)


if __name__ == "__main__":
    main()
