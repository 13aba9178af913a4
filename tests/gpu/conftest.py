"""Tests of what the GPU runs. Those marked `gpu` need one (`make gpu`); the others need NVRTC.

There are wheels of it for Linux on two processors: there a missing one is a failure, elsewhere its tests stay out.
"""

import platform
import sys

HAS_WHEELS = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")
collect_ignore = [] if HAS_WHEELS else ["test_nvrtc.py"]
