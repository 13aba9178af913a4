"""What must hold of every rule of a primitive, given one sample call. Each check raises AssertionError.

In: a Primitive and a Sample. Example: `check_jvp(REGISTRY["sin"], SAMPLES["sin"][0])`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from metaphrase.astpasses.transforms.batch import batch
from metaphrase.astpasses.transforms.jvp import jvp
from metaphrase.astpasses.transforms.split import split
from metaphrase.astpasses.transforms.transpose import transpose
from metaphrase.core.build import Builder
from metaphrase.core.check import check
from metaphrase.core.evaluate import evaluate
from metaphrase.core.ir import Function
from metaphrase.core.native import Composite, Reduce
from metaphrase.core.primitive import Primitive
from metaphrase.core.read import read
from metaphrase.core.relation import Dims
from metaphrase.core.show import same, show
from metaphrase.core.types import c128, f64, is_inexact, substitute_type, type_of
from metaphrase.ops.samples import Sample

LANES = 3


def program(primitive: Primitive, sample: Sample) -> Function:
    """The program that is this one call."""
    with Builder("sample") as builder:
        params = [builder.parameter(f"x{k}", type_of(a)) for k, a in enumerate(sample.args)]
        return builder.function(builder.bind(primitive, tuple(params), sample.attributes))


def check_type(primitive: Primitive, sample: Sample) -> None:
    """The type rule foretells what the NumPy rule gives, to the dtype and the kind of scalar."""
    function = check(program(primitive, sample))
    before = [np.array(a) for a in sample.args]
    outs = evaluate(function, *sample.args)
    for old, arg in zip(before, sample.args):
        np.testing.assert_array_equal(old, arg, err_msg="the NumPy rule wrote into an operand")
    sizes = {
        t.value.name: int(o)
        for t, o in zip(function.result_types, outs)
        if t.value is not None and not isinstance(t.value, int)
    }
    for out, type_ in zip(outs, function.result_types, strict=True):
        assert isinstance(out, np.ndarray if type_.dims else np.generic), f"{primitive} gives a {type(out).__name__}"
        got, want = type_of(out), substitute_type(type_, sizes).plain
        assert got == want, f"{primitive} gives {got}, its type rule {want}"


def check_reads_back(primitive: Primitive, sample: Sample) -> None:
    """read(show(f)) is f."""
    function = program(primitive, sample)
    assert same(read(show(function)), function), show(function)


def _subsets(positions: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All subsets but the empty one; of many positions only single ones and the whole."""
    sizes = range(1, len(positions) + 1) if len(positions) <= 3 else (1, len(positions))
    return itertools.chain.from_iterable(itertools.combinations(positions, n) for n in sizes)


def differentiable(sample: Sample) -> list[int]:
    """Operands in double precision along which derivatives are compared."""
    return [k for k, a in enumerate(sample.args) if np.asarray(a).dtype in (f64, c128)] if sample.smooth else []


def _direction(value: Any, seed: int) -> Any:
    generator = np.random.default_rng(seed)
    made = generator.uniform(-1, 1, np.shape(value))
    if np.asarray(value).dtype.kind == "c":
        made = made + 1j * generator.uniform(-1, 1, np.shape(value))
    return np.asarray(made).astype(np.asarray(value).dtype)[()]


def _differences(function: Function, args: Sequence[Any], dots: dict[int, Any]) -> list[Any]:
    """Directional derivatives of the results, by a five-point central difference."""

    def at(step: float) -> list[Any]:
        return evaluate(function, *(a + step * dots[k] if k in dots else a for k, a in enumerate(args)))

    h = 1e-3
    far, near, back, behind = at(2 * h), at(h), at(-h), at(-2 * h)
    found = []
    for a, b, c, d, t in zip(far, near, back, behind, function.result_types):
        found.append((d - a + 8 * (b - c)) / (12 * h) if is_inexact(t.dtype) else None)
    return found


def close(got: Any, want: Any, tolerance: float, what: str) -> None:
    scale = max(1.0, float(np.max(np.abs(want), initial=0.0)))
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale, err_msg=what)


