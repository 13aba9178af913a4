"""What a machine has, and what pays on it: all that the passes know of where a program will run.

In: nothing. Out: `Target`, a record that every pass is handed; `CPU`, the target there is: one core, vectors by the C
compiler, gcc's habits among the thresholds. The loops stage as Python is scheduled for it, too.

    schedule(function, replace(CPU, lanes=8))
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from metaphrase.late import dataclass, field

LINES, ROWS, CLOSE, EACH = "lines", "rows", "close", "each"


@dataclass(frozen=True)
class Offer:
    """A primitive that a library of the target computes.

    `layout` of its operands in memory: LINES (one dim, any stride, and what further operands there are as a whole),
    ROWS (a matrix whose rows stand one behind the other), CLOSE (a matrix whose rows or columns are without gaps, the
    rest at any distance), EACH (a line, and another of whose elements each is worked on by itself; both at any stride).
    `in_place`: it works on what lies where its result goes.
    `spaced_results`: its result may lie as its operands may; else its rows stand one behind the other.
    `dtypes`: of which operands; None: whatever the primitive takes.
    `pays_from`: multiplications up to which a nest beats it.
    `small`: the elements of the smallest matrix of a product up to which a nest beats it, where the matrices of a
    stack lie between one another: the nest goes over memory once, with what else is done to it.
    `failures`: the exception and the message of each site at which a call fails, in their order.
    `an_element`: the work that an element of the first operand is, or of the result; 0: what products of matrices are.
    `lists`: it lists the places where a mask is true: of a part of the mask a part of the list. Of a mask and an array
    it lists the elements that stand at these places; where a single number goes it says how many there are.
    `together`: so many dims of lines, or of matrices of a stack, one call takes; for others there are loops around it.
    `left_anywhere`: a signal may end a call in the middle. It takes no lock, and no memory but the arena's.
    `side_by_side`: several threads may be in calls of it at a time.
    `by_itself`: a call of so much work is shared among threads by itself; 0: none is.
    """

    operation: str
    layout: str
    in_place: bool = False
    spaced_results: bool = False
    dtypes: frozenset[str] | None = None
    pays_from: int = 0
    small: int = 0
    failures: tuple[tuple[str, str], ...] = ()
    an_element: int = 0
    lists: bool = False
    together: int = 0
    left_anywhere: bool = False
    side_by_side: bool = False
    by_itself: int = 0


@dataclass(frozen=True)
class Target:
    """Sizes are in elements, operations or rounds of a loop, where no unit is said."""

    name: str
    words: frozenset[str]  # that mean something in its text

    # memory
    stack_bytes: int  # what a function's arrays of known size may take on the stack, together
    copied: int  # elements of a matrix that is copied to be read along memory, at most
    line: int  # bytes that memory gives at a time
    streams: int  # arrays in one loop: of more, the caches and prefetchers lose track

    # work side by side
    lanes: int  # partial results, or iterations in lockstep
    sums_from: int  # a reduction of fewer rounds has one partial result
    lines_from: int  # the place of an extreme of more numbers is sought when the extreme is known
    lockstep_from: int  # fewer iterations around a `while` run one by one
    called_together: int  # rounds of a loop that waits whose calls of functions are a loop of their own; 0: none is
    together: int  # rounds of a loop around an innermost one that are done at a time
    vector_from: int  # a loop of fewer rounds is not worth vectorising
    beside: int  # elements: with so few, a round of a loop is no place for what is called for many of them at a time
    row: int  # elements: beside so many a division is nothing
    sum_from: int  # elements of a row: sums of shorter ones the processor does side by side itself
    kept_elements: int  # of an array that a loop keeps in variables
    done_on_both_sides: int  # operations of a branch: what fewer do in a loop is done, taken or not
    late_checks_from: int  # nor is a check worth moving out of one
    reads_of_a_copy: int  # as often, on the average, is an element of a copy read that pays

    block: int  # elements that go through all rounds of a loop together, at most
    kept_of_a_block: int  # numbers that are kept of them, at most, where there is a choice
    around_sweeps: int  # statements about variables between sweeps, which are done again for each block

    frame: int  # rows around what is overwritten: an array is not filled inside of so few
    frame_from: int  # unless that is fewer elements
    unknown: int  # what the rounds of a loop are taken for of which nothing is known
    far: int  # the work that an element is taken for that may lie anywhere in memory
    a_part: int  # work that is worth handing to another thread (work.py); 0: there is one thread
    apart: int  # so many times as much work is far more
    along: int  # so many elements of a row, at least, are a part's
    of_a_mask: int  # elements of a mask are looked at together: a part of it is a number of those
    noted: int  # iterations of which it is noted at a time what they add to a sum
    terms_from: int  # work of an iteration that is worth an element of an array, for another thread to add it to a sum
    few: int  # of an outer loop of fewer iterations, those of a loop inside it are shared among threads

    # kernels
    threads: int = field(default=0, kw_only=True)  # of a block, at most; 0: functions are no kernels
    blocks: int = field(default=0, kw_only=True)  # that a reduction is cut into, at most
    of_a_thread: int = field(default=0, kw_only=True)  # numbers that are worth a thread of a reduction
    apart_from: int = field(default=0, kw_only=True)  # rounds of a thread: few such loops are taken apart
    grid_from: int = field(default=0, kw_only=True)  # fewer iterations run in one block
    grid_work: int = field(default=0, kw_only=True)  # unless they have so much to do
    block_from: int = field(default=0, kw_only=True)  # a loop of fewer rounds is not shared by a block's threads
    parts_of_each: int = field(default=0, kw_only=True)  # that each of several sums is cut into, at most
    part_from: int = field(default=0, kw_only=True)  # rounds of a part of a sum, at least
    of_a_block: int = field(default=0, kw_only=True)  # numbers that a block goes over again and again, at most
    warp: int = field(default=0, kw_only=True)  # threads that run as one
    warp_most: int = field(default=0, kw_only=True)  # rounds of a loop that the threads of a warp divide
    rows_from: int = field(default=0, kw_only=True)  # fewer rows have a block each
    tile: int = field(default=0, kw_only=True)  # rows of a tile that a block reads, and columns
    wide: int = field(default=0, kw_only=True)  # bytes that a thread reads or stores at a time
    wide_from: int = field(default=0, kw_only=True)  # fewer elements have a thread each
    wide_work: int = field(default=0, kw_only=True)  # so has an element with more to compute
    atomic_floats: bool = field(default=False, kw_only=True)  # floats may be added up in any order
    regroups: bool = field(default=False, kw_only=True)  # sums of floats that the loops of the user carry
    shared_bytes: int = field(default=0, kw_only=True)  # of memory that the threads of a block share
    constant_bytes: int = field(default=0, kw_only=True)  # of memory of which all threads read one place at a time

    # functions
    whole: int  # a program of up to as many innermost loops stays one function
    call: int  # less work than a call is worth
    repeated: int  # operations that are done again for each reader rather than stored
    readers: int  # as many readers may do the cheap ones again

    # libraries
    offers: tuple[Offer, ...]

    def offer(self, operation: str) -> Offer | None:
        """How a library of the target computes a primitive, if one does."""
        return next((offer for offer in self.offers if offer.operation == operation), None)


# BLAS and LAPACK, as SciPy has them.
_COUNTED = (
    ": the BLAS and LAPACK libraries count in 32 bits, and this size or the work space that it takes is above "
    "2147483647; compute it in smaller pieces"
)
_PRODUCT = Offer(
    "dot_general",
    CLOSE,
    spaced_results=True,
    dtypes=frozenset({"f4", "f8", "c8", "c16"}),
    pays_from=24**3,
    small=1024,
    failures=(("OverflowError", "the product of matrices of {0} x {1} and {1} x {2}" + _COUNTED),),
)


def _of_lapack(operation: str) -> Offer:
    too_large = f"{operation} of a matrix of {{0}} rows and {{1}} columns" + _COUNTED
    refused = f"LAPACK refused argument {{0}} of {operation}: a fault of metaphrase; report it"
    return Offer(operation, ROWS, failures=(("OverflowError", too_large), ("RuntimeError", refused)))


def _ours(operation: str, layout: str, an_element: int, **more: Any) -> Offer:
    """What the emitted text does itself, or by NumPy's kernels."""
    return Offer(operation, layout, an_element=an_element, left_anywhere=True, side_by_side=True, **more)


