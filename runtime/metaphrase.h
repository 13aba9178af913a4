/* What the functions of a C library have in common that `metaphrase compile --to c` made.

   Each function gives 0, or why it stopped; then its results mean nothing, and `error`, where it is no NULL, says more:

       metaphrase_error error;
       double E;
       if (orbits_period(0.3, 1.0, &E, &error))
           fprintf(stderr, "%s:%d: %s: %s\n", error.file, error.line, error.exception, error.message);

   Functions may be called by several threads at once, as long as none writes what another reads. */
#ifndef METAPHRASE_H
#define METAPHRASE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    METAPHRASE_OK = 0,
    METAPHRASE_RAISED = 1,    /* the function raised an exception */
    METAPHRASE_REFUSED = 2,   /* a size for which the function was not compiled */
    METAPHRASE_NO_MEMORY = 3
};

typedef struct {
    const char *exception; /* the class, as in Python: "IndexError" */
    const char *file;      /* where the function raised it: "orbits.py", or "" where no line is known */
    int line;
    char message[244];     /* cut off where it is longer */
} metaphrase_error;

typedef struct { double real, imag; } metaphrase_complex128; /* as C's double _Complex lies in memory */
typedef struct { float real, imag; } metaphrase_complex64;

#endif
