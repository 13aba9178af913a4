"""Write random_vectors.txt: what JAX's default generator gives, for tests/api/test_random.py.

In: the expressions already in the file, evaluated with jax.random. Out: the file again, a line an expression:
expression, dtype, dims, bytes in hex. Run where JAX is installed: `python tests/api/make_random_vectors.py`.
"""
from pathlib import Path

import jax
import numpy as np

VECTORS = Path(__file__).with_name("random_vectors.txt")


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    names = {**vars(jax.random), "np": np, "k": jax.random.PRNGKey(42), "key": jax.random.PRNGKey}
    rows = []
    for row in VECTORS.read_text().splitlines():
        expression = row.split("\t")[0]
        value = np.asarray(eval(expression, names))
        rows.append(f"{expression}\t{value.dtype}\t{','.join(map(str, value.shape))}\t{value.tobytes().hex()}\n")
    VECTORS.write_text("".join(rows))


if __name__ == "__main__":
    main()
