"""Kernels that are compiled anew for each configuration: CUDA C++ by NVRTC, and kernels of Triton."""

from __future__ import annotations

import contextlib
import os
import pathlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._context import Context, Launch
from .._errors import Error, unsupported
from .._kernels import Kernel
from .._variants import variants
from ._space import Config, digest

Grid = Callable[[Config, tuple[Any, ...]], Any]
"""Called with a configuration and the arguments, None instead of arrays: a grid, or None if the configuration does not fit."""


class Unfit(Exception):
    """A configuration that cannot be compiled or run."""


@dataclass
class Problem:
    """A launch to tune for: its arguments, and the arrays that it reads, writes and updates, as of :meth:`acs.Context.launch`."""

    args: Sequence[Any]
    reads: Sequence[Any] = ()
    writes: Sequence[Any] = ()
    updates: Sequence[Any] = ()
    name: str = ""
    uses: dict[str, Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.uses = {"reads": self.reads, "writes": self.writes, "updates": self.updates}


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)[:200]


class Cuda:
    """
    A kernel in CUDA C++, whose configurations are macros. NVRTC compiles it, by cuda.core or CuPy.

    ``source``     has ``extern "C" __global__ void name(...)``; the names of the configuration are macros in it.
    ``signature``  types of the arguments, as of :class:`acs.Kernel`.
    ``grid``       function of (configuration, arguments): the grid, or None if the configuration does not fit. The arguments have
                   None instead of pointers.
    ``block``      the block, or a function of the configuration.
    ``shared``     dynamic shared memory in bytes, or a function of the configuration.
    ``include``    folders with headers.
    """

    def __init__(self, source: str, name: str, *, signature: str, grid: Grid, block: Any, shared: Any = 0,
                 include: Sequence[str] = ()) -> None:
        self.source, self.name, self.signature, self.include = source, name, signature, tuple(include)
        self._grid, self._block, self._shared = grid, block, shared
        self._kernels: dict[str, Kernel] = {}
        self._pointers = [word.strip() == "pointer" for word in signature.split(",")]

    @property
    def fingerprint(self) -> str:
        """Differs where the source does."""
        return digest("cuda", self.source, self.name, self.signature)

    def text(self, config: Config) -> str:
        """The source with its macros."""
        return "".join(f"#define {name} {_macro(value)}\n" for name, value in config.items()) + "#line 1\n" + self.source

    def kernel(self, config: Config) -> Kernel:
        """The kernel of a configuration. The first time, it is compiled."""
        key = digest(self.source, config)
        if key not in self._kernels:
            function = _compiled(self.text(config), self.name, self.include)
            self._kernels[key] = Kernel(function, signature=self.signature, name=f"{self.name}.{key}")
        return self._kernels[key]

    def shape(self, config: Config, args: Sequence[Any]) -> tuple[Any, Any, int] | None:
        """Grid, block and shared memory of a launch."""
        plain = tuple(None if pointer else value for pointer, value in zip(self._pointers, args))
        grid = self._grid(config, plain)
        if grid is None:
            return None
        block = self._block(config) if callable(self._block) else self._block
        return grid, block, self._shared(config) if callable(self._shared) else self._shared

    def prepare(self, context: Context, config: Config, problem: Problem) -> Launch | None:
        """The launch of a problem. None: the configuration does not fit it. Unfit: it fits nothing."""
        shape = self.shape(config, problem.args)
        if shape is None:
            return None
        return context.prepare(self.kernel(config), shape[0], shape[1], problem.args, shared_bytes=shape[2], **problem.uses)

    def declare(self, base: Config, versions: Mapping[str, Config]) -> "CudaTuned":
        """Compile these, and declare them as versions of the first."""
        kernel = self.kernel(base)
        variants(kernel, {name: (self.kernel(config), self._shape_of(config)) for name, config in versions.items()})
        return CudaTuned(self, base)

    def _shape_of(self, config: Config) -> Any:
        return lambda args, _: self.shape(config, args)


