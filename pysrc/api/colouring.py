"""Colourings of a sparse matrix: groups of columns of which no two have a number in the same row.

In: a pattern, as a boolean `scipy.sparse` matrix. Out: a colour for each column. One derivative along the sum of a
group's unit vectors gives all columns of the group (Curtis, Powell & Reid, On the Estimation of Sparse Jacobian
Matrices, 1974). Example: a tridiagonal matrix of any size has three colours, 0 1 2 0 1 2 ... Of a symmetric matrix one
of two mirror images is enough, and fewer colours do: one with a full first row and column has two.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def column_colours(pattern: Any) -> np.ndarray:
    """A colour for each column, greedily, those with the most neighbours first (Coleman & Moré, Estimation of Sparse
    Jacobian Matrices and Graph Coloring Problems, 1983). A neighbour is counted once for each row that both share;
    columns without a number have colour 0."""
    rows, columns = pattern.tocsr(), pattern.tocsc()
    in_row = np.diff(rows.indptr)
    degrees = np.add.reduceat(np.append(in_row[columns.indices] - 1, 0), columns.indptr[:-1])
    degrees[np.diff(columns.indptr) == 0] = -1
    colours = np.zeros(pattern.shape[1], np.int64)
    taken = [0] * pattern.shape[0]  # for each row the colours that it has, as bits
    bounds, places = columns.indptr.tolist(), columns.indices.tolist()
    for column in np.argsort(-degrees, kind="stable").tolist():
        mine = places[bounds[column] : bounds[column + 1]]
        forbidden = 0
        for row in mine:
            forbidden |= taken[row]
        free = ~forbidden & (forbidden + 1)
        colours[column] = free.bit_length() - 1
        for row in mine:
            taken[row] |= free
    return colours


def star_colours(pattern: Any) -> np.ndarray:
    """A colour for each column of a symmetric pattern, so that of each number or its mirror image no other in its row
    has its column's colour: neighbours differ, and no path of four vertices has two colours (Coleman & Moré 1984;
    Gebremedhin, Manne & Pothen, What Color Is Your Jacobian?, 2005, section 4). Greedy, most neighbours first."""
    count = pattern.shape[0]
    bounds, places = pattern.indptr.tolist(), pattern.indices.tolist()
    near = [[j for j in places[bounds[k] : bounds[k + 1]] if j != k] for k in range(count)]
    bit = [0] * count  # the colour of a vertex as a bit; 0: none yet
    once, twice = [0] * count, [0] * count  # colours that one neighbour has, that several have
    barred = [0] * count  # what a further neighbour must not have: there is a path of three to complete
    for v in sorted(range(count), key=lambda k: -len(near[k])):
        forbidden = 0
        for w in near[v]:
            forbidden |= bit[w] | barred[w] if bit[w] else once[w]
        free = bit[v] = ~forbidden & (forbidden + 1)
        for w in near[v]:
            if bit[w] & twice[v]:
                barred[w] |= free
            if not once[w] & free:
                once[w] |= free
            elif twice[w] & free:
                barred[v] |= bit[w]
            else:
                twice[w] |= free
                for u in near[w]:
                    if bit[u] == free:
                        barred[u] |= bit[w]
    return np.array([each.bit_length() - 1 for each in bit], np.int64)


def alone_in_row(rows: np.ndarray, colours: np.ndarray, count: int) -> np.ndarray:
    """For each number of a matrix whether its column's colour, one of `count`, is that of no other in its row."""
    places = rows * count + colours
    return np.bincount(places, minlength=1)[places] == 1


__all__ = ["alone_in_row", "column_colours", "star_colours"]
