// Faults of a kernel: a touch of memory that isn't there, an address that is no multiple of what its
// type asks for, a division of integers by zero, a loop without end.
//
// In: the signal that the system sends. Out: the launch ends with an error that names the block and the thread, and
// the process lives on. Example: "8 bytes beyond the end of a device array of 40 bytes is touched by block (0,0,0)
// thread (5,0,0)". A fault that is no kernel's goes to whoever handled such signals before.
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <mutex>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine.h"

namespace cuemu {

static constexpr int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
static struct sigaction before[65];
static std::mutex installing;

static int time_signal() { return SIGRTMIN + 7; }

static void end_of_kernel(int signal, siginfo_t* information) {
    uint3 b = cuemu_now.block, t = cuemu_now.thread;
    char where[96], what[200];
    snprintf(where, sizeof where, "block (%u,%u,%u) thread (%u,%u,%u)", b.x, b.y, b.z, t.x, t.y, t.z);
    if (signal == time_signal()) fail("the kernel does not end: time is up in %s", where);
    if (signal == SIGFPE) fail("division of an integer by zero, or of the least integer by -1, by %s", where);
    if (signal == SIGILL)  // g++ was told to check addresses so, with -fsanitize=alignment
        fail("misaligned address: it is no multiple of what the type of the access asks for; %s", where);
    uintptr_t address = (uintptr_t)information->si_addr;
    uintptr_t dynamic = (uintptr_t)block.dynamic;
    if (dynamic && address >= dynamic && address < dynamic + block.dynamic_bytes + 8192)
        fail("illegal memory access: beyond the %zu bytes of dynamic shared memory by %s", block.dynamic_bytes, where);
    if (describe_address(address, what, sizeof what)) fail("illegal memory access: %s is touched by %s", what, where);
    char* stack = block.running->fiber ? block.running->fiber->stack : nullptr;
    if (stack && address >= (uintptr_t)stack && address < (uintptr_t)stack + 4096)
        fail("the stack of a thread is full: %s", where);
    if (!address)
        fail("illegal memory access: address 0, by %s", where);
    fail("illegal memory access: address %p is no memory of the device; %s", information->si_addr, where);
}

static void on_signal(int signal, siginfo_t* information, void*) {
    if (block.active) end_of_kernel(signal, information);
    if (signal == time_signal()) return;
    sigaction(signal, &before[signal], nullptr);  // not ours: the instruction faults again, for the former handler
}

// Others may have set a handler since the last launch, so each launch looks.
static void install() {
    std::lock_guard<std::mutex> lock(installing);
    struct sigaction ours, now;
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_signal;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    auto take = [&](int signal) {
        sigaction(signal, nullptr, &now);
        if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_signal) return;
        before[signal] = now;
        sigaction(signal, &ours, nullptr);
    };
    for (int signal : SIGNALS) take(signal);
    take(time_signal());
}

// Each host thread has a stack for signals (a fiber's own may be full) and a clock of the time it computes.
struct Host {
    char stack[32768];
    stack_t former;
    timer_t clock;

    Host() {
        sigevent event;
        memset(&event, 0, sizeof event);
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = time_signal();
        event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
        timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &clock);
    }
    ~Host() { timer_delete(clock); }

    void set_clock(double seconds) {
        itimerspec time;
        memset(&time, 0, sizeof time);
        time.it_value.tv_sec = (time_t)seconds;
        time.it_value.tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9);
        if (seconds > 0) time.it_interval.tv_nsec = 100000000;  // again, where the first came at a bad moment
        timer_settime(clock, 0, &time, nullptr);
    }
};

static thread_local Host host;

Watch::Watch(double seconds) {
    install();
    stack_t ours;
    memset(&ours, 0, sizeof ours);
    ours.ss_sp = host.stack;
    ours.ss_size = sizeof host.stack;
    sigaltstack(&ours, &host.former);
    host.set_clock(seconds);
}

Watch::~Watch() {
    host.set_clock(0);
    sigaltstack(&host.former, nullptr);
}

}  // namespace cuemu
