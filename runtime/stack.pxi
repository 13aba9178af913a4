# How deep the calls of this thread may go, whatever the process's recursion limit is; see stack.h.

cdef extern from "stack.h":
    void mp_frames_at_most(int most)
    int mp_frames_deep()
    int64_t mp_stack_left()


def frames_at_most(int most):
    """This thread alone may be `most` Python frames deep."""
    mp_frames_at_most(most)


def frames_deep():
    """How many frames deep this thread is."""
    return mp_frames_deep()


def stack_left():
    """Bytes of C stack that this thread has left; 0 where that is not known."""
    return mp_stack_left()
