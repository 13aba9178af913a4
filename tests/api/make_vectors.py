"""Write *_vectors.txt: what JAX gives, for tests that must not need JAX.

In: the expressions already in a file, evaluated with jax.random, jax.nn and jax.lax. Out: the file again, a
line an expression: expression, dtype, dims, bytes in hex. Run where JAX is installed: `python
tests/api/make_vectors.py`.
"""

from pathlib import Path

import jax
import numpy as np


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    names = {
        **vars(jax.random),
        "np": np,
        "nn": jax.nn,
        "lax": jax.lax,
        "k": jax.random.PRNGKey(42),
        "key": jax.random.PRNGKey,
        "x": np.linspace(-4.0, 4.0, 24).reshape(4, 6),
        "i": np.arange(24).reshape(4, 6),
    }
    for path in Path(__file__).parent.glob("*_vectors.txt"):
        rows = []
        for row in path.read_text().splitlines():
            expression = row.split("\t")[0]
            value = np.asarray(eval(expression, names))
            rows.append(f"{expression}\t{value.dtype}\t{','.join(map(str, value.shape))}\t{value.tobytes().hex()}\n")
        path.write_text("".join(rows))


if __name__ == "__main__":
    main()
