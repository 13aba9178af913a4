"""Statements in every nesting: loops over each kind of thing, jumps out of them, `else`, `del`."""

import numpy as np

SCALE = 1.5
STEPS = (1, 2, 3)
LIMITS = {"low": -1.0, "high": 4.0}


def elif_ladder(x):
    if x < -1:
        kind = 0
    elif x < 0:
        kind = 1
    elif x < 1:
        kind = 2
    else:
        kind = 3
    return kind * 10.0 + x


def while_else_break(x, limit):
    n = 0
    while n < 20:
        x = x * 1.5
        n += 1
        if x > limit:
            break
    else:
        x = -1.0
    return x, n


def for_else_nested(xs):
    found = 0
    for x in xs:
        for y in xs:
            if x + y == 5:
                break
        else:
            found += 1
            continue
        found += 10
        break
    else:
        found = -found
    return found


def continue_in_while_else(n):
    total = 0
    while n > 0:
        n -= 1
        if n % 3 == 0:
            continue
        total += n
    else:
        total += 100
    return total


def return_in_for_else(xs, limit):
    for x in xs:
        if x > limit:
            return x
    else:
        return -limit


def break_in_else_of_inner(xs):
    count = 0
    for x in xs:
        k = 0
        while k < 3:
            k += 1
            if x < 0:
                break
        else:
            count += k
            if x > 2:
                break
        count += 100
    return count


def range_staged_bounds(a, b):
    total = 0
    for i in range(a, b):
        total += i * i
    for i in range(b, a):
        total -= i
    return total


def range_staged_step(a, b, c):
    total = 0
    last = -1
    for i in range(a, b, c):
        total += i
        last = i
    return total, last


def range_negative_step(n):
    out = np.zeros(8)
    for i in range(n, -1, -2):
        out[i] = i + 1.0
    return out


def range_down_to_staged(n, m):
    total = 0
    for i in range(n, m, -3):
        total = total * 2 + i
    return total


def range_changed_inside(n):
    total = 0
    for i in range(n):
        n = n - 1
        total += n * i
    return total, n


def loop_variable_rebound(n):
    total = 0
    for i in range(n):
        i = i * 2
        total += i
    return total


def inner_bound_depends(n):
    total = 0
    for i in range(n):
        for j in range(i, n):
            for k in range(j - i, j + 1):
                total += i * j - k
    return total


def inner_while_depends(xs):
    total = 0.0
    for i in range(len(xs)):
        j = i
        while j > 0 and xs[j - 1] < xs[i]:
            total += xs[j]
            j -= 1
    return total


def over_rows_and_elements(a):
    total = 0.0
    for row in a:
        for x in row:
            if x < 0:
                break
            total += x
        total *= 2
    return total


def zip_of_three(xs, ys, n):
    total = 0.0
    for x, y, k in zip(xs, ys, range(n)):
        total += x * y + k
    return total


def zip_with_list(xs):
    total = 0.0
    for x, weight in zip(xs, [1.0, 2.0, 3.0]):
        total += x * weight
    return total


def enumerate_from(xs):
    total = 0.0
    for k, x in enumerate(xs, 2):
        total += k * x
    return total


def enumerate_zip(xs, ys):
    best, at = -1.0, -1
    for k, (x, y) in enumerate(zip(xs, ys)):
        if x * y > best:
            best, at = x * y, k
    return best, at


def reversed_range(n):
    total = 0
    for i in reversed(range(n)):
        total = total * 2 + i
    return total


def reversed_enumerate(xs):
    total = 0.0
    for k, x in reversed(list(enumerate(xs))):
        total = total / 2 + k * x
    return total


def over_tuple_of_mixed(x):
    total = 0.0
    for step in STEPS:
        for scale in (x, 2.0, 3):
            total += step * scale
    return total


def over_dict_items(params, x):
    total = x
    for key, value in params.items():
        if key == "bias":
            total = total + value
        else:
            total = total * value
    return total


def over_dict_keys_and_values(params):
    total = 0.0
    for key in params:
        total = total + params[key]
    for value in params.values():
        total = total * value
    for key in sorted(params.keys(), reverse=True):
        total = total - params[key]
    return total


def over_string(x):
    for letter in "aab":
        x = x + 1 if letter == "a" else x * 2
    return x


def over_nested_lists(x):
    total = 0.0
    for row in [[x, 1.0], [2.0], []]:
        for value in row:
            total += value
    return total


def unpack_in_loop(points):
    total = 0.0
    for x, *rest in points:
        total += x
        for r in rest:
            total -= r
    return total


def loop_target_is_item(xs):
    out = np.zeros(2)
    for out[1] in xs:
        out[0] += out[1]
    return out


def loop_target_is_attribute(xs):
    class Holder:
        last = 0.0

    holder = Holder()
    total = 0.0
    for holder.last in xs:
        total += holder.last
    return total, holder.last


def global_constants(x):
    return np.clip(x * SCALE, LIMITS["low"], LIMITS["high"])


def global_declared_and_read(x):
    global SCALE
    return x * SCALE


def deleted_name(x):
    y = x * 2
    del y
    y = x + 1
    return y


def deleted_then_read(x):
    y = x * 2
    if x > 0:
        del y
    return y


