"""Sample operands of every primitive, for the tests that go over the registry and for comparing backends.

In: nothing. Out: `SAMPLES[name]`, a list of `Sample`s; a primitive without one fails the registry tests.

>>> SAMPLES["cos"][0].args[0].shape
(2, 3)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.build import literal, trace
from ..core.ir import ConstantArray, Function, Roles
from ..core.primitive import REGISTRY, Primitive
from ..core.types import Array, bool_, c64, c128, f32, f64, i32, i64, u32
from ..effects import callback_name
from ..late import dataclass, field
from .arithmetic import add, div, mul, sub
from .arrays import as_dim
from .callbacks import METHODS
from .compare import lt
from .elementary import cos, sin, sqrt
from .families import expand_batch
from .samples_linear import linear
from .shape import broadcast

u8, u64 = np.dtype("uint8"), np.dtype("uint64")


@dataclass(frozen=True)
class Sample:
    """One call. `smooth`: differentiable at these operands. `lanes`: operands to batch with it."""

    args: tuple
    attributes: dict[str, Any] = field(default_factory=dict)
    smooth: bool = True
    lanes: tuple | None = None

    def more(self, count: int) -> list[tuple]:
        """`count` operand tuples of the same types: the given ones, else the elements moved about."""
        if self.lanes is not None:
            return [self.args, *self.lanes][:count]
        return [tuple(np.roll(a, k) if np.ndim(a) else a for a in self.args) for k in range(count)]


def values(low: float, high: float, shape: tuple = (2, 3), dtype: Any = f64, seed: int = 0) -> Any:
    """Numbers spread over [low, high] in an irregular order; complex ones have parts there."""
    dtype = np.dtype(dtype)
    generator = np.random.default_rng(seed)
    if dtype.kind == "b":
        return np.asarray(generator.integers(0, 2, shape).astype(bool))[()]
    if dtype.kind in "iu":
        return np.asarray(generator.integers(int(low), int(high), shape, endpoint=True)).astype(dtype)[()]
    count = int(np.prod(shape))
    spread = generator.permutation(low + (high - low) * (np.arange(count) + 0.37) / max(count, 1)).reshape(shape)
    if dtype.kind == "c":
        other = low + (high - low) * generator.random(shape)
        return np.asarray(spread + 1j * other).astype(dtype)[()]
    return np.asarray(spread).astype(dtype)[()]


EDGES = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, -1.0, 0.5, -2.5, 1e300, 1e-310])


def edges(count: int) -> list[Sample]:
    """The numbers that break rules, one operand against itself moved by each distance."""
    pairs = np.stack([np.tile(EDGES, len(EDGES))] + [np.repeat(EDGES, len(EDGES))] * (count - 1))
    return [Sample(tuple(EDGES if count == 1 else row for row in pairs), smooth=False)]


REAL, EVERY_FLOAT, INTEGERS = (f64, f32), (f64, f32, c128, c64), (i64, i32, u32, u8)
SHAPES: tuple = ((2, 3), (), (0,))


def pointwise(
    *ranges: tuple, dtypes: Sequence = REAL, smooth: bool = True, with_edges: bool = True, **attributes: Any
) -> list[Sample]:
    """Operands in the given ranges, in several shapes and dtypes, and at the edges of floating point."""
    made = []
    for dtype in dtypes:
        for shape in SHAPES:
            args = tuple(values(low, high, shape, dtype, k) for k, (low, high) in enumerate(ranges))
            made.append(Sample(args, attributes, smooth))
    if with_edges and f64 in dtypes:
        made += [Sample(s.args, attributes, False) for s in edges(len(ranges))]
    return made


NUMBERS = (*EVERY_FLOAT, *INTEGERS)
UNIT = (-0.95, 0.95)
SMALL = (0, 7)

SAMPLES: dict[str, list[Sample]] = {
    "div": pointwise((-3, 3), (0.5, 3), dtypes=EVERY_FLOAT),
    "floor_div": pointwise((-9, 9), (1, 3.3), dtypes=REAL) + pointwise((-9, 9), (-2, 2), dtypes=(i64, i32, u8)),
    "mod": pointwise((-9, 9), (1, 3.3), dtypes=REAL) + pointwise((-9, 9), (-2, 2), dtypes=(i64, i32, u8)),
    "fmod": pointwise((-9, 9), (1, 3.3), dtypes=REAL) + pointwise((-9, 9), (-2, 2), dtypes=(i64, i32)),
    "integer_pow": [s for n in (0, 1, 2, 3, 5, 7, 8, 11) for s in pointwise((-2, 2), dtypes=(*REAL, i64), exponent=n)]
    + [s for n in (-1, -2) for s in pointwise((0.5, 2), dtypes=EVERY_FLOAT, exponent=n)],
    "pow": pointwise((0.3, 3), (-2, 2), dtypes=EVERY_FLOAT) + pointwise((0, 5), (0, 4), dtypes=INTEGERS),
    "polygamma": pointwise((0.2, 9), order=1) + pointwise((0.2, 9), order=2),
    "nextafter": pointwise((-3, 3), (-3, 3), smooth=False),
    "shift_left": pointwise(SMALL, (0, 40), dtypes=INTEGERS),
    "shift_right": pointwise((-99, 99), SMALL, dtypes=(i64, i32)) + pointwise((0, 250), SMALL, dtypes=(u32, u8)),
    "popcount": pointwise((0, 250), dtypes=INTEGERS),
    "threefry": pointwise((0, 2**62), (0, 2**62), dtypes=(u64,)),
    "sampled": pointwise((-3, 3), smooth=False),
    "spaced": pointwise((0, 40), (-1, 1), (-3, 3), dtypes=(f64, f32)),
    "stop_gradient": pointwise((-3, 3), dtypes=(*NUMBERS, bool_), smooth=False),
    "complex_": pointwise((-3, 3), (-3, 3)),
    "real": pointwise((-3, 3), dtypes=(c128, c64)),
    "imag": pointwise((-3, 3), dtypes=(c128, c64)),
    "conj": pointwise((-3, 3), dtypes=(c128, c64)),
    "select": [
        Sample((values(0, 1, s, bool_), values(-3, 3, s, t, 1), values(-3, 3, s, t, 2)))
        for s in SHAPES
        for t in (*EVERY_FLOAT, i64, bool_)
    ],
    "only_where": [Sample((values(-3, 3, s, f64), values(0, 1, s, bool_)), smooth=False) for s in SHAPES],
    "bitcast": [
        Sample((values(-3, 3, s, a),), {"dtype": b}, False)
        for s in SHAPES
        for a, b in ((f64, u64), (f32, i32), (i64, f64), (u64, i64))
    ],
    "convert": [
        Sample((values(0, 3, s, a),), {"dtype": b}, smooth=a.kind in "fc" and b.kind in "fc")
        for s in SHAPES
        for a in (f64, f32, i64, bool_)
        for b in (f64, f32, i64, i32, c128)
    ]
    + [Sample((values(0, 3, (3,), c128),), {"dtype": f64}), Sample((values(0, 3, (3,)),), {"dtype": bool_}, False)],
}

for _name in "eq ne lt le gt ge".split():  # small numbers, so that some are equal
    _dtypes = (*NUMBERS, bool_) if _name in ("eq", "ne") else (*REAL, *INTEGERS, bool_)
    SAMPLES[_name] = pointwise((-2, 2), (-2, 2), dtypes=_dtypes)
for _name in "and_ or_ xor not_".split():
    SAMPLES[_name] = pointwise(*[(0, 99)] * (1 if _name == "not_" else 2), dtypes=(*INTEGERS, bool_))


def in_domain(primitive: Primitive) -> list[Sample]:
    """Samples of an elementwise operation in the ranges that its declaration gives, of every dtype that its
    type rule takes."""
    ranges = primitive.domain
    assert ranges is not None
    dtypes = [d for d in (*NUMBERS, bool_) if _accepts(primitive, [Array(d)] * len(ranges))]
    return pointwise(*ranges, dtypes=dtypes)


def _accepts(primitive: Primitive, types: list[Array]) -> bool:
    try:
        primitive.type(*types)
    except TypeError:
        return False
    return True


for _name, _primitive in REGISTRY.items():
    if _primitive.domain is not None and _name not in SAMPLES:
        SAMPLES[_name] = in_domain(_primitive)


# --- shape and structure -----------------------------------------------------------------------------------


def each(arguments: Sequence[Any], choices: Sequence[dict], **more: Any) -> list[Sample]:
    """The same operands with each choice of attributes."""
    return [Sample(tuple(arguments), attributes, **more) for attributes in choices]


MATRIX, CUBE, ROW = values(-3, 3, (3, 4)), values(-3, 3, (2, 3, 4)), values(-3, 3, (5,))
COMPLEX, WHOLE = values(-3, 3, (3, 4), c128), values(-9, 9, (3, 4), i64)

SAMPLES |= {
    "broadcast": each([MATRIX], [{"shape": (2, 3, 4), "axes": (1, 2)}, {"shape": (3, 2, 4), "axes": (0, 2)}])
    + each([f64.type(2.0)], [{"shape": (2, 0), "axes": ()}, {"shape": (), "axes": ()}]),
    "reshape": each([MATRIX], [{"shape": (12,)}, {"shape": (2, 1, 6)}]) + each([ROW[:1]], [{"shape": ()}]),
    "permute": each([CUBE], [{"axes": (2, 0, 1)}, {"axes": (0, 1, 2)}]) + each([COMPLEX], [{"axes": (1, 0)}]),
    "roll": each([COMPLEX], [{"shift": s, "axis": a} for s, a in ((1, 1), (-2, 0), (7, 0))]),
    "concatenate": each([MATRIX, values(0, 1, (3, 2)), values(0, 1, (3, 0))], [{"axis": 1}])
    + each([MATRIX, MATRIX], [{"axis": 0}]),
    "pad": each(
        [MATRIX, f64.type(0.5)],
        [{"low": (1, 0), "high": (0, 2), "interior": (0, 1)}, {"low": (0, 0), "high": (0, 0), "interior": (0, 0)}],
        lanes=((MATRIX + 1, f64.type(0.25)), (MATRIX * 2, f64.type(0.125))),
    ),
    "dot_general": [
        Sample((values(-3, 3, a, t), values(-3, 3, b, t, 1)), {"contract": c, "batch": d})
        for t in (f64, f32, c128, i64)
        for a, b, c, d in [
            ((3, 4), (4, 2), ((1,), (0,)), ((), ())),
            ((4,), (4,), ((0,), (0,)), ((), ())),
            ((3, 4), (4,), ((1,), (0,)), ((), ())),
            ((4,), (4, 3), ((0,), (0,)), ((), ())),
            ((2, 3, 4), (2, 4, 5), ((2,), (1,)), ((0,), (0,))),
            ((3,), (2,), ((), ()), ((), ())),
            ((3, 2), (2, 3), ((), ()), ((0, 1), (1, 0))),
            ((2, 3, 4, 5), (5, 6, 3, 4), ((2, 3), (3, 0)), ((1,), (2,))),
            ((0, 4), (4, 2), ((1,), (0,)), ((), ())),
        ]
    ],
    "iota": [Sample((), {"length": n, "dtype": t}) for n in (0, 4) for t in (i64, f64, i32)],
    "eye": [
        Sample((), {"rows": m, "columns": n, "diagonal": k, "dtype": t})
        for m, n, k in ((3, 3, 0), (2, 4, 1), (4, 2, -1), (0, 2, 0))
        for t in (f64, i64, np.dtype(bool), c128)
    ],
    "constant": [Sample((), {"value": ConstantArray(a)}) for a in (MATRIX, WHOLE, values(0, 1, (2, 0)))],
    "undefined": [Sample((), {"dtype": f64, "shape": s}) for s in ((2, 3), ())],
    "dim_value": [Sample((), {"dim": 3})],
    "as_dim": [Sample((np.int64(3),), {"size": "k"}, smooth=False)],
}

# --- reductions, scans, order ------------------------------------------------------------------------------

AXES = [{"axes": a} for a in ((0,), (1,), (0, 2), (0, 1, 2), ())]
WITH_ZEROS = np.where(values(0, 1, (2, 3, 4), bool_, 5), CUBE, 0.0)
WITH_NAN = np.where(values(0, 1, (2, 3, 4), bool_, 6), CUBE, np.nan)
TRUTHS = values(0, 1, (2, 3, 4), bool_)


def _reductions(of: str) -> list[Sample]:
    extreme = of in ("reduce_max", "reduce_min")
    kept = each([CUBE], AXES) + each([WITH_NAN], AXES, smooth=False) + each([CUBE.astype(f32)], AXES)
    kept += each([values(-4, 4, (2, 3, 4), i64)], AXES) + each([values(0, 4, (2, 3, 4), u8)], AXES)
    if not extreme:
        kept += each([WITH_ZEROS], AXES) + each([values(-2, 2, (2, 3, 4), c128)], AXES)
        kept += each([np.zeros((2, 0, 3))], [{"axes": (1,)}, {"axes": (0,)}])
    return kept


SAMPLES |= {name: _reductions(name) for name in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min")}
SAMPLES |= {
    name: each([TRUTHS], AXES) + each([np.zeros((2, 0), bool)], [{"axes": (1,)}])
    for name in ("reduce_any", "reduce_all")
}
SAMPLES |= {
    name: [
        s
        for a in (CUBE, WITH_NAN, values(0, 2, (2, 3, 4), i64), CUBE.astype(f32))
        for s in each([a], [{"axes": (0,)}, {"axes": (2,)}])
    ]
    for name in ("argmax", "argmin")
}
RUNS = [{"axis": a, "reverse": r} for a in (0, 1) for r in (False, True)]
SAMPLES |= {
    name: each([MATRIX], RUNS)
    + each([WHOLE], RUNS)
    + each([WITH_NAN[0]], RUNS, smooth=False)
    + each([np.zeros((0, 2))], RUNS)
    for name in ("cumsum", "cumprod", "cummax", "cummin")
}
SAMPLES["cumprod"] += each([WITH_ZEROS[0]], RUNS)
SAMPLES["cumsum"] += each([COMPLEX], RUNS)
ALONG = [{"axis": 0}, {"axis": 1}]
SAMPLES |= {
    name: each([MATRIX], ALONG) + each([WHOLE], ALONG) + each([WITH_NAN[0]], ALONG, smooth=False)
    for name in ("sort", "argsort")
}
SAMPLES["ranked"] = [
    Sample((MATRIX, np.array([1, 0])), {"axis": 0}),
    Sample((MATRIX, np.array([0, 2, 2])), {"axis": 1}, lanes=((-MATRIX, np.array([2, 2, 1])),)),
    Sample((WITH_NAN[0], np.array([0, 1])), {"axis": 0}, smooth=False),
    Sample((WHOLE, np.zeros(0, np.int64)), {"axis": 1}, smooth=False),
]
_MASK = np.array([[False, True, True, False], [True, False, False, True]])
SAMPLES["nonzero"] = [
    Sample((_MASK,), {"axis": 1, "length": 2}, lanes=((~_MASK,), (_MASK[:, ::-1],))),
    Sample((_MASK,), {"axis": 0, "length": 1}, lanes=((~_MASK,), (_MASK[::-1],))),
    Sample((_MASK[0],), {"axis": 0, "length": 2}),
    Sample((np.zeros(3, bool),), {"axis": 0, "length": 0}),
]
_SORTED = np.array([-1.0, 0.5, 0.5, 2.0, np.nan])
SAMPLES["searchsorted"] = [
    Sample(
        (_SORTED, np.asarray(v)[()]),
        {"right": right},
        smooth=False,
        lanes=((_SORTED[:4].repeat([2, 1, 1, 1]), np.asarray(v)[()] * 0.5), (_SORTED * 2, np.asarray(v)[()])),
    )
    for right in (False, True)
    for v in (np.array([0.5, -3.0, np.nan, 9.0, 2.0]), 0.5, np.zeros((0, 2)))
]
SAMPLES["contains"] = [
    Sample((_SORTED, np.asarray(v)[()]), {}, smooth=False, lanes=((_SORTED * 2, np.asarray(v)[()]),))
    for v in (np.array([[0.5, -3.0, np.nan], [9.0, 2.0, -1.0]]), 2.0, np.zeros((0, 2)))
]
_KNOWN = (np.array(a, np.int64) for a in ([-7, 3, 4], [-(2**63), 0, 2**62], []))
SAMPLES["contains"] += [Sample((known, np.array([3, 4, -7, 2**62, 0])), {}, smooth=False) for known in _KNOWN]

# --- indexing ----------------------------------------------------------------------------------------------

TABLE = values(-3, 3, (4, 5))


def _starts(*starts: int) -> tuple:
    return tuple(map(np.int64, starts))


def _moved(first: Sequence[Any], starts: tuple, other: tuple) -> dict[str, Any]:
    """Three lanes that begin at different places."""
    doubled = tuple(a * 2 for a in first)
    return {"args": (*first, *starts), "lanes": ((*doubled, *other), (*first, *starts))}


SAMPLES["slice"] = [
    Sample(attributes={"shape": (2, 3), "step": (1, 1)}, **_moved((TABLE,), _starts(1, 0), _starts(2, 2))),
    Sample(attributes={"shape": (2, 3), "step": (2, -1)}, **_moved((TABLE,), _starts(1, 4), _starts(0, 2))),
    Sample(attributes={"shape": (0, 3), "step": (1, 1)}, **_moved((TABLE,), _starts(1, 0), _starts(2, 2))),
    Sample((np.float64(2.0),), {"shape": (), "step": ()}),
]
for _name in ("slice_update", "slice_add"):
    SAMPLES[_name] = [
        Sample(attributes={"step": (1, 1)}, **_moved((TABLE, values(0, 1, (2, 3))), _starts(1, 0), _starts(2, 2))),
        Sample(attributes={"step": (2, -1)}, **_moved((TABLE, values(0, 1, (2, 3))), _starts(1, 4), _starts(0, 2))),
        Sample(attributes={"step": (1, 1)}, **_moved((WHOLE, WHOLE[:1, :2]), _starts(1, 0), _starts(2, 2))),
        Sample((np.float64(2.0), np.float64(3.0)), {"step": ()}),
    ]

_PICKS: list[tuple] = [
    ((np.array([3, 0, 3]),), (0,)),
    ((np.array([[1, 4], [0, 4]]),), (1,)),
    ((np.array([3, 0, 3]), np.array([1, 2, 1])), (0, 1)),
    (_starts(2), (1,)),
    (_starts(2, 3), (0, 1)),
    ((np.array([1, 2]), np.array([3, 3])), (1, 0)),
    ((np.zeros(0, int),), (0,)),
]
SAMPLES["gather"] = [Sample((t, *i), {"axes": a}) for i, a in _PICKS for t in (TABLE, values(0, 9, (5, 5), i32))]


def _scatters() -> list[Sample]:
    made = []
    for indices, axes in _PICKS:
        rest = tuple(d for k, d in enumerate((5, 5)) if k not in axes)
        for dtype in (f64, i64):
            new = values(-1, 1, (*np.shape(indices[0]), *rest), dtype, 3)
            made.append(Sample((values(-3, 3, (5, 5), dtype), new, *indices), {"axes": axes, "unique": False}))
    made.append(Sample((TABLE, values(0, 1, (2, 5)), np.array([2, 0])), {"axes": (0,), "unique": True}))
    return made


SAMPLES |= {"scatter": _scatters(), "scatter_add": _scatters()}

# --- effects and regions -----------------------------------------------------------------------------------

SCALAR, COUNT = Array(f64), Array(i64)


def _halve(i: Any, a: Any, x: Any, row: Any) -> tuple:
    return add(mul(x, literal(0.5, f64)), mul(a, row)), sin(x)


def _counted() -> Function:
    return trace("step", _halve, [("i", COUNT), ("a", SCALAR), ("x", SCALAR), ("row", SCALAR)])


def _shrinking() -> dict[str, Any]:
    body = trace("shrink", lambda i, x: sub(x, mul(literal(0.25, f64), cos(x))), [("i", COUNT), ("x", SCALAR)])
    cond = trace("large", lambda i, x: lt(literal(0.125, f64), x), [("i", COUNT), ("x", SCALAR)])
    return {"body": body, "cond": cond, "length": None, "roles": Roles(0, 1, 0, 0), "size": "T"}


def _ragged() -> dict[str, Any]:
    """Iteration i leaves x squared i times, and sin(x) as often."""

    def repeat(i: Any, x: Any) -> tuple:
        size = as_dim(i, size="k").type.value
        return tuple(broadcast(y, shape=(size,), axes=()) for y in (mul(x, x), sin(x)))

    return {
        "body": trace("repeat", repeat, [("i", COUNT), ("x", SCALAR)]),
        "cond": None,
        "length": 4,
        "roles": Roles(1, 0, 0, 0, 2),
        "segment_sizes": ("S", "S"),
    }


def _branches() -> tuple:
    return tuple(trace(n, f, [("x", SCALAR), ("y", SCALAR)]) for n, f in (("product", mul), ("total", add)))


def _half(x: Any, y: Any) -> Any:
    return mul(x, mul(y, literal(0.5, f64)))


def _ruled(kind: str) -> dict[str, Any]:
    """x y / 2, whose rules say what is true."""
    operands = [("x", SCALAR), ("y", SCALAR)]

    def dual(x: Any, y: Any, x_dot: Any, y_dot: Any) -> tuple:
        return _half(x, y), add(_half(x_dot, y), _half(x, y_dot))

    back = trace("back", lambda x, y, z_bar: (_half(z_bar, y), _half(x, z_bar)), [*operands, ("z_bar", SCALAR)])
    if kind == "transpose":
        return {"backward": back, "wanted": (True, False), "of": "half"}
    function = {"function": trace("half", _half, operands), "consts": 0}
    if kind == "vjp":
        return {**function, "forward": trace("ahead", lambda x, y: (_half(x, y), x, y), operands), "backward": back}
    return {**function, "rule": trace("dual", dual, [*operands, ("x_dot", SCALAR), ("y_dot", SCALAR)])}


def _equation(kind: str) -> dict[str, Any]:
    """x with x x = y, and x with y x = b."""
    y, x, r = ("y", SCALAR), ("x", SCALAR), ("r", SCALAR)
    if kind == "root":
        return {
            "function": trace("root", sqrt, [y]),
            "residual": trace("square", lambda y, x: sub(mul(x, x), y), [y, x]),
            "tangent": trace("slope", lambda y, x, r: div(r, add(x, x)), [y, x, r]),
        }
    over, times = trace("over", lambda y, b: div(b, y), [y, r]), trace("times", mul, [y, x])
    return {"function": over, "matvec": times, "back": over, "vecmat": times}


class _HalvesOfLanes(str):
    """x y / 2 of lanes, as a rule of `custom_vmap`; a text names it."""

    def __call__(self, size: Any, marks: Sequence[bool]) -> tuple:
        types = [Array(f64, (size,)) if mark else SCALAR for mark in marks]

        def lanes(x: Any, y: Any) -> Any:
            x, y = (expand_batch(size, a, m) for a, m in zip((x, y), marks))
            return mul(mul(x, y), broadcast(literal(0.5, f64), shape=(size,), axes=()))

        return trace(self, lanes, [("x", types[0]), ("y", types[1])]), [True]


def _nothing(x: Any) -> tuple:
    return ()


def _doubled(x: Any) -> tuple:
    return (2 * x,)


_X, _Y = np.float64(1.5), np.float64(0.75)
_COUNTED = {"body": _counted(), "cond": None, "length": 5, "roles": Roles(1, 1, 0, 1)}
_LANE = {"axis_name": "i", "axis_size": 1}  # collectives have a meaning of their own on an axis of one lane
SAMPLES |= {
    "loop": [Sample((_Y, _X, ROW), {**_COUNTED, "reverse": r, "parallel": False}) for r in (False, True)]
    + [Sample((_X,), {**_ragged(), "reverse": r}) for r in (False, True)]
    + [Sample((_X,), _shrinking(), lanes=((np.float64(0.5),), (np.float64(0.0),)))],
    "cond": [
        Sample((p, _X, _Y), {"branches": _branches()}, lanes=((q, _Y, _X), (p, _Y, _Y)))
        for p, q in ((np.True_, np.False_), (np.False_, np.True_), (np.int64(1), np.int64(0)))
    ],
    "call": [Sample((_X, _Y), {"function": _branches()[0]})],
    "custom_jvp": [Sample((_X, _Y), _ruled("jvp"))],
    "custom_vjp": [Sample((_X, _Y), _ruled("vjp"), smooth=False)],
    "custom_transpose": [Sample((_X, _Y, _X), _ruled("transpose"), smooth=False)],
    "checkpoint": [
        Sample(
            (_X, _Y), {"function": _ruled("jvp")["function"], "policy": (rule,), "again": False, "prevent_cse": True}
        )
        for rule in ("nothing_saveable", "everything_saveable")
    ],
    "checkpoint_name": [Sample((x,), {"name": "hidden"}) for x in (_X, ROW)],
    "barrier": [Sample((x,), {}) for x in (_X, ROW)],
    "custom_root": [Sample((_X,), _equation("root"))],
    "linear_solve": [Sample((_X, _Y), _equation("solve"))],
    "custom_vmap": [Sample((_X, _Y), {"function": _ruled("jvp")["function"], "rule": _HalvesOfLanes("halves")})],
    **{name: each([MATRIX], [_LANE]) + each([_X], [_LANE]) for name in ("psum", "pmax", "pmin")},
    "all_gather": each([MATRIX], [{**_LANE, "axis": k} for k in (0, 1, 2)]) + each([_X], [{**_LANE, "axis": 0}]),
    "psum_scatter": each([MATRIX[:, None]], [{**_LANE, "axis": 1}]) + each([ROW[:1]], [{**_LANE, "axis": 0}]),
    "all_to_all": each([MATRIX[:, None]], [{**_LANE, "axis": 1}]) + each([ROW[:1]], [{**_LANE, "axis": 0}]),
    "ppermute": each([MATRIX], [{**_LANE, "perm": ((0, 0),)}, {**_LANE, "perm": ()}]),
    "axis_index": [Sample((), _LANE)],
    "check": [
        Sample(
            (np.array([True, True]), np.array([1.0, 2.0])),
            {"exception": "ValueError", "message": "bad value {}"},
            smooth=False,
        )
    ],
    "print_": [Sample((_X,), {"template": "x is {}"}, smooth=False)],
    "debug_callback": [Sample((_X,), {"name": callback_name(_nothing), "types": ()}, smooth=False)],
    "io_callback": [Sample((_X,), {"name": callback_name(_doubled), "types": (Array(f64),)}, smooth=False)],
    "pure_callback": [
        Sample((_X,), {"name": callback_name(_doubled), "types": (Array(f64),), "vmap_method": method}, smooth=False)
        for method in METHODS
    ],
    "warn_": [Sample((_X,), {"template": "x is {}", "category": "UserWarning"}, smooth=False)],
}
SAMPLES |= linear(lambda args, attributes=None, smooth=True: Sample(args, attributes or {}, smooth))
