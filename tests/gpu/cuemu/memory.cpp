// Memory of the device: each array in pages of its own, between two pages that nobody may touch.
//
// In: a number of bytes. Out: memory full of 0xCB that ends at the page behind it. An overrun is then a fault; what
// lies between the pages and the array is full of 0xC5, and a change there is found when the array is checked.
// Example, an array of 40 bytes (`|` is the edge of a page):   no access | 0xC5 ... array, 8 bytes 0xC5 | no access
#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>

#include "engine.h"

namespace cuemu {

constexpr size_t PAGE = 4096;
constexpr size_t STEP = 16;  // arrays start at multiples of it, as loads of 16 bytes require
constexpr unsigned char FRESH = 0xCB, BORDER = 0xC5;

struct Array {
    char *guard, *start;  // the page in front; the array's first byte
    size_t bytes, pages;  // `pages` without the two guards
    bool of_kernel;       // got by malloc in a kernel

    char* first_page() const { return guard + PAGE; }
    char* end_of_pages() const { return guard + PAGE * (1 + pages); }
};

struct Registry {
    std::mutex lock;
    std::map<uintptr_t, Array> arrays;  // by the address of the page in front
    size_t heap = 0;                    // bytes that kernels hold
};

// Never destroyed: arrays may be released while the process ends.
static Registry& registry() {
    static Registry& only = *new Registry;
    return only;
}

// While the lock is held the clock must not end the launch, or the lock would stay.
struct Held {
    bool active = block.active;
    Held() {
        block.active = false;
        registry().lock.lock();
    }
    ~Held() {
        registry().lock.unlock();
        block.active = active;
    }
};

static const Array* array_near(uintptr_t address) {
    auto& arrays = registry().arrays;
    auto after = arrays.upper_bound(address);
    if (after == arrays.begin()) return nullptr;
    const Array& array = std::prev(after)->second;
    return address < (uintptr_t)array.end_of_pages() + PAGE ? &array : nullptr;
}

// ---- Taking and giving back ---------------------------------------------------------------------------------------

static void* allocate(size_t bytes, bool of_kernel) {
    size_t pages = bytes ? (bytes + PAGE - 1) / PAGE : 1;
    int kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    char* guard = (char*)mmap(nullptr, (pages + 2) * PAGE, PROT_NONE, kind, -1, 0);
    if (guard == MAP_FAILED) return nullptr;
    if (mprotect(guard + PAGE, pages * PAGE, PROT_READ | PROT_WRITE)) {
        munmap(guard, (pages + 2) * PAGE);
        return nullptr;
    }
    char* start = guard + PAGE + (pages * PAGE - bytes) / STEP * STEP;
    memset(guard + PAGE, BORDER, (size_t)(start - guard) - PAGE);
    memset(start, FRESH, bytes);
    memset(start + bytes, BORDER, (size_t)(guard + PAGE * (1 + pages) - (start + bytes)));
    registry().arrays[(uintptr_t)guard] = {guard, start, bytes, pages, of_kernel};
    return start;
}

static bool release(void* start, bool of_kernel) {
    const Array* array = array_near((uintptr_t)start);
    if (!array || array->start != start || array->of_kernel != of_kernel) return false;
    char* guard = array->guard;
    size_t bytes = (array->pages + 2) * PAGE;
    registry().arrays.erase((uintptr_t)guard);
    munmap(guard, bytes);
    return true;
}

extern "C" void* cuemu_allocate(size_t bytes) {
    Held held;
    return allocate(bytes, false);
}

extern "C" void cuemu_release(void* start) {
    Held held;
    release(start, false);
}

// ---- Damage -------------------------------------------------------------------------------------------------------

static void mend(const Array* array) {
    memset(array->first_page(), BORDER, (size_t)(array->start - array->first_page()));
    char* end = array->start + array->bytes;
    memset(end, BORDER, (size_t)(array->end_of_pages() - end));
}

// Nullptr, or where bytes beside the array were written to. A kernel that left its bounds did it. It is said once.
extern "C" const char* cuemu_damage(void* start) {
    static thread_local char text[160];
    Held held;
    const Array* array = array_near((uintptr_t)start);
    if (!array) return nullptr;
    for (const char* p = array->start - 1; p >= array->first_page(); p--) {
        if ((unsigned char)*p == BORDER) continue;
        snprintf(text, sizeof text, "a byte %zd bytes before a device array of %zu bytes was written to",
                 array->start - p, array->bytes);
        mend(array);
        return text;
    }
    for (const char* p = array->start + array->bytes; p < array->end_of_pages(); p++) {
        if ((unsigned char)*p == BORDER) continue;
        snprintf(text, sizeof text, "a byte %zd bytes beyond the end of a device array of %zu bytes was written to",
                 p - (array->start + array->bytes), array->bytes);
        mend(array);
        return text;
    }
    return nullptr;
}

int describe_address(uintptr_t address, char* text, size_t room) {
    Held held;
    const Array* array = array_near(address);
    if (!array) return 0;
    uintptr_t start = (uintptr_t)array->start, end = start + array->bytes;
    if (address < start)
        snprintf(text, room, "a place %zu bytes before a device array of %zu bytes", (size_t)(start - address),
                 array->bytes);
    else if (address >= end)
        snprintf(text, room, "a place %zu bytes beyond the end of a device array of %zu bytes", (size_t)(address - end),
                 array->bytes);
    else
        snprintf(text, room, "byte %zu of a device array of %zu bytes", (size_t)(address - start), array->bytes);
    return 1;
}

// Whether the address lies in an array, or in the bytes beside it.
bool in_device_memory(uintptr_t address) {
    Held held;
    return array_near(address) != nullptr;
}

// ---- malloc and free inside kernels -------------------------------------------------------------------------------

constexpr size_t HEAP = 8 << 20;  // CUDA's default: beyond it malloc gives a null pointer

extern "C" void* cuemu_malloc(size_t bytes) {
    Held held;
    if (!bytes || registry().heap + bytes > HEAP) return nullptr;
    void* start = allocate(bytes, true);
    if (start) registry().heap += bytes;
    return start;
}

extern "C" void cuemu_free(void* start) {
    if (!start) return;
    bool known;
    if (const char* damage = cuemu_damage(start)) fail("at free in a kernel: %s", damage);
    {
        Held held;
        const Array* array = array_near((uintptr_t)start);
        size_t bytes = array ? array->bytes : 0;
        known = release(start, true);
        if (known) registry().heap -= bytes;
    }
    if (!known) fail("free in a kernel of a pointer that malloc in a kernel did not give");
}

extern "C" size_t cuemu_heap(void) {
    Held held;
    return registry().heap;
}

}  // namespace cuemu
