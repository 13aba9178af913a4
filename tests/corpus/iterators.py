"""Generator expressions, `map`, `filter`, `next` and `in` whose tests depend on what the run knows only."""

import itertools

import numpy as np

X = np.array([0.5, -1.25, 2.0, 3.5, -0.75])
NEGATIVE = -np.ones(5)


def first_above(x, limit):
    return next(v for v in x if v > limit)


def first_or(x, limit):
    return next((v * 2 for v in x if v > limit), -1.0)


def first_place(x, limit):
    place = next((k for k, v in enumerate(x) if v > limit), None)
    return -1 if place is None else place


def first_of_pairs(x, total):
    return next(((i, j) for i in range(len(x)) for j in range(i) if x[i] + x[j] > total), (0, 0))


def first_of_few(a, b, c):
    return next((v for v in (a, b, c) if v > 0), 0.0)


def first_guarded(x, k):
    return next(1 / v for v in x if v != 0 and 1 / v < k)  # nothing is divided behind the first


def first_in_loop(x, rounds):
    total = 0.0
    for k in range(rounds):
        total += next((v for v in x if v > k), 0.5)
    return total


def next_of_filter(x):
    return next(filter(lambda v: v > 1, x), 0.0), next(map(np.exp, x))


def next_twice(pairs, x):
    steps = (a * x for a in pairs)
    first = next(steps)
    return first - next(steps), sum(steps)


def filtered(x, limit):
    total = 0.0
    for v in filter(lambda v: v > limit, x):
        total += v * v
    below = list(filter(lambda v: v < limit, x))
    return total, np.prod(np.array(below)), len([*filter(None, x)])


def filter_then_map(x):
    doubled = map(lambda v: v * 2, filter(lambda v: v > 0, x))
    return sum(list(doubled)[1:]), sum(map(lambda a, b: a * b, x, x[::-1]))


def filter_left_early(x, limit):
    total = 0.0
    for v in filter(lambda v: v > 0, x):
        if total > limit:
            break
        total += v
    else:
        total = -total
    return total


def named_generator(x):
    squares = (v * v for v in x if v > 0)
    total = sum(squares)
    return total, sum(squares)  # the second is empty


def generator_as_argument(x, limit):
    def longest(values):
        best = 0.0
        for v in values:
            best = max(best, v)
        return best

    return longest(v for v in x if v < limit), longest(abs(v) for v in x)


def loop_over_generator(x):
    total = 0.0
    for v, w in ((a, b) for a in x for b in x if a < b):
        total += v * w
    return total


def in_generator(x, wanted):
    return wanted in (v * 2 for v in x), wanted not in (v for v in x if v > 0)


def any_of_named(x, limit):
    tests = (v > limit for v in x)
    others = map(lambda v: v < limit, x)
    return any(tests), all(others)


def in_filter(x, wanted):
    if wanted in filter(lambda v: v > 0, x):
        return 1
    return 0


def largest_or(x, limit):
    return max((v for v in x if v < limit), default=0.0), min((v for v in x if v > limit), default=9.0)


def largest_by(x, limit):
    return max((v for v in x if v > limit), key=lambda v: -abs(v - 1))


def largest_pair(x, limit):
    squares = ((v * v, k) for k, v in enumerate(x) if v < limit)
    return min(squares, key=lambda pair: pair[0], default=(0.0, -1))


def sorted_some(x, limit):
    some = sorted(v for v in x if v > limit)
    back = sorted((v for v in x if v > limit), key=lambda v: v * v, reverse=True)
    return some[0] - 2 * some[-1], 3 * back[0] + back[-1]


def counted(x, limit):
    return sum(1 for v in x if v > limit), sum(v > limit for v in x), sum(2.5 for v in x if v > limit)


def starred(x, limit):
    return sum([*(v for v in x if v > limit), 2.0]), len([0.0, *filter(lambda v: v < limit, x), 1.0])


def starred_in_order(x):
    parts = iter([x, x * 2, x * 3])
    return [next(parts), *parts, x]


def enumerated_some(x, limit):
    total = 0.0
    for k, v in enumerate(v for v in x if v > limit):
        total += k * v
    return total


def until_large(x, limit):
    total = 0.0
    for k, v in enumerate(itertools.takewhile(lambda v: v < limit, x)):
        total += k * v
    return total, sum(itertools.takewhile(lambda v: v < limit, x))


