"""Train a two-layer network on 1,797 real handwritten digits, written as plain NumPy.

In: scikit-learn's bundled UCI digits (8x8 images). Out: the test accuracy, and the time of a training step
beside the same step written in NumPy by hand. Run: `python examples/digits.py [--device gpu]`
(`--size`: how many epochs).
"""

import time

import numpy as np
from sklearn.datasets import load_digits
from where import chosen, placed

import metaphrase as mp
from metaphrase import random, tree

HIDDEN, BATCH, RATE = 128, 64, 2e-3


def predict(params, images):
    hidden = np.maximum(images @ params["w1"] + params["b1"], 0)
    return hidden @ params["w2"] + params["b2"]


def loss(params, images, labels):
    logits = predict(params, images)
    logits = logits - logits.max(axis=1, keepdims=True)
    log_probability = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return -log_probability[np.arange(len(labels)), labels].mean()


def adam(params, gradients, state, count):
    """One step of Adam over any pytree of parameters."""
    first = tree.map(lambda m, g: 0.9 * m + 0.1 * g, state[0], gradients)
    second = tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, state[1], gradients)
    rate = RATE * np.sqrt(1 - 0.999**count) / (1 - 0.9**count)
    params = tree.map(lambda p, m, v: p - rate * m / (np.sqrt(v) + 1e-8), params, first, second)
    return params, (first, second)


@mp.jit
def step(params, state, count, images, labels):
    value, gradients = mp.value_and_grad(loss)(params, images, labels)
    return *adam(params, gradients, state, count), value


def step_by_hand(params, state, count, images, labels):
    """The same step with the derivative worked out on paper."""
    before = images @ params["w1"] + params["b1"]
    hidden = np.maximum(before, 0)
    logits = hidden @ params["w2"] + params["b2"]
    logits -= logits.max(axis=1, keepdims=True)
    probability = np.exp(logits)
    probability /= probability.sum(axis=1, keepdims=True)
    rows = np.arange(len(labels))
    value = -np.log(probability[rows, labels]).mean()
    probability[rows, labels] -= 1
    probability /= len(labels)
    hidden_bar = (probability @ params["w2"].T) * (before > 0)
    gradients = {
        "w1": images.T @ hidden_bar,
        "b1": hidden_bar.sum(0),
        "w2": hidden.T @ probability,
        "b2": probability.sum(0),
    }
    return *adam(params, gradients, state, count), value


def main(device, epochs):
    digits = load_digits()
    order = np.asarray(random.permutation(random.key(0), len(digits.target)))
    images, labels = digits.data[order] / 16.0, digits.target[order]
    images, test_images, labels, test_labels = images[:1437], images[1437:], labels[:1437], labels[1437:]
    keys = random.split(random.key(1))
    params = {
        "w1": random.normal(keys[0], (64, HIDDEN)) * np.sqrt(2 / 64),
        "b1": np.zeros(HIDDEN),
        "w2": random.normal(keys[1], (HIDDEN, 10)) * np.sqrt(2 / HIDDEN),
        "b2": np.zeros(10),
    }
    state = (tree.map(np.zeros_like, params), tree.map(np.zeros_like, params))

    start = time.perf_counter()
    theirs = step_by_hand(params, state, 1.0, images[:BATCH], labels[:BATCH])
    ours = mp.device_get(step(params, state, 1.0, images[:BATCH], labels[:BATCH]))
    for a, b in zip(tree.leaves(ours), tree.leaves(theirs)):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    print(f"first step, compiled in {time.perf_counter() - start:.2f} s, equals the step by hand")

    seconds, count = {step: [], step_by_hand: []}, 0.0
    for epoch in range(epochs):
        shuffled = random.permutation(random.fold_in(random.key(2), epoch), len(labels))
        for rows in np.split(shuffled[: len(labels) // BATCH * BATCH], len(labels) // BATCH):
            batch, count = (images[rows], labels[rows]), count + 1
            if count % 20 == 0:
                given = mp.device_get((params, state))
                begin = time.perf_counter()
                step_by_hand(*given, count, *batch)
                seconds[step_by_hand].append(time.perf_counter() - begin)
            batch = mp.device_put(batch)
            begin = time.perf_counter()
            params, state, value = step(params, state, count, *batch)
            if device != "cpu":
                value = mp.device_get(value)  # waits: the call may return before the GPU is done
            seconds[step].append(time.perf_counter() - begin)
        done = round(30 * (epoch + 1) / epochs)
        print(f"\r[{'#' * done}{'.' * (30 - done)}] epoch {epoch + 1}, loss {value:.4f}", end="", flush=True)

    accuracy = (predict(mp.device_get(params), test_images).argmax(1) == test_labels).mean()
    ours, by_hand = (1e6 * np.median(seconds[one]) for one in (step, step_by_hand))
    print(f"\ntest accuracy {accuracy:.1%}; a step takes {ours:.0f} us, in NumPy by hand {by_hand:.0f} us")
    assert accuracy >= (0.96 if epochs >= 30 else 0.5)


if __name__ == "__main__":
    device, size = chosen(__doc__, "epochs", 60, emulator=1)
    with placed(device):
        main(device, size)
