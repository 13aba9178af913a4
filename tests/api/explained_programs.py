"""Functions for tests/api/test_explanation.py, whose page must hold this: </script><b>&amp;"'."""

import numpy as np

import metaphrase as mp


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))  # a comment with <i>

    return e / e.sum(axis=-1, keepdims=True)


@mp.export("f64[n]", "f32[n]")
def halved(x):
    s = 0.0
    for i in range(len(x)):
        s = s * 0.5 + x[i]
    return s


def doubled(y):
    z = np.tanh(y)
    return z * 2.0


def solved(X, W, K):
    hidden = doubled(X @ W)
    if np.sum(hidden) < 0.0:
        raise ValueError("</script><b>not bold</b> & 'quoted'")
    print("<i>", hidden[0, 0])
    return np.linalg.solve(K, hidden.T)


def period(e, M):
    E = M
    while abs(E - e * np.sin(E) - M) > 1e-12:
        E -= (E - e * np.sin(E) - M) / (1 - e * np.cos(E))
    return E


def swung(x, v, n):
    for _ in range(n):
        v = v - 0.01 * np.sin(x)
        x = x + 0.01 * v
    return x


def priced(z, s0, k):
    total = 0.0
    for i in range(z.shape[0]):
        s = s0
        for t in range(z.shape[1]):
            s *= np.exp(0.1 * z[i, t])
        total += max(s - k, 0.0)
    return total
