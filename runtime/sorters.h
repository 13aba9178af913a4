/* NumPy's kernels that sort lines of numbers, for the context.

   In: nothing. Out: `mp_sorters`, by MP_sort_f64 and its like (abi.h), for lines of fewer than `mp_sorters_below` numbers;
   programs sort longer ones by digits. Example: `mp_find_sorters(); c->sorters = mp_sorters;` */
#ifndef METAPHRASE_SORTERS_H
#define METAPHRASE_SORTERS_H

static mp_sorter mp_sorters[MP_SORT_COUNT];
static int64_t mp_sorters_below = 0;
/* NumPy's kernels, where they sort in vectors. AMD's processors store what a mask selects so slowly that digits are
   faster for all but short lines. */
static void mp_find_sorters(void) {
#if defined(__x86_64__) && defined(__GNUC__)
    static const int types[MP_SORT_COUNT] = {NPY_INT32, NPY_UINT32, NPY_INT64, NPY_UINT64, NPY_FLOAT32, NPY_FLOAT64};
    if (!__builtin_cpu_supports("avx2")) return;
    for (int k = 0; k < MP_SORT_COUNT; k++) {
        PyArray_Descr *descr = PyArray_DescrFromType(types[k]);
        mp_sorters[k] = (mp_sorter)PyDataType_GetArrFuncs(descr)->sort[NPY_QUICKSORT];
        Py_DECREF(descr);
    }
    mp_sorters_below = __builtin_cpu_is("amd") && __builtin_cpu_supports("avx512f") ? 768 : INT64_MAX;
#endif
}

#endif
