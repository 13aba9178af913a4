// The door of a kernel: what it takes, and how the library calls it with arguments that lie in memory.
//
// In: CUEMU_KERNEL(name) after the text. Out: symbols of the shared object. `cuemu_parameters_name` is a row of
// Parameters, of which there are `cuemu_count_name`: kind f of 8 bytes is a double, kind p of f with 4 bytes each
// is a pointer to float, kind s a structure. `cuemu_call_name` calls the kernel for the thread that is now.
#pragma once

namespace cuemu {

// ---- Words for types ----------------------------------------------------------------------------------------------

template <class T> constexpr char letter() {
    if (std::is_same<T, bool>::value) return 'b';
    if (std::is_floating_point<T>::value || std::is_same<T, __half>::value) return 'f';
    if (std::is_same<T, std::complex<float>>::value || std::is_same<T, std::complex<double>>::value) return 'c';
    if (std::is_integral<T>::value) return std::is_signed<T>::value ? 'i' : 'u';
    return 's';
}

template <class T> struct Size {
    static constexpr int bytes = sizeof(T);
};
template <> struct Size<void> {
    static constexpr int bytes = 0;
};

struct Parameter {
    char kind;       // the letter, or 'p'
    char of;         // for a pointer, the letter of what it points to
    int bytes;       // of the parameter
    int bytes_each;  // of what a pointer points to; 0 for void
};

template <class T> constexpr Parameter parameter() {
    using Plain = std::remove_cv_t<T>;
    if constexpr (std::is_pointer<Plain>::value) {
        using Each = std::remove_cv_t<std::remove_pointer_t<Plain>>;
        return {'p', letter<Each>(), (int)sizeof(Plain), Size<Each>::bytes};
    } else {
        return {letter<Plain>(), letter<Plain>(), (int)sizeof(Plain), (int)sizeof(Plain)};
    }
}

template <class... T> struct Parameters {
    static constexpr int count = sizeof...(T);
    static constexpr Parameter all[sizeof...(T) + 1] = {parameter<T>()..., Parameter{}};
};

// ---- The call -----------------------------------------------------------------------------------------------------

template <class... T, size_t... I>
static inline void call_with(void (*kernel)(T...), void** arguments, std::index_sequence<I...>) {
    kernel(*(std::remove_cv_t<T>*)arguments[I]...);
}

template <class... T> static inline void call(void (*kernel)(T...), void** arguments) {
    call_with(kernel, arguments, std::index_sequence_for<T...>());
}

template <class... T> constexpr Parameters<T...> parameters(void (*)(T...)) { return {}; }

}  // namespace cuemu

#define CUEMU_EXPORTED extern "C" __attribute__((visibility("default")))

#define CUEMU_KERNEL(name)                                                                             \
    CUEMU_EXPORTED void cuemu_call_##name(void** arguments) { cuemu::call(&name, arguments); }         \
    CUEMU_EXPORTED int cuemu_count_##name() { return decltype(cuemu::parameters(&name))::count; }      \
    CUEMU_EXPORTED const cuemu::Parameter* cuemu_parameters_##name() {                                 \
        return decltype(cuemu::parameters(&name))::all;                                                \
    }

// Static shared memory is this shared object's thread-local block; a mark in it lets the library find the rest.
#define CUEMU_MODULE                                   \
    static thread_local char cuemu_mark_of_block;      \
    CUEMU_EXPORTED char* cuemu_mark() { return &cuemu_mark_of_block; }
