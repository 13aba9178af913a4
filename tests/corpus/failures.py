"""`try`, `with`, `assert` and `raise`: static ones run, those on staged values raise at run time."""

import contextlib

import numpy as np


class NegativeEnergy(ValueError):
    """A user's own exception."""


class Stopped(Exception):
    def __init__(self, reason, code=3):
        super().__init__(reason)
        self.code = code


def assert_plain(x):
    assert x > 0
    return x * 2


def assert_with_message(x):
    assert x > 0, "x must be positive"
    return x * 2


def assert_with_values(x, n):
    assert x > 0 and n > 1, f"x is {x} and n is {n:d}"
    return x * 2


def assert_chain(xs):
    assert (xs > 0).all(), "negative"
    assert 0 < xs[0] < xs[1], ("out of order", 3)
    return xs.sum()


def assert_in_loop(xs):
    total = 0.0
    for k, x in enumerate(xs):
        assert x >= 0, f"element {k} is {x:.2f}"
        total += x
    return total


def raise_in_branch(x):
    if x < 0:
        raise ValueError(f"negative input: {x}")
    return x**0.5


def raise_in_else(x):
    if x > 0:
        y = x
    elif x < -1:
        raise ArithmeticError("far below", 2)
    else:
        raise KeyError("missing")
    return y


def raise_class(x):
    if x < 0:
        raise ZeroDivisionError
    return x


def raise_users_own(x):
    if x < 0:
        raise NegativeEnergy(f"energy {x:.1f}")
    return x


def raise_users_own_with_state(x):
    if x < 0:
        raise Stopped("no more")
    return x


def raise_from(x):
    if x < 0:
        raise RuntimeError("outer") from ValueError("inner")
    return x


def raise_in_while(n):
    steps = 0
    while n != 1:
        if steps > 5:
            raise OverflowError(f"too many steps at {n}")
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def raise_in_helper(xs):
    def checked(v, limit):
        if v > limit:
            raise ValueError(f"{v} exceeds {limit}")
        return v

    return sum(checked(x, 5.0) for x in xs)


def first_of_two_failures(x, y):
    assert x > 0, "x"
    assert y > 0, "y"
    if x + y < 1:
        raise ValueError("small")
    return x + y


def raise_static(x, mode):
    if mode == "bad":
        raise NotImplementedError(f"mode {mode!r}")
    return x


def not_raised(x):
    try:
        table = {"a": x}
        value = table["b"]
    except KeyError:
        value = x * 3
    return value


def except_by_kind(x, kind):
    try:
        if kind == "key":
            {}["missing"]
        elif kind == "index":
            [][0]
        elif kind == "value":
            raise ValueError("bad")
        y = x
    except (KeyError, IndexError) as error:
        y = x * 2 + len(str(error)) * 0
    except ValueError as error:
        y = x * 3 + len(error.args)
    else:
        y = y + 100
    finally:
        x = x + 1
    return x, y


def try_else_finally(x):
    log = []
    try:
        log.append(x)
    except ValueError:
        log.append(-1.0)
    else:
        log.append(x * 2)
    finally:
        log.append(x * 3)
    return log


def finally_after_return(x):
    log = []

    def f(v):
        try:
            return v * 2
        finally:
            log.append(v)

    return f(x), log


def finally_in_loop(xs):
    count = 0
    total = 0.0
    for x in xs:
        try:
            if x < 0:
                continue
            if x > 10:
                break
            total += x
        finally:
            count += 1
    return total, count


def finally_around_branch(x):
    out = np.zeros(2)
    try:
        if x > 0:
            out[0] = x
        else:
            out[1] = x
    finally:
        out *= 2
    return out


def finally_around_raise(x):
    out = np.zeros(2)
    try:
        if x < 0:
            raise ValueError("negative")
        out[0] = x
    finally:
        out[1] = 7.0
    return out


def try_around_arithmetic(x, y):
    try:
        z = x * y + np.sin(x)
    except TypeError:
        z = 0.0
    return z


def try_import(x):
    try:
        import module_that_does_not_exist_here as backend
    except ImportError:
        backend = np
    return backend.sqrt(x)


def reraised(x):
    try:
        try:
            {}["a"]
        except KeyError:
            raise
    except LookupError:
        x = x * 2
    return x


def suppressed(x):
    with contextlib.suppress(KeyError):
        x = x * 2
        {}["a"]
        x = x * 100
    return x


def exit_stack(x):
    log = []
    with contextlib.ExitStack() as stack:
        stack.callback(log.append, "closed")
        y = x * 2
    return y * len(log)


class Tracker:
    def __init__(self):
        self.depth = 0
        self.log = []

    def __enter__(self):
        self.depth += 1
        return self

    def __exit__(self, *exc):
        self.depth -= 1
        self.log.append(exc[0] is None)
        return False


