# Signals during a native call: a handler of C that runs Python's, and may leave the call.
#
# In: a call of an entry on the main thread that turns out to be long, so that it polls. Out: from then on
# Ctrl-C, or any signal whose Python handler raises, ends it at once, wherever in its loops it is; loops hold no
# test for that. Example: `status = mp_enter(c, entry, buffers, sizes)`; MP_INTERRUPTED when it was left.
#
# The handler runs Python's handler in the middle of a loop. That is safe, because emitted loops hold no lock, make
# no memory and call nothing that does, except where `busy` says so: in functions of the context and in BLAS and
# LAPACK. There the signal is noted in `pending` and looked for as soon as they return. The signals' actions are
# replaced from a call's first poll to its end only; a call that is over before that pays for one setjmp.

cdef extern from *:
    """
    #include <errno.h>
    #include <pthread.h>
    #include <setjmp.h>
    #include <signal.h>
    #if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
    typedef void *mp_place[5];                   /* a quarter of the time of setjmp */
    #define mp_mark_place __builtin_setjmp
    #define mp_go_to_place(place) __builtin_longjmp(place, 1)
    #else
    typedef jmp_buf mp_place;
    #define mp_mark_place _setjmp
    #define mp_go_to_place(place) _longjmp(place, 1)
    #endif
    #define MP_SIGNALS 32
    typedef struct mp_run {                      /* a native call on the main thread */
        mp_ctx *context;
        struct mp_run *outer;                    /* the one whose callback, or signal, this call is part of */
        mp_place place;
    } mp_run;
    static mp_run *volatile mp_running;
    static struct sigaction mp_python_action[MP_SIGNALS];
    static volatile unsigned mp_hooked;          /* bit n: signal n comes to mp_on_signal */
    static pthread_t mp_main_thread;
    static int (*mp_run_handlers)(mp_ctx *);

    static void mp_on_signal(int number) {
        int saved = errno;
        mp_run *run = mp_running;
        if (run && !pthread_equal(pthread_self(), mp_main_thread)) {    /* the kernel may pick any thread */
            pthread_kill(mp_main_thread, number);
            errno = saved;
            return;
        }
        mp_python_action[number].sa_handler(number);    /* notes that the signal came */
        if (run) {
            if (run->context->busy) run->context->pending = 1;
            else {
                int status;
                do {    /* again, if another one came at the end of it */
                    run->context->busy = 1;
                    status = mp_run_handlers(run->context);
                    run->context->busy = 0;
                } while (!status && run->context->pending);
                if (status) mp_go_to_place(run->place);
            }
        }
        errno = saved;
    }
    /* From now on a signal that has a Python handler comes to mp_on_signal. */
    static void mp_hook(int number) {
        struct sigaction action;
        if (number <= 0 || number >= MP_SIGNALS || sigaction(number, NULL, &action)) return;
        if (action.sa_flags & SA_SIGINFO || action.sa_handler == mp_on_signal || action.sa_handler == SIG_DFL
            || action.sa_handler == SIG_IGN) return;
        mp_python_action[number] = action;
        action.sa_handler = mp_on_signal;
        action.sa_flags = (action.sa_flags & ~SA_ONSTACK) | SA_NODEFER;    /* Python needs more than a spare stack */
        if (!sigaction(number, &action, NULL)) mp_hooked |= 1u << number;
    }
    static void mp_unhook(void) {
        struct sigaction action;
        for (int number = 1; number < MP_SIGNALS; number++)
            if (mp_hooked >> number & 1 && !sigaction(number, NULL, &action) && action.sa_handler == mp_on_signal)
                sigaction(number, &mp_python_action[number], NULL);
        mp_hooked = 0;
    }
    static __attribute__((noinline)) int mp_enter(mp_ctx *c, mp_entry entry, void **buffers, const int64_t *sizes) {
        if (!pthread_equal(pthread_self(), mp_main_thread)) return entry(c, buffers, sizes);
        mp_run run;
        volatile int status = MP_INTERRUPTED;
        run.context = c;
        run.outer = mp_running;
        if (!mp_mark_place(run.place)) {
            mp_running = &run;
            status = entry(c, buffers, sizes);
        }
        mp_running = run.outer;
        if (__builtin_expect(mp_hooked && !run.outer, 0)) mp_unhook();
        return status;
    }
    /* Leave the call of this context, after a handler has raised. */
    static void mp_abandon(mp_ctx *c) {
        mp_run *run = mp_running;
        if (run && run->context == c) mp_go_to_place(run->place);
    }
    static void mp_use_main_thread(unsigned long thread, int is_another) {
        mp_main_thread = (pthread_t)thread;
        if (is_another) { mp_running = NULL; mp_unhook(); }
    }
    """
    int (*mp_run_handlers)(mp_ctx*) noexcept nogil
    void mp_hook(int number) noexcept nogil
    int mp_enter(mp_ctx* c, mp_entry entry, void** buffers, const int64_t* sizes) noexcept nogil
    void mp_abandon(mp_ctx* c) noexcept nogil
    void mp_use_main_thread(unsigned long thread, bint is_another) noexcept nogil
    unsigned int mp_hooked
    void* PyEval_SaveThread() noexcept nogil
    void PyEval_RestoreThread(void* state) noexcept nogil

cdef unsigned long main_thread = 0
cdef object handler_of = _signal.getsignal
cdef tuple signal_numbers = tuple(sorted(int(number) for number in _signal.valid_signals() if number < 32))


cdef int run_handlers(mp_ctx* c) noexcept with gil:
    """Run the Python handlers of the signals that came; whether one raised."""
    try:
        c.pending = 0
        PyErr_CheckSignals()
        watch_signals()
        PyErr_CheckSignals()                 # what came before it was watched
        return 0
    except BaseException as error:
        keep_error(<Call*>c, error)
        return MP_INTERRUPTED


cdef int watch_signals() except -1:
    """Signals that have a Python handler now come to mp_on_signal, until the call ends."""
    for number in signal_numbers:
        if callable(handler_of(number)):
            mp_hook(number)
    return 0


cdef inline void leave(mp_ctx* c) noexcept nogil:
    """At the end of what must not be left in the middle. It does not return when the handler of a signal that came
    meanwhile raises."""
    cdef int status
    c.busy -= 1
    if c.pending != 0 and c.busy == 0:
        c.busy += 1
        status = run_handlers(c)
        c.busy -= 1
        if status != 0:
            mp_abandon(c)


cdef int run_program(Call* call, mp_entry entry, void** buffers, const int64_t* sizes) noexcept:
    """Call an entry with the GIL, which a poll may have released."""
    cdef int status = mp_enter(&call.context, entry, buffers, sizes)
    if call.thread_state != NULL:
        PyEval_RestoreThread(call.thread_state)
        call.thread_state = NULL
    return status


def _main_thread_after_fork():
    """The thread that forked is the child's main thread; a native call of another thread is none of the child's."""
    global main_thread
    cdef unsigned long before = main_thread
    main_thread = PyThread_get_thread_ident()
    mp_use_main_thread(main_thread, main_thread != before)


mp_run_handlers = run_handlers
main_thread = threading.main_thread().ident
mp_use_main_thread(main_thread, False)
os.register_at_fork(after_in_child=_main_thread_after_fork)
