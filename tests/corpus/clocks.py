"""Objects with a clock: numbers, arrays and tuples in attributes that methods, branches and loops change."""

import numpy as np


class Clock:
    rate = 0.5
    steps = (0.25, np.array([1.0, 2.0]))

    def __init__(self, n):
        self.t, self.n, self.x, self.pair = 0.0, n, np.ones(2), (1.0, np.zeros(2))

    def tick(self, dt):
        self.t += self.rate * dt
        self.n += 1
        return self.t


def clock_ticks(n, dt):
    clock = Clock(n)
    return clock.tick(dt) + clock.tick(2 * dt), clock.n, clock.t


def clock_in_branch(n, dt):
    clock = Clock(n)
    if clock.n > 2:
        clock.tick(dt)
        clock.x = clock.x + clock.t
    else:
        clock.n -= 1
    return clock.x * clock.n


def clock_in_loop(first, last):
    clock = Clock(first)
    while clock.n < last:
        clock.tick(0.5)
        clock.x = clock.x * 0.5 + clock.steps[1]
        clock.pair = (clock.pair[0] + clock.t, clock.pair[1] + clock.x)
    return clock.t, clock.x.sum(), clock.pair


def clock_left_alone(dt):
    clock = Clock(1)
    if dt > 1.0:
        clock.t, clock.x, clock.pair = -1.0, np.zeros(2), (0.0, clock.x)
    return clock.t + clock.pair[0]


def clock_stops_early(dt):
    clock = Clock(1)
    for _ in range(20):
        if clock.tick(dt) > 2.0:
            return clock.n
    return -1


def clocks_apart(dt):
    first, second = Clock(1), Clock(2)
    first.t, second.t = second.t + dt, first.t + 2
    first.x, second.x = second.x, first.x + dt
    return first.t, second.t, first.x, second.x


def class_tuple_whole(x):
    p = Clock.steps
    for _ in range(20):
        p = (p[0] * 0.5, p[1] + p[0])
    return p[1] * x


CASES = [
    (clock_ticks, (3, 0.5)),
    (clock_in_branch, (3, 0.5)),
    (clock_in_branch, (0, 0.5)),
    (clock_in_loop, (1, 9)),
    (clock_in_loop, (9, 9)),
    (clock_left_alone, (0.5,)),
    (clock_left_alone, (2.0,)),
    (clock_stops_early, (0.5,)),
    (clock_stops_early, (0.01,)),
    (clocks_apart, (0.5,)),
    (class_tuple_whole, (2.0,)),
]