class CudaTuned:
    """A kernel with the versions that a search found."""

    def __init__(self, family: Cuda, base: Config) -> None:
        self.kernel, self._family, self._base = family.kernel(base), family, base

    def _shape(self, args: Sequence[Any]) -> tuple[Any, Any, int]:
        shape = self._family.shape(self._base, args)
        if shape is None:
            raise ValueError(f"acs: kernel '{self._family.name}' in its base configuration does not fit these arguments")
        return shape

    def launch(self, context: Context, args: Sequence[Any], **how: Any) -> int:
        """Queue it: see :meth:`acs.Context.launch`. Its grid and block follow from the arguments."""
        grid, block, shared = self._shape(args)
        return context.launch(self.kernel, grid, block, args, shared_bytes=shared, _depth=3, **how)

    def prepare(self, context: Context, args: Sequence[Any], **how: Any) -> Launch:
        """A launch to be queued later: see :meth:`acs.Context.prepare`."""
        grid, block, shared = self._shape(args)
        return context.prepare(self.kernel, grid, block, args, shared_bytes=shared, _depth=3, **how)


class Triton:
    """
    A kernel of Triton, whose configurations are values of its ``tl.constexpr`` parameters, and options of the compiler
    (``num_warps``, ``num_stages``).

    ``function``   decorated with ``triton.jit``.
    ``grid``       function of (configuration, arguments): the grid, or None. The arguments have None instead of tensors.
    ``constants``  values that all configurations share.
    """

    def __init__(self, function: Any, *, grid: Grid, **constants: Any) -> None:
        self.function, self.name = function, function.__name__
        self._grid, self._constants = grid, constants
        self._kernels: dict[str, Any] = {}

    @property
    def fingerprint(self) -> str:
        """Differs where the source does."""
        return digest("triton", getattr(self.function, "src", ""), self.name, self._constants)

    def kernel(self, config: Config) -> Any:
        """The kernel of a configuration, an :class:`acs.triton.Kernel`."""
        from ..triton import Kernel as TritonKernel
        key = digest(config)
        if key not in self._kernels:
            self._kernels[key] = TritonKernel(self.function, **{**self._constants, **config})
        return self._kernels[key]

    def grid(self, config: Config, args: Sequence[Any]) -> Any:
        """The grid of a launch."""
        return self._grid(config, tuple(None if hasattr(value, "data_ptr") else value for value in args))

    def prepare(self, context: Context, config: Config, problem: Problem) -> Launch | None:
        """As of :class:`Cuda`."""
        grid = self.grid(config, problem.args)
        if grid is None:
            return None
        try:
            return self.kernel(config).prepare(context, grid, problem.args, **problem.uses)  # type: ignore[no-any-return]
        except (Error, TypeError):
            raise
        except Exception as error:  # what Triton's compiler raises
            raise Unfit(f"{type(error).__name__}: {_first_line(error)}") from None

    def declare(self, base: Config, versions: Mapping[str, Config]) -> "TritonTuned":
        """As of :class:`Cuda`. They are compiled at the first launch with arguments of new types."""
        from ..triton import Kernel as TritonKernel
        tuned = TritonTuned(self, base, TritonKernel(self.function, **{**self._constants, **base}))
        variants(tuned.kernel, {name: (self.kernel(config), tuned.grid_of(config)) for name, config in versions.items()})
        return tuned


