"""torch's deprecated mixed-precision names, and the names that replaced them."""

from __future__ import annotations

from amplint.frozen import dataclass

_AUTOCAST = ("enabled", "dtype", "cache_enabled")
_SCALER = ("init_scale", "growth_factor", "backoff_factor", "growth_interval", "enabled")
DEPRECATED_SINCE = (2, 4)
_SUCCESSORS = {"amp.autocast": (1, 13), "amp.GradScaler": (2, 3)}
"""The oldest release that has the successor, where it is older than the deprecation; 1.13 is the oldest tried."""


@dataclass(frozen=True, slots=True)
class Legacy:
    """A deprecated name: what replaces it (below ``torch``), for which device, and the parameters it takes itself.

    ``positional`` says how many arguments it takes by position, at least and at most.
    """

    target: str
    device: str
    parameters: tuple[str, ...] = ()
    positional: tuple[int, int] = (0, 0)
    default_dtype: str | None = None

    @property
    def is_class(self) -> bool:
        return self.target in ("amp.autocast", "amp.GradScaler")

    @property
    def is_decorator(self) -> bool:
        return self.target.startswith("amp.custom_")

    @property
    def successor_since(self) -> tuple[int, int]:
        """The release of torch from which on it can be replaced."""
        return _SUCCESSORS.get(self.target, DEPRECATED_SINCE)

    @property
    def modern(self) -> str:
        """The replacement as a message shows it."""
        if self.is_decorator:
            return f'torch.{self.target}(..., device_type="{self.device}")'
        if self.is_class or self.positional[1]:
            return f'torch.{self.target}("{self.device}", ...)'
        return f'torch.{self.target}("{self.device}")'


def _table() -> dict[str, Legacy]:
    table = {}
    for device, dtype in (("cuda", "float16"), ("cpu", "bfloat16")):
        autocast = Legacy("amp.autocast", device, _AUTOCAST, (0, 3), dtype)
        scaler = Legacy("amp.GradScaler", device, _SCALER, (0, 5))
        for module in ("", ".autocast_mode"):
            table[f"torch.{device}.amp{module}.autocast"] = autocast
        for module in ("", ".grad_scaler"):
            table[f"torch.{device}.amp{module}.GradScaler"] = scaler
    for module in ("torch.cuda.amp", "torch.cuda.amp.autocast_mode"):
        table[f"{module}.custom_fwd"] = Legacy("amp.custom_fwd", "cuda", ("fwd", "cast_inputs"), (0, 1))
        table[f"{module}.custom_bwd"] = Legacy("amp.custom_bwd", "cuda", ("bwd",), (0, 1))
    for name, device in (("gpu", "cuda"), ("cpu", "cpu"), ("ipu", "ipu"), ("xla", "xla")):
        table[f"torch.get_autocast_{name}_dtype"] = Legacy("get_autocast_dtype", device)
        table[f"torch.set_autocast_{name}_dtype"] = Legacy("set_autocast_dtype", device, positional=(1, 1))
        if name != "gpu":
            table[f"torch.is_autocast_{name}_enabled"] = Legacy("is_autocast_enabled", device)
            table[f"torch.set_autocast_{name}_enabled"] = Legacy("set_autocast_enabled", device, positional=(1, 1))
    return table


LEGACY = _table()
"""By qualified name; a test confirms each against torch's own warnings."""
LEGACY_MODULES = frozenset(
    {name.rpartition(".")[0] for name, legacy in LEGACY.items() if legacy.is_class or legacy.is_decorator}
)
"""Modules that hold nothing but deprecated names."""
