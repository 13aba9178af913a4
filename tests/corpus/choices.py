"""One of several Python values, which one the run decides: texts, members of enums, functions."""

import enum

import numpy as np


class Mode(enum.Enum):
    UP = 1
    DOWN = 2


def sign_in_words(x):
    return "positive" if x > 0 else "negative" if x < 0 else "zero"


def tested_and_looked_up(x):
    word = "pos" if x > 0 else "neg"
    rates = {"pos": 0.5, "neg": 2.0}
    factor = rates[word] * x
    if word == "pos":
        return factor + 1.0
    return factor


def asked_in_many_ways(x):
    word = "pos" if x > 0 else "negative"
    return word in ("pos", "zero"), word != "pos", len(word), word.upper(), word + "!", word is None, word[0]


def printed(x):
    word = "a" if x > 0 else "b"
    print("mode", word)
    print(f"{word}: {x:.2f}")
    return x, [word, {"word": word}]


def member(x):
    mode = Mode.UP if x > 0 else Mode.DOWN
    value = x if mode is Mode.UP else -x
    return mode, value, mode.value, mode == Mode.DOWN


def two_choices(x, y):
    a = "u" if x > 0 else "v"
    b = "v" if y > 0 else "u"
    return a == b, a + b, (None if x > 1 else a)


def machine(x, steps):
    state, total = "idle", 0.0
    for k in range(steps):
        if state == "idle":
            if x > k:
                state = "run"
        elif state == "run":
            total += x
            if total > 10:
                state = "done"
    return total, state


class Door:
    def __init__(self):
        self.state, self.turns = "closed", 0

    def step(self, force):
        if self.state == "closed" and force > 1:
            self.state = "open"
            self.turns += 1
        elif self.state == "open" and force < 0:
            self.state = "closed"


def door(forces):
    it = Door()
    for force in forces:
        it.step(force)
    return it.state, it.turns


def counted_by_word(values):
    counts, words = {"up": 0, "down": 0}, []
    for value in values:
        word = "up" if value > 1 else "down"
        counts[word] += 1
        words.append(word)
    return counts, words


def last_word(values):
    found = None
    for value in values:
        if value > 1:
            found = "big"
        elif value < -1:
            found = "small"
    return found


def while_toggling(x):
    state = "even"
    while x > 0:
        state = "odd" if state == "even" else "even"
        x = x - 1
    return state


def matched(x):
    word = "pos" if x > 0 else "neg"
    match word:
        case "pos":
            return x * 2
        case "neg":
            return x * 3


def name_of_largest(x):
    names = ["a", "b", "a"]
    name = names[np.argmax(x)]
    return name, name == "a"


def one_of_functions(x):
    function = np.sin if x > 0 else np.cos
    return function(x)


def only_known_word(x):
    word = "pos" if x > 0 else "neg"
    return {"pos": x}[word]


def caught_word(x):
    word = "pos" if x > 0 else "neg"
    try:
        return {"pos": x}[word]
    except KeyError:
        return -1.0


def empty_or_word(x):
    word = "" if x > 0 else "b"
    if word:
        return 1
    return 5


def told_in_words(x):
    if x > 0:
        said = f"up by {x:.2f}"
    else:
        said = f"down by {-x:.2f}"
    steps = 0
    while x > 1:
        x, steps = x / 2, steps + 1
    return said, ["%d steps" % steps, f"{x!r}" + "."], {"why": f"{steps:03d}"}  # noqa: UP031


_FORCES = np.array([2.0, 0.5, -3.0, 5.0])
_OF_A_SIGN = (
    sign_in_words,
    tested_and_looked_up,
    asked_in_many_ways,
    printed,
    member,
    matched,
    one_of_functions,
    only_known_word,
    caught_word,
    empty_or_word,
    told_in_words,
)
CASES = [
    *((function, (x,)) for function in _OF_A_SIGN for x in (1.5, -2.5)),
    (sign_in_words, (0.0,)),
    *((two_choices, (x, y)) for x in (2.0, 0.5, -1.0) for y in (1.0, -1.0)),
    *((machine, (x, steps)) for x in (3.0, -1.0) for steps in (9, 0)),
    (door, (_FORCES,)),
    (counted_by_word, (_FORCES,)),
    *((last_word, (forces,)) for forces in (_FORCES, -_FORCES[:3], 0 * _FORCES)),
    *((while_toggling, (x,)) for x in (3.0, 4.0, -1.0)),
    *((name_of_largest, (np.roll(_FORCES[:3], k),)) for k in range(3)),
]