def check_jvp(primitive: Primitive, sample: Sample) -> None:
    for positions in _subsets(differentiable(sample)):
        jvp_holds(program(primitive, sample), sample.args, positions)


def jvp_holds(function: Function, args: Sequence[Any], positions: Sequence[int]) -> None:
    """The jvp program is well formed, leaves the results alone, its tangents are limits of differences."""
    forward, nonzero = jvp(function, [k in positions for k in range(len(args))])
    check(forward)
    dots = {k: _direction(args[k], k) for k in positions}
    outs = evaluate(forward, *args, *dots.values())
    plain = evaluate(function, *args)
    for got, want in zip(outs, plain):
        np.testing.assert_array_equal(got, want)
    tangents = iter(outs[len(plain) :])
    for want, has in zip(_differences(function, args, dots), nonzero):
        if has:
            got = next(tangents)
            exact = got.dtype in (f64, c128)  # differences of a result in single precision show little
            close(got, want, 2e-7 if exact else 2e-3, f"tangent along operands {positions}")
        elif want is not None:
            tolerance = 1e-7 if want.dtype in (f64, c128) else 2e-3
            close(want, np.zeros_like(want), tolerance, f"tangent along operands {positions} is said to be zero")


def _pairing(left: Sequence[Any], right: Sequence[Any]) -> float:
    """The bilinear form Re(sum of a b)."""
    return float(sum(np.sum(np.real(np.multiply(a, b))) for a, b in zip(left, right, strict=True)))


def check_transpose(primitive: Primitive, sample: Sample) -> None:
    for positions in _subsets(differentiable(sample)):
        transpose_holds(program(primitive, sample), sample.args, positions)


def transpose_holds(function: Function, args: Sequence[Any], positions: Sequence[int]) -> None:
    """<A x, y> = <x, A' y> for the linear part A of the jvp; cotangents so far are added to."""
    forward, nonzero = jvp(function, [k in positions for k in range(len(args))])
    if not any(nonzero):
        return
    dots = [_direction(args[k], k) for k in positions]
    tangents = evaluate(forward, *args, *dots)[len(function.results) :]
    parts = split(forward, [True] * len(args) + [False] * len(positions))
    check(parts.known), check(parts.linear)
    count = len(parts.linear.params) - len(positions)
    residuals = evaluate(parts.known, *args)[-count:] if count else []
    bars = [_direction(t, 9 + k) for k, t in enumerate(tangents)]
    so_far = [_direction(a, 20 + k) for k, a in enumerate(dots)]
    lin = [False] * count + [True] * len(positions)
    backward, found = transpose(parts.linear, lin, accumulators=[True] * len(positions))
    check(backward)
    assert all(found)
    gained = [a - b for a, b in zip(evaluate(backward, *residuals, *bars, *so_far), so_far)]
    tolerance = 1e-9 if all(t.dtype in (f64, c128) for t in tangents) else 1e-5
    close(_pairing(dots, gained), _pairing(tangents, bars), tolerance, f"transpose along operands {positions}")
    plain, found = transpose(parts.linear, lin)
    check(plain)
    alone = iter(evaluate(plain, *residuals, *bars))
    for gain, has in zip(gained, found):
        close(next(alone) if has else np.zeros_like(gain), gain, 1e-9, "without cotangents so far")


def check_batch(primitive: Primitive, sample: Sample) -> None:
    for positions in _subsets(range(len(sample.args))):
        batch_holds(program(primitive, sample), sample.more(LANES), positions)


