"""
Kernels of Triton as ops.

    @triton.jit
    def scale(to, source, by, n, BLOCK: tl.constexpr): ...

    kernel = acs.triton.Kernel(scale, BLOCK=1024, num_warps=4)
    kernel.launch(context, grid, (to, source, 2.0, n), reads=[source], writes=[to])

Triton compiles a kernel anew for other types, for addresses and numbers that 16 divides, and for the number 1. A Kernel does the
same.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from ._arrays import place
from ._context import Context, Launch
from ._errors import unsupported as _unsupported
from ._kernels import Kernel as PlainKernel
from ._variants import variants as _declare_versions, wish_of

_TYPES = {"i1": "uint8", "u1": "uint8", "i8": "int8", "u8": "uint8", "i16": "int16", "u16": "uint16", "i32": "int32",
          "u32": "uint32", "i64": "int64", "u64": "uint64", "fp16": "float16", "fp32": "float32", "fp64": "float64"}
_ENTRY = re.compile(r"\.visible\s+\.entry\s+[\w$.]+\s*\((.*?)\)", re.DOTALL)
_ALIGNED = 16
_SCRATCH_POINTERS = 2  # pointers to scratch memory that Triton adds to a kernel's arguments, at most


def _check(context: Any) -> None:
    if not isinstance(context, Context):
        raise TypeError(f"acs: an object of type {type(context).__name__} is no acs.Context")
    if context._on_cpu:
        raise _unsupported("a kernel of Triton has no body for the CPU, and the context runs ops on the CPU")


def _class_of(value: Any, name: str) -> Hashable:
    """What Triton may compile a kernel for, if a value is no tensor: equal classes mean the same compiled kernel."""
    kind = type(value)
    if kind is int:
        if 1 < value < 1 << 31:
            return value % _ALIGNED == 0
        return value == 1, value % _ALIGNED == 0, -(1 << 31) <= value < 1 << 31, value < 1 << 63
    if kind is float:
        return float
    if kind is bool or value is None:
        return kind, value
    raise TypeError(f"acs: argument '{name}' of a Triton kernel has the type {type(value).__name__}; it must be a tensor of "
                    "PyTorch or a number")


def _classes(key: Sequence[Hashable]) -> list[str]:
    """What the arguments were compiled for, without the number of the GPU."""
    return [str(part[::2] if isinstance(part, tuple) and len(part) == 3 else part) for part in key]


class Variant:
    """One compiled kernel: what is launched, how, and where its arguments stand."""

    def __init__(self, compiled: Any, names: Sequence[str], name: str | None = None) -> None:
        about = compiled.metadata
        if getattr(about, "num_ctas", 1) != 1:
            raise _unsupported(f"Triton's kernel '{compiled.name}' uses clusters of {about.num_ctas} blocks")
        for scratch in ("global_scratch_size", "profile_scratch_size"):
            if getattr(about, scratch, 0):
                raise _unsupported(f"Triton's kernel '{compiled.name}' needs scratch memory ({scratch})")
        types = compiled.src.signature
        if not set(names) <= set(types):
            raise _unsupported("this version of Triton names the arguments of kernels in a way that is not known")
        self.places = [place for place, name in enumerate(names) if types.get(name, "constexpr") != "constexpr"]
        signature = [self._type(compiled.name, names[place], types[names[place]]) for place in self.places]
        entry = _ENTRY.search(compiled.asm["ptx"])
        if entry is None or not 0 <= entry.group(1).count(".param") - len(signature) <= _SCRATCH_POINTERS:
            raise _unsupported(f"Triton's kernel '{compiled.name}' has arguments that are not known")
        self.unused = (0,) * (entry.group(1).count(".param") - len(signature))  # pointers to scratch memory, of which it has none
        signature += ["pointer"] * len(self.unused)
        self.block = about.num_warps * getattr(about, "warp_size", 32)
        self.shared_bytes = about.shared
        self.cooperative = bool(getattr(about, "launch_cooperative_grid", False))
        self.kernel = PlainKernel(compiled, signature=", ".join(signature), name=name or compiled.name)
        self.packing = self.kernel.packing((None,) * len(signature))

    @staticmethod
    def _type(kernel: str, name: str, type_name: str) -> str:
        if type_name.startswith("*"):
            return "pointer"
        if type_name not in _TYPES:
            raise _unsupported(f"argument '{name}' of Triton's kernel '{kernel}' has the type {type_name}")
        return _TYPES[type_name]


def _shape_of(shape: Callable[..., Any] | None, variant: Variant, other: Variant, values: tuple[Any, ...]) -> Any:
    """The function for the shape of version `other`. `values`: what all arguments of the launch that compiled it were packed as."""
    def shape_of(packed: tuple[Any, ...], grid: tuple[int, int, int]) -> Any:
        if shape is None:
            return grid, other.block, other.shared_bytes
        args = list(values)  # those that Triton compiled into the kernel are the same in all its launches
        for place, value in zip(variant.places, packed):
            args[place] = value
        found = shape(tuple(args), grid)
        return None if found is None else (found, other.block, other.shared_bytes)

    return shape_of


class Kernel:
    """
    A kernel of Triton that ops launch. Make it once, and launch it often.

    ``function``   decorated with ``triton.jit`` (without ``autotune`` and ``heuristics``: give the values that they found).
    ``constants``  values of its ``tl.constexpr`` parameters, and options of Triton's compiler (``num_warps``, ``num_stages``).

    :func:`acs.variants` gives it versions: other Kernels, mostly of the same function with other constants.
    """

    def __init__(self, function: Any, **constants: Any) -> None:
        if not hasattr(function, "arg_names") or not hasattr(function, "warmup") or not hasattr(function, "params"):
            raise TypeError(f"acs: an object of type {type(function).__name__} is no kernel of triton.jit")
        for parameter in function.params:
            if parameter.name in constants and not parameter.is_constexpr:
                raise TypeError(f"acs: parameter '{parameter.name}' of kernel '{function.__name__}' is no tl.constexpr: give its "
                                "value at each launch")
        self.name = function.__name__
        self._function, self._constants = function, constants
        self._names = [p.name for p in function.params if not p.is_constexpr]
        self._variants: dict[tuple[Hashable, ...], Variant] = {}
        self._versions: dict[str, tuple[Kernel, Callable[..., Any] | None]] = {}

    def declare_versions(self, versions: Mapping[str, Any]) -> None:
        """See :func:`acs.variants`. They are compiled with the kernel, at the first launch with arguments of new types."""
        checked: dict[str, tuple[Kernel, Callable[..., Any] | None]] = {}
        for name, version in versions.items():
            of, shape = version if isinstance(version, tuple) else (version, None)
            if not isinstance(of, Kernel) or of._names != self._names:
                raise TypeError(f"acs: version '{name}' of Triton's kernel '{self.name}' must be an acs.triton.Kernel with the "
                                f"arguments {', '.join(self._names)}, or one with a function for its grid")
            checked[name] = (of, shape)
        for variant in self._variants.values():
            _declare_versions(variant.kernel, {})
        self._versions = checked
        self._variants.clear()

    def _add_versions(self, variant: Variant, args: Sequence[Any], values: Sequence[Any]) -> None:
        """Declare the versions of a kernel that was compiled now. `values`: what all of its arguments are packed as."""
        rows: dict[str, Any] = {}
        for name, (of, shape) in self._versions.items():
            other = of.variant(args)
            if other.cooperative != variant.cooperative:
                raise _unsupported(f"only one of Triton's kernel '{self.name}' and its version '{name}' is cooperative")
            rows[name] = (other.kernel, _shape_of(shape, variant, other, tuple(values)))
        _declare_versions(variant.kernel, rows)

    def variant(self, args: Sequence[Any]) -> Variant:
        """The compiled kernel for these arguments. The first time, Triton compiles it."""
        return self._look(args)[0]

    def _look(self, args: Sequence[Any], reach: Any = None) -> tuple[Variant, list[Any], dict[int, Any]]:
        """The compiled kernel for these arguments, what each is packed as, and the memory of tensors."""
        key: list[Hashable] = []
        values: list[Any] = []
        seen: dict[int, Any] = {}
        for value, name in zip(args, self._names):
            if hasattr(value, "data_ptr"):
                memory = seen[id(value)] = place(value)
                address = memory[0] if type(memory) is tuple else memory.ptr  # type: ignore[union-attr]
                gpu = value.get_device()
                if reach is not None and gpu not in reach.gpus:
                    reach.check(value, address, gpu)
                key.append((value.dtype, gpu, address % _ALIGNED == 0))
                values.append(address)
            else:
                key.append(_class_of(value, name))
                values.append(value)
        if len(args) != len(self._names):
            raise TypeError(f"acs: kernel '{self.name}' takes {len(self._names)} arguments besides its constants "
                            f"({', '.join(self._names)}), and got {len(args)}")
        variant = self._variants.get(tuple(key))
        if variant is None:
            compiled = self._function.warmup(grid=(1,), **dict(zip(self._names, args)), **self._constants)
            compiled.run  # loads it
            if self._versions:
                # profiles know kernels by their names, and other constants or types make another kernel
                key_text = repr((sorted(self._constants.items(), key=str), compiled.src.signature, _classes(key)))
                about = f"{compiled.name}.{hashlib.sha256(key_text.encode()).hexdigest()[:12]}"
                variant = Variant(compiled, self._names, about)
                self._add_versions(variant, args, values)
            else:
                variant = Variant(compiled, self._names)
            self._variants[tuple(key)] = variant
        if len(variant.places) != len(values):
            values = [values[at] for at in variant.places]
        values.extend(variant.unused)
        return variant, values, seen

    def launch(self, context: Context, grid: int | Sequence[int], args: Sequence[Any], *, reads: Sequence[Any] = (),
               writes: Sequence[Any] = (), updates: Sequence[Any] = (), share: int | None = None,
               variant: int | str | None = None, fit: int | None = None, wait: bool = True) -> int:
        """
        Queue it: see :meth:`acs.Context.launch`. ``args``: its arguments in order, without constants. Returns the op's number.

        Raises :class:`acs.UnsupportedError` for kernels with clusters or scratch memory, and what Triton's compiler raises.
        """
        _check(context)
        found, values, seen = self._look(args, context._reach)
        wish = wish_of(found.kernel, share, variant, fit)
        return context._launch(found.packing, values, seen, (found.kernel, tuple(args), tuple(reads), tuple(writes), tuple(updates)),
                               (grid, found.block, found.shared_bytes, found.cooperative, None, wish), wait, 3)

    def prepare(self, context: Context, grid: int | Sequence[int], args: Sequence[Any], *, reads: Sequence[Any] = (),
                writes: Sequence[Any] = (), updates: Sequence[Any] = (), share: int | None = None,
                variant: int | str | None = None, fit: int | None = None) -> Launch:
        """A launch to be queued later, as often as wanted: see :meth:`acs.Context.prepare`. Arguments as of :meth:`launch`."""
        _check(context)
        found, values, seen = self._look(args, context._reach)
        wish = wish_of(found.kernel, share, variant, fit)
        return context._prepare(found.packing, values, seen, (found.kernel, tuple(args), tuple(reads), tuple(writes), tuple(updates)),
                                (grid, found.block, found.shared_bytes, found.cooperative, None, wish), 3)

    def __repr__(self) -> str:
        return f"acs.triton.Kernel({self.name!r})"


__all__ = ["Kernel", "Variant"]