def from_large_on(x, limit):
    total = 0.0
    for v in itertools.dropwhile(lambda v: v < limit, x):
        if v < -0.7:
            break
        total += v
    return total, next(itertools.dropwhile(lambda v: v < limit, x), -1.0)


def known_ends(x):
    steps = itertools.takewhile(lambda k: k < 3, itertools.count())
    rest = list(itertools.dropwhile(lambda k: k < 3, range(6)))
    return sum(x[k] for k in steps) + sum(rest)


def compressed(x):
    rest = list(itertools.filterfalse(lambda v: v > 0, x))
    return sum(itertools.compress(x, (v > 0 for v in x))), len(rest)


def accumulated(x):
    largest = list(itertools.accumulate(x, max))
    return largest, list(itertools.accumulate(x, lambda a, v: a * 0.5 + v, initial=1.0))


def best_pair(x, limit):
    best, where = max((v * v, k) for k, v in enumerate(x))
    return best, where, min(((v, k) for k, v in enumerate(x) if v > limit), default=(0.0, -1))


def from_iterator(x, limit):
    return np.sum(np.fromiter((v for v in x if v > limit), float)), np.fromiter(map(abs, x), float)


def in_list_of_known(x, wanted):
    return wanted in list(abs(v) for v in x), wanted in (x[0], x[2]), wanted in [v for v in x if v > 0]


def starmapped(x, limit):
    above = [(a, b) for a in x for b in x if a > b + limit]
    total = 1.5
    for v in itertools.starmap(max, zip(x, x[::-1])):
        if v < limit:
            break
        total += v
    products = sum(itertools.starmap(lambda a, b, c=2.0: a * b + c, above))
    return list(itertools.starmap(min, zip(x, x[1:]))), products, list(itertools.starmap(pow, [(x[0], 2)])), total


CASES = [
    (starmapped, (np.array([1.5, -2.0, 4.0, 0.25]), 0.5)),
    (starmapped, (np.array([1.5, -2.0, 4.0, 0.25]), 1.0)),
    (in_list_of_known, (X, 2.0)),
    (in_list_of_known, (X, 0.75)),
    (from_iterator, (X, 0.6)),
    (until_large, (X, 2.5)),
    (until_large, (X, 0.6)),
    (until_large, (X, 9.0)),
    (from_large_on, (X, 1.0)),
    (from_large_on, (X, 9.0)),
    (known_ends, (X,)),
    (compressed, (X,)),
    (accumulated, (X,)),
    (best_pair, (X, 0.6)),
    (best_pair, (X, 9.0)),
    (first_above, (X, 1.0)),
    (first_above, (X, -5.0)),
    (first_above, (X, 9.0)),
    (first_or, (X, 1.0)),
    (first_or, (X, 9.0)),
    (first_place, (X, 1.0)),
    (first_place, (X, 9.0)),
    (first_of_pairs, (X, 2.0)),
    (first_of_pairs, (X, 9.0)),
    (first_of_few, (-1.0, 2.0, 3.0)),
    (first_of_few, (-1.0, -2.0, -3.0)),
    (first_guarded, (np.array([0.0, 0.25, 0.5]), 3.0)),
    (first_in_loop, (X + 0.125, 4)),
    (next_of_filter, (X,)),
    (next_of_filter, (NEGATIVE,)),
    (next_twice, ((3.0, 1.0, 4.0, 5.0), 2.0)),
    (filtered, (X, 0.6)),
    (filter_then_map, (X,)),
    (filter_left_early, (X, 2.0)),
    (filter_left_early, (X, 20.0)),
    (named_generator, (X,)),
    (generator_as_argument, (X, 3.0)),
    (loop_over_generator, (X,)),
    (in_generator, (X, 4.0)),
    (in_generator, (X, 2.0)),
    (any_of_named, (X, 3.0)),
    (any_of_named, (X, 9.0)),
    (in_filter, (X, 2.0)),
    (in_filter, (X, -1.25)),
    (largest_or, (X, 1.0)),
    (largest_or, (X, 9.0)),
    (largest_by, (X, 0.0)),
    (largest_by, (X, 9.0)),
    (largest_pair, (X, 1.0)),
    (largest_pair, (X, -9.0)),
    (sorted_some, (X, 0.0)),
    (counted, (X, 0.0)),
    (starred, (X, 0.0)),
    (starred_in_order, (X,)),
    (enumerated_some, (X, 0.0)),
]
