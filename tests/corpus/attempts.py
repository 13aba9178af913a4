"""`try` with `except` around what may fail when the program runs: division, indices, matrices, users' own."""

import math

import numpy as np


def inverse_or_pseudo(A):
    y = A * 2
    try:
        B = np.linalg.inv(A)
        C = B @ y[::-1]
    except np.linalg.LinAlgError:
        C = np.linalg.pinv(A)
    return C


def jittered_cholesky(A):
    eps = 1e-3
    tries = 0
    while tries < 8:
        tries += 1
        try:
            return np.linalg.cholesky(A + eps * np.eye(len(A))), eps
        except np.linalg.LinAlgError:
            eps = eps * 10
    return np.zeros_like(A), eps


def without_noise(x):
    try:
        x[abs(x) < 1e-3] = 0.0
    except TypeError:
        if abs(x) < 1e-3:
            x = 0.0
    return x


def items_without_noise(x):
    return without_noise(x[0]), without_noise(x), without_noise(x.sum())


def ratio_or_zero(x, y):
    try:
        return x / y
    except ZeroDivisionError:
        return 0.0


def item_or_default(x, i):
    try:
        v = x[i]
    except IndexError:
        v = -1.0
    return v


def every_clause(x, i, y):
    n = 0
    r = 0.0
    try:
        n += 1
        a = x[i]
        n += 1
        x[0] = 9.0
        b = float(a) / float(y)
        x[1] = 7.0
        n += 1
        print("b", b)
    except (IndexError, KeyError):
        r = 1.0
    except ZeroDivisionError as error:
        print("zero", error, n)
        r = 2.0
    else:
        n += 10
        r = b
    finally:
        print("done", n)
    return r, n


def stores_before_raise(x):
    y = np.zeros(2)
    try:
        if x < 0:
            y[0] = 1.0
            raise ValueError("negative", 3)
        y[1] = np.sqrt(x)
    except ValueError as error:
        y[1] = len(error.args)
    return y


def _reciprocal(x):
    if x > 10:
        raise OverflowError("too big")
    return 1.0 / x


def through_calls(x):
    try:
        return _reciprocal(x) + _reciprocal(x - 1)
    except ZeroDivisionError:
        return -1.0
    except OverflowError:
        return -2.0


def not_taken(x):
    try:
        return _reciprocal(x)
    except KeyError:
        return -1.0


def try_in_try(x, y):
    try:
        try:
            a = 1.0 / x
        except ZeroDivisionError:
            a = 1.0 / y
        b = math.log(a)
    except ZeroDivisionError:
        return -1.0
    except ValueError:
        return -2.0
    return a + b


def raises_another(x):
    try:
        return 1.0 / x
    except ZeroDivisionError:
        raise ValueError("bad x") from None


def raises_again(x):
    try:
        return 1.0 / x
    except ZeroDivisionError:
        print("oops")
        raise


def in_a_rolled_loop(xs):
    s = 0.0
    bad = 0
    for x in xs:
        try:
            s += 1.0 / float(x)
        except ZeroDivisionError:
            bad += 1
            continue
        if s > 100:
            break
    return s, bad


def around_a_loop(xs):
    s = 0.0
    try:
        for k in range(len(xs)):
            s += 1.0 / float(xs[k])
    except ZeroDivisionError:
        s = -s
    return s


def in_a_ternary(x, y):
    try:
        v = 1.0 / x if y > 0 else 2.0
    except ZeroDivisionError:
        v = 5.0
    return v


def prints_on_the_way(x):
    try:
        print("a", x)
        y = 1.0 / x
        print("b", y)
    except ZeroDivisionError as err:
        print("c", err)
        y = 0.0
    finally:
        print("d")
    return y


def caught_assertion(x):
    try:
        assert x > 0, "not positive"
        return math.log(x)
    except AssertionError:
        return 0.0


def any_exception(x, i):
    try:
        return 1.0 / float(x[i])
    except Exception:
        return -9.0


class Stopped(Exception):
    def __init__(self, code):
        super().__init__(f"code {code}")
        self.code = code


def users_own(x):
    try:
        if x > 1:
            raise Stopped(4)
        if x > 0:
            raise Stopped(5)
        return 0.0
    except Stopped as stopped:
        return float(stopped.code)


_TABLE = {"a": 1.0}


def python_raises_on_one_side(x):
    try:
        if x > 0:
            v = _TABLE["missing"]
        else:
            v = _TABLE["a"]
    except KeyError:
        v = 2.0
    return v


def quotient_and_rest(a, b):
    try:
        q, r = divmod(a, b)
    except ZeroDivisionError:
        q = r = -1
    return q, r


def two_statements(x, y):
    total = 0.0
    try:
        total += 1.0 / x
    except ZeroDivisionError:
        total += 100.0
    try:
        total += 1.0 / y
    except ZeroDivisionError:
        total += 1000.0
    return total


