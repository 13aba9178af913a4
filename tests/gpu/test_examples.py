"""The examples with `--device emulator`: what they check holds on the emulated GPU, too."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.turns(6)

ROOT = Path(__file__).parents[2]
LAST_WORDS = {
    "kepler": "largest difference from finite differences",
    "escape": "NumPy by hand",
    "digits": "test accuracy",
    "long_loop": "tuned with",
    "lynx": "the first three agree with SciPy's solver",
    "trajectories": "derivatives by the speed are within",
}


@pytest.mark.parametrize("name", LAST_WORDS)
def test_on_the_emulator(name):
    command = [sys.executable, str(ROOT / "examples" / f"{name}.py"), "--device", "emulator"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert LAST_WORDS[name] in done.stdout
    if name == "trajectories":
        assert "for a GPU: 1 kernel" in done.stdout
        assert "agree with SciPy's solver" in done.stdout


def test_sizes():
    command = [sys.executable, str(ROOT / "examples" / "kepler.py"), "--device", "emulator", "--size", "70"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "70 derivatives:" in done.stdout


def test_a_bundle_of_few_observations(tmp_path):
    """On the CPU: the emulator agrees, but compiles its kernels for half a minute."""
    picture = tmp_path / "knot.png"
    command = [sys.executable, str(ROOT / "examples" / "bundle.py"), "--size", "150", "--plot", str(picture)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "the loss of 150 observations is 673.766" in done.stdout
    assert "by SciPy's least_squares 673.766" in done.stdout
    assert picture.stat().st_size > 10_000
