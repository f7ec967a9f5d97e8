"""What stands in for parts of a package that cannot be imported without a GPU: nothing is copied, nothing computed."""

from __future__ import annotations

import importlib
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class _Bare(MetaPathFinder):
    """Finds the packages of one distribution where they lie, and leaves their ``__init__.py`` out."""

    def __init__(self, top: str) -> None:
        self._top = top

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        if fullname.partition(".")[0] != self._top:
            return None
        found = PathFinder.find_spec(fullname, path)
        if found is None or found.submodule_search_locations is None:
            return None
        bare = ModuleSpec(fullname, None, is_package=True)
        bare.submodule_search_locations = found.submodule_search_locations
        return bare


def bare_packages(top: str) -> None:
    """Import modules of the package ``top`` and below without what the ``__init__.py`` above them import."""
    sys.meta_path.insert(0, _Bare(top))


class _Anything:
    """Stands for a type, constant or decorator that is named while a module is imported, and never computes."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> _Anything:
        return self


class _Module(ModuleType):
    """A module that has every name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()


class Kernel:
    """A Triton kernel as its callers see it: ``kernel[grid](arguments)`` runs ``launch(arguments)``."""

    def __init__(self, launch: Callable[..., None]) -> None:
        self._launch = launch

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        return self._launch


def _jit(function: Callable[..., Any] | None = None, **_options: Any) -> Any:
    """``triton.jit``, with and without options: a kernel that says on its launch that it is none."""
    if function is None:
        return _jit

    def launch(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError(f"the Triton kernel {function.__name__} needs a GPU")

    return Kernel(launch)


class _Triton(MetaPathFinder, Loader):
    """The package ``triton`` with any module below it."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self, is_package=True) if fullname.partition(".")[0] == "triton" else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ == "triton":
            values = {
                "__version__": "3.0.0",
                "jit": _jit,
                "cdiv": lambda x, y: -(-x // y),
                "next_power_of_2": lambda n: 1 << (n - 1).bit_length(),
            }
            vars(module).update(values)


def triton_without_kernels() -> None:
    """Let ``import triton`` give a package whose host functions work and whose kernels refuse to be launched."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "triton"]:
        del sys.modules[name]
    sys.meta_path.insert(0, _Triton())


def replace_kernels(module: str, launches: dict[str, Callable[..., None]]) -> Any:
    """Import ``module`` and give each of its Triton kernels that is named a function to launch. Returns the module."""
    imported = importlib.import_module(module)
    for name, launch in launches.items():
        if not isinstance(getattr(imported, name), Kernel):
            raise TypeError(f"{module}.{name} is no Triton kernel")
        setattr(imported, name, Kernel(launch))
    return imported