def deleted_item(x):
    table = {"a": x, "b": 2 * x}
    del table["a"]
    items = [x, 2 * x, 3 * x]
    del items[0]
    del items[-1:]
    return table, items


def annotated(x: float) -> float:
    y: float = x * 2
    z: int
    z = 3
    return y * z


def chained_targets(x):
    a = b = c = x * 2
    b += 1
    (d, e), [f, *g] = (a, b), (c, x, 2.0)
    return a, b, d, e, f, g


def order_of_targets(x):
    i = 0
    values = [0.0, 0.0, 0.0]
    i, values[i] = 1, x
    i, values[i] = 2, x + 1
    return i, values


def swap_in_loop(a, b, n):
    for _ in range(n):
        a, b = b, a + b
    return a, b


def pass_and_ellipsis(x):
    if x > 0:
        pass
    else:
        ...
    "a string statement"
    return x


def deep_jumps(n):
    total = 0
    for i in range(n):
        if i == 2:
            continue
        while True:
            total += 1
            if total % 7 == 0:
                break
            for j in range(3):
                if j == 1:
                    continue
                if total > 40:
                    return -total
                total += j
            else:
                if total % 5 == 0:
                    break
    return total


def return_from_three_deep(a):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            k = 0
            while k < 4:
                if a[i, j] * k > 5:
                    return i, j, k
                k += 1
    return -1, -1, -1


def while_true_return(x):
    n = 0
    while True:
        if x < 1:
            return n
        x /= 2
        n += 1


def import_inside(x):
    import math
    from operator import mul as times

    return times(math.sqrt(x), 2.0)


def assigned_in_one_loop_read_in_next(n):
    for i in range(n):
        last = i * 2
    total = 0
    for j in range(n):
        total += last + j
    return total


def loop_over_staged_slices(xs, n):
    total = 0.0
    for x in xs[:n]:
        total += x
    for x in xs[n:]:
        total -= x
    return total


def with_multiple(x):
    with np.errstate(all="ignore"), np.errstate(divide="warn"):
        y = x / 2
    return y


_A = np.array([[1.0, 2.0, -1.0], [0.5, -2.0, 3.0]])
_X = np.array([1.0, 3.0, 2.0])
CASES = [
    *((elif_ladder, (v,)) for v in (-2.0, -0.5, 0.5, 4.0)),
    (while_else_break, (1.0, 10.0)),
    (while_else_break, (1e-9, 10.0)),
    (for_else_nested, (np.array([1, 2, 3]),)),
    (for_else_nested, (np.array([1, 7, 8]),)),
    (continue_in_while_else, (10,)),
    (return_in_for_else, (_X, 1.5)),
    (return_in_for_else, (_X, 5.0)),
    (break_in_else_of_inner, (np.array([-1.0, 1.0, 3.0, 1.0]),)),
    (range_staged_bounds, (-2, 5)),
    (range_staged_bounds, (5, -2)),
    (range_staged_step, (1, 10, 3)),
    (range_staged_step, (10, 1, -4)),
    (range_negative_step, (7,)),
    (range_negative_step, (4,)),
    (range_down_to_staged, (10, -4)),
    (range_down_to_staged, (-4, 10)),
    (range_changed_inside, (5,)),
    (loop_variable_rebound, (5,)),
    (inner_bound_depends, (6,)),
    (inner_while_depends, (np.array([3.0, 1.0, 2.0, 5.0, 0.0, 4.0]),)),
    (over_rows_and_elements, (_A,)),
    (zip_of_three, (_X, _X + 1, 2)),
    (zip_of_three, (_X, _X + 1, 9)),
    (zip_with_list, (_X,)),
    (enumerate_from, (_X,)),
    (enumerate_zip, (_X, _X[::-1].copy())),
    (reversed_range, (6,)),
    (reversed_enumerate, (_X,)),
    (over_tuple_of_mixed, (2.0,)),
    (over_dict_items, ({"scale": 2.0, "bias": _X}, _X)),
    (over_dict_keys_and_values, ({"b": 2.0, "a": 3.0},)),
    (over_string, (2.0,)),
    (over_nested_lists, (2.5,)),
    (unpack_in_loop, ([(1.0, 2.0, 3.0), (4.0,)],)),
    (unpack_in_loop, (_A,)),
    (loop_target_is_item, (_X,)),
    (loop_target_is_attribute, (_X,)),
    (global_constants, (_X,)),
    (global_declared_and_read, (2.0,)),
    (deleted_name, (2.0,)),
    (deleted_then_read, (-2.0,)),
    (deleted_then_read, (2.0,)),
    (deleted_item, (2.0,)),
    (annotated, (2.0,)),
    (chained_targets, (2.0,)),
    (order_of_targets, (2.0,)),
    (swap_in_loop, (1.0, 2.0, 5)),
    (pass_and_ellipsis, (2.0,)),
    (deep_jumps, (5,)),
    (deep_jumps, (12,)),
    (return_from_three_deep, (_A,)),
    (return_from_three_deep, (-_A,)),
    (while_true_return, (20.0,)),
    (import_inside, (2.0,)),
    (assigned_in_one_loop_read_in_next, (4,)),
    (loop_over_staged_slices, (_X, 2)),
    (with_multiple, (2.0,)),
]