def check_dims(primitive: Primitive, sample: Sample) -> None:
    """Parts that are cut along a factor give, put together or combined, what the whole gives."""
    if not isinstance(primitive.dims, Dims) or not sample.args:
        return
    types = [type_of(a) for a in sample.args]
    operands, results = primitive.dims.relation(*types, **sample.attributes)
    whole = _results(primitive, sample.args, sample.attributes)
    assert [len(f) for f in operands] == [t.ndim for t in types]
    assert [len(f) for f in results] == [np.ndim(out) for out in whole]
    lengths: dict[int, int] = {}
    for factors, array in zip((*operands, *results), (*sample.args, *whole)):
        for factor, length in zip(factors, np.shape(array)):
            assert factor is None or lengths.setdefault(factor, length) == length, f"factor {factor}: {lengths}"
    for factor in (f for f, length in lengths.items() if length > 1):
        parts = []
        for piece in (slice(0, 1), slice(1, None)):
            args = [_part(a, f, factor, piece) for a, f in zip(sample.args, operands)]
            attributes = dict(sample.attributes)
            if "shape" in attributes:
                length = len(range(lengths[factor])[piece])
                attributes["shape"] = tuple(
                    length if f == factor else d for f, d in zip(results[0], attributes["shape"])
                )
            parts.append(_results(primitive, args, attributes))
        for factors, first, second, want in zip(results, *parts, whole):
            if factor in factors:
                got = np.concatenate([first, second], list(factors).index(factor))
            else:
                native = primitive.native
                got = COMBINED[native.monoid if isinstance(native, Reduce) else "sum"](first, second)
            tolerance = 1e-5 if np.asarray(want).dtype.itemsize < 8 else 1e-12
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, err_msg=f"cut along {factor}")


COMBINED = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "any": np.logical_or,
    "all": np.logical_and,
    "xor": np.bitwise_xor,
}


def _results(primitive: Primitive, args: Sequence[Any], attributes: Any) -> tuple:
    with np.errstate(all="ignore"):
        made = primitive.numpy(*map(np.asarray, args), **attributes)
    return made if primitive.multiple else (made,)


def _part(array: Any, factors: Sequence, factor: int, piece: slice) -> Any:
    return np.asarray(array)[tuple(piece if f == factor else slice(None) for f in factors)]


def batch_holds(function: Function, lanes: Sequence[tuple], positions: Sequence[int]) -> None:
    """The batched program gives what a loop over lanes gives; what is not batched is the first lane's."""
    args = lanes[0]
    marks = [k in positions for k in range(len(args))]
    batched, marked = batch(function, len(lanes), marks)
    check(batched)
    given = [np.stack([lane[k] for lane in lanes]) if m else args[k] for k, m in enumerate(marks)]
    got = evaluate(batched, *given)
    apart = [evaluate(function, *(lane[k] if m else args[k] for k, m in enumerate(marks))) for lane in lanes]
    for k, (out, is_batched) in enumerate(zip(got, marked, strict=True)):
        want: Any = [outs[k] for outs in apart]
        want = np.stack(want) if is_batched else want[0]
        assert out.dtype == want.dtype and out.shape == want.shape, (positions, out, want)
        if is_inexact(out.dtype):
            np.testing.assert_allclose(
                out, want, rtol=1e-6 if out.dtype.itemsize < 8 else 1e-12, atol=1e-12, err_msg=f"batched in {positions}"
            )
        else:
            np.testing.assert_array_equal(out, want, err_msg=f"batched in {positions}")


def check_composite(primitive: Primitive, sample: Sample) -> None:
    """The expansion of a composite gives what its NumPy rule gives."""
    assert isinstance(primitive.native, Composite)
    with Builder("expansion") as builder:
        params = [builder.parameter(f"x{k}", type_of(a)) for k, a in enumerate(sample.args)]
        function = check(builder.function([primitive.native.rule(*params, **sample.attributes)]))
    for got, want in zip(evaluate(function, *sample.args), evaluate(program(primitive, sample), *sample.args)):
        assert np.asarray(got).dtype == np.asarray(want).dtype
        double = np.asarray(want).dtype in (np.float64, np.complex128, np.int64, np.bool_)
        np.testing.assert_allclose(got, want, rtol=1e-12 if double else 1e-5)


RULES = {
    "type": check_type,
    "read": check_reads_back,
    "jvp": check_jvp,
    "transpose": check_transpose,
    "batch": check_batch,
    "dims": check_dims,
}

__all__ = ["RULES", "check_composite", "program", "jvp_holds", "transpose_holds", "batch_holds"]
