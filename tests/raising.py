"""Functions that raise exceptions when they run, each with X. pytest does not rewrite their `assert`s."""

import numpy as np

X = np.array([0.5, 2.0, 3.0])


class Diverged(Exception):
    def __init__(self, step, value):
        super().__init__(f"diverged at {step}: {value}")
        self.step, self.value = step, value


class Coded(ValueError):
    """Its constructor takes something else than its message."""

    def __init__(self, code):
        self.code = code
        self.message = f"code {code}"
        super().__init__(self.message)


class Silent(RuntimeError):
    def __init__(self, where):
        self.where = where

    def __str__(self):
        return f"somewhere near {self.where}"


class Plain(Exception):
    pass


def key_of_a_number(x):
    if x[0] > 0:
        raise KeyError(2)
    return x


def key_of_the_run(x):
    for k in range(len(x)):
        if x[k] > 1:
            raise KeyError(k)
    return x


def key_of_a_name(x):
    if x[0] > 0:
        raise KeyError("name")
    return x


def several_arguments(x):
    for k in range(len(x)):
        if x[k] > 1:
            raise ValueError("at", k, x[k], [k + 1, (x[0], None)], True)
    return x


def own_class(x):
    for k in range(len(x)):
        if x[k] > 1:
            raise Diverged(k, x[k])
    return x


def own_class_that_takes_no_message(x):
    if x[0] > 0:
        raise Coded(3)
    return x


def own_text(x):
    if x[0] > 0:
        raise Silent(x[1] * 2)
    return x


def no_arguments(x):
    if x[0] > 0:
        raise Plain
    return x


def error_number(x):
    if x[0] > 0:
        raise OSError(2, "No such file")
    return x


def number_alone(x):
    if x[0] > 0:
        raise StopAsyncIteration(x[0])
    return x


def asserted_number(x):
    assert x[0] < 0, x[0]
    return x


def asserted_tuple(x):
    assert x[0] < 0, (x[0], "is not negative")
    return x


def attribute_set_afterwards(x):
    if x[0] > 0:
        error = Plain("late")
        error.total = np.sum(x)
        raise error
    return x


def with_a_note(x):
    if x[0] > 0:
        error = ValueError("noted")
        error.add_note("look at x[0]")
        raise error
    return x


def many_numbers(x):
    if x[0] > 0:
        raise ValueError(f"{x[0]} {x[1]} {x[2]} {x[0] + 1} {x[1] + 1} {x[2] + 1} {x[0] * 2} {1j * x[1]}")
    return x


def narrow_numbers(x):
    y = x.astype(np.float32) * np.float32(0.1)
    if x[0] > 0:
        raise ValueError(f"{y[0]} {y[1]!r} {str(y[0])} {y[0]:.3f} {np.int8(len(x))!r}", y[2])
    return x


def on_the_only_path(x):
    raise Diverged(len(x), x[0])


def caught_outside(x):
    try:
        own_class(x)
    except Diverged as error:
        return x * error.step + error.value, str(error.step)
    return x, ""


def caught_and_raised_anew(x):
    try:
        return own_class(x)
    except Diverged as error:
        raise Coded(error.step) from error


def too_many(x):
    if x[0] > 0:
        raise ValueError(*[x[k % 3] + k for k in range(17)])
    return x


def holds_an_array(x):
    if x[0] > 0:
        raise Silent(x)
    return x
