"""Tests of this folder import their helpers (`stand_in`, `device_arrays`, ...) by name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