_FACTORS = ("solve", "triangular_solve", "slogdet", "cholesky", "qr", "eigh", "svd", "eig")

# Cython's, C's, and those of the prelude and of the C library's headers.
_WORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while asm typeof linux
unix cdef cpdef ctypedef cimport include cppclass readonly public api gil nogil noexcept object bint operator
staticmethod DEF IF ELIF ELSE NULL c entry buffers sizes context main exit erf gamma signgam y0 y1 yn j0 j1 jn index
environ stdin stdout sin cos tan exp log sqrt floor ceil trunc
"""

CPU = Target(
    name="cpu",
    words=frozenset(_WORDS.split()),
    stack_bytes=4096,
    copied=1 << 27,
    line=64,
    streams=16,
    lanes=32,  # of fewer, gcc unrolls the inner loop away before it vectorises
    sums_from=512,
    lines_from=512,
    lockstep_from=64,
    called_together=256,
    together=4,
    vector_from=8,
    beside=64,
    row=256,
    sum_from=32,
    kept_elements=8,
    done_on_both_sides=16,
    late_checks_from=16,
    reads_of_a_copy=4,
    block=1024,
    kept_of_a_block=1 << 15,
    around_sweeps=32,
    frame=8,
    frame_from=256,
    unknown=256,
    far=32,
    apart=16,
    along=128,
    of_a_mask=64,
    noted=1 << 16,
    terms_from=128,
    few=4,
    a_part=1 << 16,  # 2 to 12 microseconds
    whole=12,  # gcc's time grows faster than a function's length
    call=200,
    repeated=12,
    readers=4,
    offers=(
        replace(_PRODUCT, side_by_side=True, by_itself=1 << 22),
        *(replace(_of_lapack(operation), side_by_side=True) for operation in _FACTORS),
        _ours("sort", LINES, 32, in_place=True),
        _ours("argsort", LINES, 32),
        _ours("ranked", LINES, 8),
        *(_ours(operation, LINES, 4, together=1) for operation in ("fft", "rfft", "irfft")),
        _ours("nonzero", LINES, 1, lists=True),
        _ours("searchsorted", EACH, 16),
        _ours("contains", EACH, 16),
    ),
)

CPU_IN_ANY_ORDER = replace(CPU, regroups=True)
ONE_THREAD = replace(CPU, a_part=0)

# CUDA C's and the prelude's.
_CUDA_WORDS = """
__global__ __device__ __shared__ class template typename namespace using new delete this private public protected friend
virtual try catch throw bool true false wchar_t and or xor not compl bitand bitor explicit mutable export
threadIdx blockIdx blockDim gridDim warpSize dim3 malloc free printf assert cuda cupy cp run round isnan isinf isfinite
"""
_NEVER = 1 << 60

CUDA = replace(
    CPU,
    name="cuda",
    words=frozenset((*_WORDS.split(), *_CUDA_WORDS.split())),
    stack_bytes=1024,  # of a thread: beyond its registers it is memory far away
    streams=64,
    lanes=1,
    sums_from=_NEVER,
    lines_from=32,
    lockstep_from=_NEVER,  # a thread has a loop of its own
    vector_from=_NEVER,
    beside=0,
    row=0,
    sum_from=_NEVER,
    called_together=0,
    together=1,
    done_on_both_sides=0,
    late_checks_from=_NEVER,
    reads_of_a_copy=_NEVER,
    a_part=0,
    whole=_NEVER,
    threads=256,
    blocks=1024,
    of_a_thread=8,
    apart_from=128,
    grid_from=1024,
    grid_work=1 << 17,
    block_from=32,
    parts_of_each=64,
    part_from=64,
    of_a_block=4096,
    warp=32,
    warp_most=512,
    rows_from=1024,
    tile=32,
    wide=16,
    wide_from=1 << 17,
    wide_work=64,
    regroups=True,
    shared_bytes=48 << 10,
    constant_bytes=8 << 10,
    offers=(
        replace(_PRODUCT, spaced_results=False, small=0),
        *(replace(_of_lapack(operation), together=_NEVER) for operation in _FACTORS),
        *(Offer(operation, LINES, together=_NEVER) for operation in ("sort", "argsort", "fft")),
        Offer("nonzero", LINES),
        Offer("searchsorted", EACH),
    ),
)

CUDA_IN_ANY_ORDER = replace(CUDA, atomic_floats=True)

__all__ = ["CLOSE", "CPU", "CPU_IN_ANY_ORDER", "CUDA", "EACH", "LINES", "ONE_THREAD", "ROWS", "Offer", "Target"]