def users_context(x):
    tracker = Tracker()
    with tracker as outer:
        with outer:
            if x > 0:
                y = x * tracker.depth
            else:
                y = x
    return y, tracker.depth, tracker.log


@contextlib.contextmanager
def scaled(x):
    yield x * 2


def generator_context(x):
    with scaled(x) as y:
        z = y + 1
    return z


def return_from_with(x):
    tracker = Tracker()

    def f(v):
        with tracker:
            if v > 0:
                return v * 2
            return -v

    return f(x), tracker.depth


def with_in_loop(xs):
    tracker = Tracker()
    total = 0.0
    for x in xs:
        with np.errstate(all="ignore"):
            if x < 0:
                continue
            total += np.sqrt(x)
    return total, tracker.depth


def unbound_after_branch(x):
    if x > 0:
        y = x
    return y


def nested_functions_raise(x):
    def inner(v):
        if v > 3:
            raise ValueError("deep")
        return v

    def outer(v):
        return inner(v) + inner(v + 1)

    return outer(x)


def iteration_always_raises(x, t):
    while t > 0.1:
        t = 0.5 * x[5]  # the array has no such element: who comes here is told so
    return t


def inner_iteration_always_raises(x, t):
    count = 0
    while t > 0.1:
        count += 1
        while t > 0.2:
            t = 0.5 * x[5]
        t = t - 0.04
    return t, count


def iteration_asks_for_the_largest_of_none(x, t):
    while t > 0.1:
        t = np.max(x) * 0.02
    return t


def while_that_raises(x):
    while x < 0:
        raise ValueError("negative")
    return x * 2


_X = np.array([1.0, 3.0, 2.0])
CASES = [
    (assert_plain, (2.0,)),
    (assert_plain, (-2.0,)),
    (assert_with_message, (-2.0,)),
    (assert_with_values, (2.0, 3)),
    (assert_with_values, (2.0, 1)),
    (assert_chain, (_X,)),
    (assert_chain, (_X - 2,)),
    (assert_chain, (_X[::-1].copy(),)),
    (assert_chain, (np.array([3.0, 1.0]),)),
    (assert_in_loop, (_X,)),
    (assert_in_loop, (np.array([1.0, 2.0, -0.126, 4.0, -1.0]),)),
    (raise_in_branch, (4.0,)),
    (raise_in_branch, (-4.5,)),
    *((raise_in_else, (v,)) for v in (2.0, -0.5, -3.0)),
    (raise_class, (-1.0,)),
    (raise_users_own, (2.0,)),
    (raise_users_own, (-2.0,)),
    (raise_users_own_with_state, (-2.0,)),
    (raise_from, (-2.0,)),
    (raise_in_while, (8,)),
    (raise_in_while, (27,)),
    (raise_in_helper, (_X,)),
    (raise_in_helper, (_X * 4,)),
    (first_of_two_failures, (-1.0, -1.0)),
    (first_of_two_failures, (1.0, -1.0)),
    (first_of_two_failures, (0.1, 0.1)),
    (raise_static, (2.0, "good")),
    (not_raised, (2.0,)),
    *((except_by_kind, (2.0, k)) for k in ("key", "index", "value", "none")),
    (try_else_finally, (2.0,)),
    (finally_after_return, (2.0,)),
    (finally_in_loop, (np.array([1.0, -1.0, 2.0, 11.0, 3.0]),)),
    (finally_around_branch, (2.0,)),
    (finally_around_branch, (-2.0,)),
    (finally_around_raise, (2.0,)),
    (finally_around_raise, (-2.0,)),
    (try_around_arithmetic, (2.0, 3.0)),
    (try_import, (2.0,)),
    (reraised, (2.0,)),
    (suppressed, (2.0,)),
    (exit_stack, (2.0,)),
    (users_context, (2.0,)),
    (users_context, (-2.0,)),
    (generator_context, (2.0,)),
    (return_from_with, (2.0,)),
    (return_from_with, (-2.0,)),
    (with_in_loop, (_X - 2,)),
    (unbound_after_branch, (2.0,)),
    (unbound_after_branch, (-2.0,)),
    (nested_functions_raise, (1.0,)),
    (nested_functions_raise, (2.5,)),
    *((iteration_always_raises, (_X, v)) for v in (0.0, 1.0)),
    *((inner_iteration_always_raises, (_X, v)) for v in (0.0, 0.15, 1.0)),
    *((while_that_raises, (v,)) for v in (2.0, -2.0)),
    *((iteration_asks_for_the_largest_of_none, (x, t)) for x in (np.zeros(0), _X) for t in (0.0, 1.0)),
]
