"""A device's autocast over CPU kernels: what would run on cuda, mps or xpu runs here, with real values and errors.

``with emulated("cuda"): ...`` is the whole of it.  It needs torch, at least 2.4.
"""

from amplint.emulation.context import emulated
from amplint.emulation.kernels import calls, install, installed
from amplint.emulation.policy import DEVICES, policies

__all__ = ["DEVICES", "calls", "emulated", "install", "installed", "policies"]
