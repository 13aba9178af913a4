"""CUDA C becomes a cubin without a GPU: what is compiled, told, refused and kept."""

import subprocess
import sys

import pytest
from batches import batched_function
from emulated import emitted

from metaphrase.runtime import nvrtc
from metaphrase.runtime.nvrtc import KernelReport, cubin, report

TWICE = 'extern "C" __global__ void twice(double* x) { x[threadIdx.x] *= 2; }'
REVERSED = """
extern "C" __global__ void reversed_(const float* x, float* y) {
    __shared__ float s[256];
    s[threadIdx.x] = x[blockIdx.x*256 + threadIdx.x];
    __syncthreads();
    y[blockIdx.x*256 + threadIdx.x] = s[255 - threadIdx.x];
}
template <typename T> __global__ void plain(T* x) { x[threadIdx.x] += 1; }
template __global__ void plain<float>(float*);
"""
# An array that is indexed by what is only known at run time lies in memory.
INDEXED = """
extern "C" __global__ void indexed(const int* at, float* y) {
    float a[100];
    for (int i = 0; i < 100; i++) a[i] = y[i];
    float t = 0;
    for (int i = 0; i < y[0]; i++) { a[at[i]] += t; t += a[at[i + 1]]; }
    y[0] = t;
}
"""
COUNT = 64
HUNGRY = f"""
extern "C" __global__ void hungry(const double* x, double* y) {{
    {" ".join(f"double a{i} = x[{i}*blockDim.x + threadIdx.x];" for i in range(COUNT))}
    for (int k = 0; k < y[0]; k++) {{
        {" ".join(f"a{i} = a{i}*a{(7 * i + 3) % COUNT} + a{(i + 1) % COUNT};" for i in range(COUNT))}
    }}
    {" ".join(f"y[{i}*blockDim.x + threadIdx.x] = a{i};" for i in range(COUNT))}
}}
"""


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """A cache of its own; the folder."""
    monkeypatch.setenv("METAPHRASE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("METAPHRASE_CACHE", raising=False)
    return tmp_path / "cache"


def test_a_text_becomes_a_cubin_for_the_architecture():
    code = cubin(TWICE, arch="90")
    assert code.startswith(b"\x7fELF") and ".text.twice" in nvrtc.sections(code)
    assert cubin(TWICE, arch="80") != code
    assert 90 in nvrtc.find_nvrtc().architectures() and nvrtc.find_nvrtc().version() >= (12, 0)


def test_the_report_tells_of_each_kernel():
    found = report(REVERSED)
    assert set(found) == {"reversed_", "_Z5plainIfEvPT_"}
    told = found["reversed_"]
    assert told.shared_bytes == 1024 and 4 <= told.registers <= 64
    assert told.stack_bytes == told.spill_stores == told.spill_loads == 0
    assert told.constant_bytes >= 16  # its two parameters are constants


def test_the_report_finds_memory_of_a_thread():
    told = report(INDEXED)["indexed"]
    assert told.stack_bytes >= 400 and told.spill_stores == 0


def test_the_report_finds_spilled_registers():
    assert report(HUNGRY)["hungry"].spill_stores == 0
    told = report(HUNGRY, options=("-maxrregcount=32",))["hungry"]
    assert told.registers <= 32 and told.spill_stores > 0 and told.spill_loads > 0 and told.stack_bytes > 0


def test_no_kernel_spills_for_the_sake_of_a_second_block(fresh):
    """ptxas keeps a batch of merges to 32 registers, of which it wants some more."""
    text = emitted(batched_function("control_programs.merged_heights", only_floats=True)[0])[1].kernels
    _, code, log = nvrtc.find_nvrtc().compile(text, nvrtc.flags(text, "90"))
    assert [told.spill_stores for told in nvrtc.reports(log, code).values() if told.spill_stores]
    for _ in range(2):  # as it is made, and as it is kept
        assert not any(told.spill_stores or told.spill_loads for told in report(text).values())


def test_spills_of_called_functions_count():
    log = """\
ptxas info    : Compiling entry function 'k' for 'sm_90'
ptxas info    : Function properties for k
ptxas         .     8 bytes stack frame, 0 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 34 registers, used 0 barriers, 48 bytes cumulative stack size, 16 bytes smem
ptxas info    : Function properties for _Z1fPKiid
ptxas         .     40 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
"""
    assert nvrtc.reports(log) == {"k": KernelReport(34, 16, 48, 12, 20, 0)}


def test_numbers_keep_their_meaning():
    """No flushing to 0, division and square root to the bit, no fusing unless it is allowed."""
    words = nvrtc.flags(TWICE, "90")
    assert {"-arch=sm_90", "-ftz=false", "-prec-div=true", "-prec-sqrt=true", "-fmad=false"} <= set(words)
    assert "-fmad=true" in nvrtc.flags(TWICE, "90", contract=True)
    text = 'extern "C" __global__ void f(float* x) { x[0] = x[1]*x[2] + x[3]; }'
    assert cubin(text) != cubin(text, contract=True)
    assert cubin(text) != cubin(text, options=("-ftz=true",))


@pytest.mark.parametrize("header", ["cuda_fp16.h", "cuda_bf16.h", "cuda/std/complex"])
def test_headers_are_found(header):
    assert cubin(f"#include <{header}>\n{TWICE}").startswith(b"\x7fELF")


def test_a_header_that_is_not_installed_says_so(monkeypatch):
    monkeypatch.setattr(nvrtc, "include_directories", lambda: ())
    with pytest.raises(nvrtc.CudaCompileError, match=r"cuda_fp16.h is a header .* `pip install 'metaphrase\[gpu\]'`"):
        cubin(f"#include <cuda_fp16.h>\n{TWICE}")


def test_an_error_shows_the_compilers_words_and_keeps_the_text(fresh):
    with pytest.raises(nvrtc.CudaCompileError) as caught:
        cubin('extern "C" __global__ void k(float* x) {\n    x[0] = oops;\n}')
    assert 'kernel.cu(2): error: identifier "oops" is undefined' in str(caught.value)
    assert "NVRTC_ERROR_COMPILATION" in str(caught.value)
    assert "oops" in caught.value.path.read_text() and str(caught.value.path) in str(caught.value)


@pytest.mark.parametrize(
    "text, how, said",
    [
        (TWICE, {"arch": "12345"}, "invalid value for --gpu-architecture"),
        (TWICE, {"options": ("-bogus",)}, "unrecognized option -bogus"),
        ("#include <no_such.h>", {}, "no_such.h is a header that is not part of NVRTC"),
        (TWICE + "\0", {}, "a zero character"),
    ],
)
def test_what_is_refused(text, how, said):
    with pytest.raises(nvrtc.CudaCompileError, match=said):
        cubin(text, **how)


def test_a_missing_library_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(nvrtc, "_libraries", lambda toolkit: iter(()))
    nvrtc._find_nvrtc.cache_clear()
    try:
        with pytest.raises(nvrtc.NvrtcMissing, match=r"pip install 'metaphrase\[gpu\]'"):
            cubin(TWICE)
        monkeypatch.setenv("METAPHRASE_NVRTC", str(tmp_path / "none.so"))
        with pytest.raises(nvrtc.NvrtcMissing, match="is no file"):
            cubin(TWICE)
        (tmp_path / "broken.so").write_text("not a library")
        monkeypatch.setenv("METAPHRASE_NVRTC", str(tmp_path / "broken.so"))
        with pytest.raises(nvrtc.NvrtcMissing, match="does not load"):
            cubin(TWICE)
    finally:
        nvrtc._find_nvrtc.cache_clear()


def test_a_second_call_compiles_nothing(fresh, monkeypatch):
    first = nvrtc.compiled(TWICE)
    monkeypatch.setattr(nvrtc.Nvrtc, "compile", lambda *_: pytest.fail("it was compiled again"))
    second = nvrtc.compiled(TWICE)
    assert not first.cached and second.cached
    assert (first.code, first.log) == (second.code, second.log)
    assert report(TWICE)["twice"].registers > 0


@pytest.mark.parametrize("file, damage", [("library.so", "?"), ("ptxas.txt", "?"), ("ptxas.txt", ""), ("record", "")])
def test_a_damaged_entry_is_made_anew(fresh, file, damage):
    first, told = nvrtc.compiled(TWICE), report(TWICE)
    (entry,) = (path for path in fresh.iterdir() if not path.name.startswith("."))
    if damage:
        (entry / file).write_bytes((entry / file).read_bytes()[:-1] + damage.encode())
    else:
        (entry / file).unlink()
    again = nvrtc.compiled(TWICE)
    assert not again.cached and again.code == first.code and nvrtc.reports(again.log, again.code) == told
    assert nvrtc.compiled(TWICE).cached


def test_what_is_kept_depends_on_all_that_it_is_made_of(fresh):
    for how in ({}, {"arch": "80"}, {"contract": True}, {"options": ("-lineinfo",)}):
        assert not nvrtc.compiled(TWICE, **how).cached and nvrtc.compiled(TWICE, **how).cached
    assert not nvrtc.compiled(TWICE + " ").cached


def test_without_a_cache_it_is_compiled_each_time(fresh, monkeypatch):
    monkeypatch.setenv("METAPHRASE_CACHE", "0")
    assert not nvrtc.compiled(TWICE).cached and not nvrtc.compiled(TWICE).cached
    assert not fresh.exists()


def test_a_warm_start_does_not_load_the_compiler(fresh):
    program = (
        "import sys\nfrom metaphrase.runtime import nvrtc\nmade = nvrtc.compiled(sys.argv[1])\n"
        "print(made.cached, nvrtc._load.cache_info().currsize, 'cupy' in sys.modules)"
    )
    run = [sys.executable, "-P", "-c", program, TWICE]
    said = [subprocess.run(run, capture_output=True, text=True, check=True).stdout.split() for _ in range(2)]
    assert said == [["False", "1", "False"], ["True", "0", "False"]]


def test_the_package_imports_none_of_it():
    program = "import sys, metaphrase; print([m for m in sys.modules if 'nvrtc' in m or 'cuda' in m or 'cupy' in m])"
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