def whole_numbers_inside(a, b):
    n = 0
    try:
        n = a * b + a
        n = n * n - b
        x = 6 / (a - b)
    except Exception:
        x = -1.0
    return n, x


def message_again(x, i):
    try:
        return x[i]
    except IndexError as error:
        print("caught", error)
        raise ValueError(f"bad place: {error}") from error


_SINGULAR, _REGULAR = np.ones((2, 2)), np.array([[2.0, 1.0], [0.0, 4.0]])


def zeros_or_two(x, n):
    """A size is an operation that may fail."""
    try:
        y = np.zeros(n) + x
    except ValueError:
        y = np.ones(2)
    return y.sum()


def spread_or_two(x, n):
    try:
        y = np.broadcast_to(x, (n, 2)) + np.ones((n, 1))
    except ValueError:
        y = np.ones((2, 2))
    return y.sum()


def powers_or_two(x, n):
    """How many columns there are is known while this is translated."""
    try:
        y = np.vander(x, n)
    except ValueError:
        y = np.ones((2, 2))
    return y.sum()


CASES = [
    (zeros_or_two, (1.5, 3)),
    (zeros_or_two, (1.5, -3)),
    (spread_or_two, (np.ones(2), 3)),
    (spread_or_two, (np.ones(2), -3)),
    (powers_or_two, (np.ones(2), 3)),
    (powers_or_two, (np.ones(2), -3)),
    (inverse_or_pseudo, (_SINGULAR,)),
    (inverse_or_pseudo, (_REGULAR,)),
    (jittered_cholesky, (np.diag([1.0, -0.05, 2.0]),)),
    (jittered_cholesky, (np.eye(2),)),
    (ratio_or_zero, (1.0, 2.0)),
    (ratio_or_zero, (1.0, 0.0)),
    (ratio_or_zero, (3, 0)),
    (item_or_default, (np.array([0.5, 1.5, 2.5]), 1)),
    (item_or_default, (np.array([0.5, 1.5, 2.5]), 7)),
    (item_or_default, (np.array([0.5, 1.5, 2.5]), -4)),
    (every_clause, (np.array([0.5, 1.5, 2.5]), 1, 2.0)),
    (every_clause, (np.array([0.5, 1.5, 2.5]), 5, 2.0)),
    (every_clause, (np.array([0.5, 1.5, 2.5]), 2, 0.0)),
    (stores_before_raise, (-1.0,)),
    (stores_before_raise, (4.0,)),
    (through_calls, (2.5,)),
    (through_calls, (1.0,)),
    (through_calls, (0.0,)),
    (through_calls, (10.5,)),
    (not_taken, (2.0,)),
    (not_taken, (0.0,)),
    (not_taken, (11.0,)),
    (try_in_try, (2.0, 1.0)),
    (try_in_try, (0.0, 4.0)),
    (try_in_try, (0.0, 0.0)),
    (try_in_try, (0.0, -2.0)),
    (raises_another, (2.0,)),
    (raises_another, (0.0,)),
    (raises_again, (2.0,)),
    (raises_again, (0.0,)),
    (in_a_rolled_loop, (np.array([1.0, 0.0, 4.0, 0.0]),)),
    (in_a_rolled_loop, (np.array([0.001, 0.0, 2.0]),)),
    (around_a_loop, (np.array([1.0, 0.0, 4.0]),)),
    (around_a_loop, (np.array([1.0, 2.0, 4.0]),)),
    (in_a_ternary, (0.0, 1.0)),
    (in_a_ternary, (0.0, -1.0)),
    (in_a_ternary, (2.0, 1.0)),
    (prints_on_the_way, (2.0,)),
    (prints_on_the_way, (0.0,)),
    (without_noise, (0.5,)),
    (items_without_noise, (np.array([1e-4, 0.5]),)),
    (caught_assertion, (2.0,)),
    (caught_assertion, (-1.0,)),
    (any_exception, (np.array([0.0, 2.0]), 1)),
    (any_exception, (np.array([0.0, 2.0]), 0)),
    (any_exception, (np.array([0.0, 2.0]), 5)),
    (users_own, (2.0,)),
    (users_own, (0.5,)),
    (users_own, (-1.0,)),
    (python_raises_on_one_side, (1.0,)),
    (python_raises_on_one_side, (-1.0,)),
    (quotient_and_rest, (7, 2)),
    (quotient_and_rest, (7, 0)),
    (whole_numbers_inside, (3, 2)),
    (whole_numbers_inside, (3, 3)),
    (message_again, (np.array([0.5, 1.5]), 1)),
    (message_again, (np.array([0.5, 1.5]), 3)),
    (two_statements, (0.0, 2.0)),
    (two_statements, (0.0, 0.0)),
    (two_statements, (4.0, 2.0)),
]
