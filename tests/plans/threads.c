/* A program that uses the threads of a C library: what it prints says whether all is as with one thread.

   In: what to do. Out: on stdout "as with one thread", or what is not. */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared.h"

enum { N = 1 << 16 };
static double x[N], alone[N], out[N], others[2][N];

static int tasks(void) {
    int count = -2; /* . and .. */
    DIR *folder = opendir("/proc/self/task");
    while (readdir(folder)) count++;
    closedir(folder);
    return count;
}

/* Results are the same to the bit, and there are threads. */
static const char *equal(void) {
    double sums[2], s[2];
    cpu_set_t available;
    shared_set_num_threads(1);
    if (shared_spread(x, N, alone, sums, sums + 1, NULL)) return "it fails";
    if (tasks() != 1) return "one thread is not one";
    for (int threads = 2; threads < 6; threads++) {
        if (shared_set_num_threads(threads) != (threads == 2 ? 1 : threads - 1)) return "the number before is another";
        for (int k = 0; k < 4; k++) {
            memset(out, 0, sizeof out);
            if (shared_spread(x, N, out, s, s + 1, NULL)) return "it fails";
            if (memcmp(alone, out, sizeof out) || memcmp(sums, s, sizeof s)) return "results differ";
        }
    }
    if (tasks() != 5) return "the threads are not there";
    if (shared_set_num_threads(-1) != 5 || shared_set_num_threads(0) != 5) return "a number that is none was taken";
    sched_getaffinity(0, sizeof available, &available);
    return shared_set_num_threads(1) == CPU_COUNT(&available) ? NULL : "0 is not all processors";
}

/* Of lanes that fail the first is told; some behind it would never end. */
static const char *failing(void) {
    metaphrase_error error;
    shared_set_num_threads(3);
    for (int i = 0; i < N; i++) out[i] = 2 + x[i];
    out[N / 3] = 10.5;
    out[N / 3 + 1] = out[N / 2] = out[N - 5] = -1;
    out[N / 2 + 9] = 12.5;
    if (shared_roots(out, N, alone, &error) != METAPHRASE_RAISED) return "it does not fail";
    if (strcmp(error.message, "too large: 10.5 at 21845")) return error.message;
    for (int i = 0; i < N; i++) out[i] = 2 + x[i];
    if (shared_roots(out, N, alone, &error)) return "it fails again";
    for (int i = 0; i < N; i++) if (alone[i] * alone[i] - out[i] > 1e-9) return "a result is wrong";
    return NULL;
}

static void *calls(void *own) {
    double s[2];
    for (int k = 0; k < 10; k++) if (shared_spread(x, N, own, s, s + 1, NULL)) abort();
    return NULL;
}

/* Two threads call at once: one of them has the pool. */
static const char *callers(void) {
    pthread_t threads[2];
    double s[2];
    shared_spread(x, N, alone, s, s + 1, NULL);
    shared_set_num_threads(3);
    for (int k = 0; k < 2; k++) pthread_create(threads + k, NULL, calls, others[k]);
    for (int k = 0; k < 2; k++) pthread_join(threads[k], NULL);
    for (int k = 0; k < 2; k++) if (memcmp(alone, others[k], sizeof alone)) return "results differ";
    return NULL;
}

/* A child has no threads, and starts its own. */
static const char *forked(void) {
    const char *fault = equal();
    int status;
    pid_t child;
    if (fault) return fault;
    child = fork();
    if (!child) _exit(tasks() != 1 ? 1 : equal() ? 2 : failing() ? 3 : 0);
    if (waitpid(child, &status, 0) != child) return "there is no child";
    return status ? "the child fails" : failing();
}

int main(int count, char **words) {
    const char *wish = count > 1 ? words[1] : "", *fault = "it is not known what to do";
    for (int i = 0; i < N; i++) x[i] = (double)i / N - 0.25;
    if (!strcmp(wish, "equal")) fault = equal();
    if (!strcmp(wish, "failing")) fault = failing();
    if (!strcmp(wish, "callers")) fault = callers();
    if (!strcmp(wish, "forked")) fault = forked();
    puts(fault ? fault : "as with one thread");
    return fault != NULL;
}