class TritonTuned:
    """A kernel of Triton with the versions that a search found."""

    def __init__(self, family: Triton, base: Config, kernel: Any) -> None:
        self.kernel, self._family, self._base = kernel, family, base
        self._tensors: tuple[bool, ...] = ()  # which arguments are tensors; a version sees their addresses

    def grid_of(self, config: Config) -> Any:
        """The function for the grid of a version."""
        def grid(args: tuple[Any, ...], _: Any) -> Any:
            plain = tuple(None if tensor else value for tensor, value in zip(self._tensors, args))
            return self._family._grid(config, plain)

        return grid

    def _shape(self, args: Sequence[Any]) -> Any:
        self._tensors = tuple(hasattr(value, "data_ptr") for value in args)
        grid = self._family.grid(self._base, args)
        if grid is None:
            raise ValueError(f"acs: kernel '{self._family.name}' in its base configuration does not fit these arguments")
        return grid

    def launch(self, context: Context, args: Sequence[Any], **how: Any) -> int:
        """Queue it: see :meth:`acs.triton.Kernel.launch`. Its grid follows from the arguments."""
        return self.kernel.launch(context, self._shape(args), args, **how)  # type: ignore[no-any-return]

    def prepare(self, context: Context, args: Sequence[Any], **how: Any) -> Launch:
        """A launch to be queued later."""
        return self.kernel.prepare(context, self._shape(args), args, **how)  # type: ignore[no-any-return]


# ------------------------------------------------------------------------------------------------------------- NVRTC


def _macro(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _compiled(text: str, name: str, include: Sequence[str]) -> Any:
    """The function of a source, by cuda.core or CuPy. Unfit: it cannot be compiled."""
    core = _core()
    if core is not None:
        return _by_core(core, text, name, include)
    try:
        import cupy
    except ImportError:
        raise unsupported("NVRTC is reached by cuda.core or CuPy, and neither is installed") from None
    try:  # CuPy keeps what it compiled in its own cache
        function = cupy.RawModule(code=text, options=("-std=c++17", *(f"-I{path}" for path in include))).get_function(name)
        function.kernel  # loads it
        return function
    except Exception as error:
        raise Unfit(f"{type(error).__name__}: {_error_line(error)}") from None


def _core() -> Any:
    for path in ("cuda.core", "cuda.core.experimental"):
        try:
            core = __import__(path, fromlist=["Program"])
        except Exception:  # it may need more than its own package
            continue
        if hasattr(core, "Program"):
            return core
    return None


def _error_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if "error" in line]
    return lines[0][:200] if lines else _first_line(error)


def _by_core(core: Any, text: str, name: str, include: Sequence[str]) -> Any:
    device = core.Device()
    device.set_current()
    arch = f"sm_{device.arch}"
    path = _cache_path(digest(text, include, arch, getattr(core, "__version__", ""), _nvrtc_version()))
    with contextlib.suppress(Exception):  # a file that is missing or broken
        return core.ObjectCode.from_cubin(path.read_bytes()).get_kernel(name)
    more = {"include_path": list(include)} if include else {}
    try:
        code = core.Program(text, "c++", core.ProgramOptions(arch=arch, std="c++17", **more)).compile("cubin")
        kernel = code.get_kernel(name)
    except Exception as error:
        raise Unfit(f"{type(error).__name__}: {_error_line(error)}") from None
    _store(path, code.code)
    return kernel


def _nvrtc_version() -> str:
    with contextlib.suppress(Exception):
        from cuda.bindings import nvrtc
        return str(nvrtc.nvrtcVersion())
    return ""


def _cache_path(key: str) -> pathlib.Path:
    cache = os.environ.get("XDG_CACHE_HOME", "")
    folder = pathlib.Path(cache) if cache.startswith("/") else pathlib.Path.home() / ".cache"
    return folder / "acs" / f"cubin-{key}"


def _store(path: pathlib.Path, data: Any) -> None:
    """Keep a compiled kernel for other processes, if that is possible."""
    with contextlib.suppress(OSError, TypeError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        store(path, bytes(data))


def store(path: pathlib.Path, data: bytes) -> None:
    """Write a file beside its place, then move it there: a reader finds a whole file or none."""
    descriptor, fresh = tempfile.mkstemp(prefix=path.name + ".", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(fresh, path)
    except BaseException:
        os.unlink(fresh)
        raise
