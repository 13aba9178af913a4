"""Tests of what the GPU runs. Those marked `gpu` need one (`make gpu`); others need NVRTC, or run kernels on the CPU.

There are wheels of NVRTC for Linux on two processors: there a missing one is a failure, elsewhere its tests stay out.
Tests of this folder import their helpers (`stand_in`, `emulated`, ...) by name, and those of tests/native.
"""

import platform
import sys
from pathlib import Path

HAS_WHEELS = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")
collect_ignore = [] if HAS_WHEELS else ["test_nvrtc.py"]
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "native")]
