"""
A GPU for tests of acs.warp where there is none: functions of Warp's runtime library that work on the CPU's memory, at once.
Kernels are those that Warp compiles for the CPU. Freed memory is overwritten, so that its use is seen.
"""

from __future__ import annotations

import contextlib
import ctypes
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import warp as wp
from warp._src import context as warp_context
from warp._src import types as warp_types

CONTEXT = 0x77
FREED = 0xDD
_CURRENT = warp_context.WP_CURRENT_STREAM


def number(value: Any) -> int:
    """An argument of a function of ctypes as a number."""
    return int(getattr(value, "value", value) or 0)


def parameter_types(kernel: Any, adjoint: bool) -> list[Any]:
    """Types of the packed arguments, without the launch's dimensions."""
    types: list[Any] = []
    for argument in kernel.adj.args:
        kind = argument.type
        if warp_types.is_array(kind):
            types.append(type(kind.__ctype__()))
        elif hasattr(kind, "ctype"):
            types.append(kind.ctype)
        else:
            types.append(kind if issubclass(kind, ctypes.Array) else kind._type_)
    return types * 2 if adjoint else types


class Function:
    """A kernel of the GPU."""

    def __init__(self, kernel: Any, body: Any, adjoint: bool) -> None:
        self.kernel, self.body, self.adjoint = weakref.ref(kernel), body, adjoint
        types = parameter_types(kernel, adjoint)
        half = len(types) // 2 if adjoint else len(types)
        self.parts = [self.struct(types[:half]), self.struct(types[half:])] if adjoint else [self.struct(types)]

    @staticmethod
    def struct(types: list[Any]) -> Any:
        return type("Arguments", (ctypes.Structure,), {"_fields_": [(f"a{i}", kind) for i, kind in enumerate(types)]})

    def run(self, addresses: Any) -> None:
        """Run it. `addresses`: where the packed arguments lie, the launch's dimensions first."""
        place, parts = 1, []
        for kind in self.parts:
            part = kind()
            for name, field in kind._fields_:
                at = ctypes.addressof(part) + getattr(kind, name).offset
                ctypes.memmove(at, addresses[place], ctypes.sizeof(field))
                place += 1
            parts.append(part)
        self.body(ctypes.c_void_p(addresses[0]), *(ctypes.byref(part) for part in parts))


_functions: dict[int, Function] = {}  # these stay, as Warp's modules do


class Core:
    """The runtime library: the CPU's functions as they are, those of a GPU in Python."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.calls: list[str] = []           # functions that send work or wait, in order
        self.functions = _functions
        self.memory: dict[int, Any] = {}
        self.freed: list[Any] = []
        self.stream, self.streams, self.captured = 0, 0x1000, -1
        self.full = False  # whether there is no memory until some is freed
        for name, function in vars(real).items():
            if name.startswith("wp_"):
                setattr(self, name, function)
        for name in [each for each in dir(type(self)) if each.startswith("wp_")]:
            setattr(self, name, self.Entry(getattr(type(self), name).__get__(self), self.calls))

    class Entry:
        """A function, with the attributes that those of ctypes have."""

        def __init__(self, function: Callable[..., Any], calls: list[str]) -> None:
            self.function, self.calls, self.argtypes = function, calls, [None] * (function.__code__.co_argcount - 1)

        def __call__(self, *args: Any) -> Any:
            if not self.function.__name__.startswith(("wp_cuda_context", "wp_cuda_stream_is", "wp_alloc_tracker")):
                self.calls.append(self.function.__name__)
            return self.function(*args)

    def wp_cuda_context_get_stream(self, context: Any) -> int:
        return self.stream

    def wp_cuda_context_set_stream(self, context: Any, stream: Any, sync: Any) -> None:
        self.stream = number(stream)

    def wp_cuda_context_get_current(self) -> int:
        return CONTEXT

    def wp_cuda_context_set_current(self, context: Any) -> None:
        pass

    def wp_cuda_context_push_current(self, context: Any) -> None:
        pass

    def wp_cuda_context_pop_current(self) -> None:
        pass

    def wp_cuda_context_synchronize(self, context: Any) -> bool:
        return True

    def wp_cuda_stream_create(self, context: Any, priority: Any) -> int:
        self.streams += 16
        return self.streams

    def wp_cuda_stream_destroy(self, context: Any, stream: Any) -> None:
        pass

    def wp_cuda_stream_register(self, context: Any, stream: Any) -> None:
        pass

    def wp_cuda_stream_unregister(self, context: Any, stream: Any) -> None:
        pass

    def wp_cuda_stream_is_capturing(self, stream: Any) -> bool:
        return number(stream) == self.captured

    def wp_cuda_stream_synchronize(self, stream: Any) -> bool:
        return True

    def wp_cuda_stream_wait_stream(self, stream: Any, other: Any, event: Any, external: Any) -> None:
        pass

    def wp_cuda_stream_wait_event(self, stream: Any, event: Any, external: Any) -> None:
        pass

    def wp_cuda_event_create(self, context: Any, flags: Any) -> int:
        return 0x99

    def wp_cuda_event_destroy(self, event: Any) -> None:
        pass

    def wp_cuda_event_record(self, event: Any, stream: Any, timing: Any, external: Any = None) -> None:
        pass

    def allocate(self, nbytes: int) -> int:
        block = ctypes.create_string_buffer(int(nbytes) + 16)
        address = -(-ctypes.addressof(block) // 16) * 16
        self.memory[address] = (block, nbytes)
        return address

    def release(self, address: Any) -> None:
        block, nbytes = self.memory.pop(number(address))
        ctypes.memset(number(address), FREED, nbytes)
        self.freed.append(block)  # stays, so that late writes hurt nobody

    def wp_alloc_device_async(self, context: Any, nbytes: int, stream: Any, tag: Any) -> int:
        return 0 if self.full else self.allocate(nbytes)

    def wp_free_device_async(self, context: Any, address: Any, node: Any) -> None:
        self.full = False
        self.release(address)

    def wp_alloc_pinned(self, nbytes: int, tag: Any) -> int:
        return self.allocate(nbytes)

    def wp_free_pinned(self, address: Any) -> None:
        self.release(address)

    def wp_memset_device(self, context: Any, to: Any, value: int, nbytes: int, stream: Any) -> bool:
        ctypes.memset(number(to), value, nbytes)
        return True

    def wp_memtile_device(self, context: Any, to: Any, source: Any, nbytes: int, times: int) -> bool:
        at = source if isinstance(source, int) else ctypes.cast(source, ctypes.c_void_p).value
        ctypes.memmove(number(to), ctypes.string_at(at, nbytes) * times, nbytes * times)
        return True

    def copy(self, to: Any, source: Any, nbytes: int) -> bool:
        ctypes.memmove(number(to), number(source), nbytes)
        return True

    def wp_memcpy_h2d(self, context: Any, to: Any, source: Any, nbytes: int, stream: Any) -> bool:
        return self.copy(to, source, nbytes)

    def wp_memcpy_d2h(self, context: Any, to: Any, source: Any, nbytes: int, stream: Any) -> bool:
        return self.copy(to, source, nbytes)

    def wp_memcpy_d2d(self, context: Any, to: Any, source: Any, nbytes: int, stream: Any) -> bool:
        return self.copy(to, source, nbytes)

    def wp_cuda_launch_kernel(self, context: Any, function: Any, dim: Any, max_blocks: Any, block_dim: Any, stride: Any,
                              cluster: Any, shared: Any, params: Any, stream: Any, apic: Any) -> int:
        self.functions[number(function)].run(params)
        return 0


def core() -> Core:
    """The library that Warp calls."""
    found: Core = warp_context.runtime.core
    return found


class _Allocator(warp_context.CudaMempoolAllocator):
    """Arrays may outlive the GPU."""

    def deallocate(self, address: int, nbytes: int) -> None:
        if isinstance(warp_context.runtime.core, Core):
            super().deallocate(address, nbytes)


_streams: weakref.WeakSet[Any] = weakref.WeakSet()


def _stream_init(original: Any) -> Callable[..., Any]:
    def init(stream: Any, *args: Any, **kwargs: Any) -> None:
        original(stream, *args, **kwargs)
        _streams.add(stream)
    return init


def _device() -> Any:
    device = object.__new__(warp_context.Device)
    device.__dict__.update(vars(warp_context.runtime.cpu_device))
    device.__dict__.update(
        alias="cuda:0", ordinal=0, is_primary=True, _context=CONTEXT, captures={}, arch=90, sm_count=1, is_uva=True,
        context_guard=warp_context.ContextGuard(device), is_mempool_supported=True, is_mempool_enabled=True,
        _custom_allocator=None, max_shared_memory_per_block=1 << 16,
        memset=lambda at, value, nbytes: core().wp_memset_device(CONTEXT, at, value, nbytes, ctypes.c_void_p(_CURRENT)),
        memtile=lambda at, source, nbytes, times: core().wp_memtile_device(CONTEXT, at, source, nbytes, times))
    device.mempool_allocator = _Allocator(device)
    device.current_allocator = device.mempool_allocator
    device._init_streams()
    return device


def _load(original: Any, device: Any) -> Callable[..., Any]:
    """Loads a module for the GPU: that of the CPU, under numbers as functions."""
    def load(module: Any, where: Any, block_dim: Any = None, *rest: Any) -> Any:
        if where is not device:
            return original(module, where, block_dim, *rest)
        found = module.execs.get((CONTEXT, block_dim))
        wanted = module.get_module_hash(block_dim)
        if found is None or found.module_hash != wanted:
            cpu = original(module, warp_context.runtime.cpu_device, 1)
            found = warp_context.ModuleExec(None, wanted, device, {}, block_dim)
            found.cpu = cpu  # unloaded with this one
            for kernel in [each for root in module._get_live_kernels() for each in (root, *root.overloads.values())]:
                if not kernel.is_generic:
                    _add(found, cpu, kernel)
            module.execs[CONTEXT, block_dim] = found
        return found
    return load


def _add(module: Any, cpu: Any, kernel: Any) -> None:
    bodies, functions = cpu.get_kernel_hooks(kernel), core().functions
    hooks = warp_context.KernelHooks(None, None)
    for name, adjoint in (("forward", False), ("backward", True)):
        if getattr(bodies, name):
            setattr(hooks, name, 0x5000 + 16 * len(functions))
            functions[getattr(hooks, name)] = Function(kernel, getattr(bodies, name), adjoint)
    module.kernel_hooks[module.get_kernel_mangled_name(kernel)] = hooks


@contextlib.contextmanager
def gpu() -> Iterator[Any]:
    """With this: Warp has a GPU, "cuda:0"."""
    wp.init()
    runtime = warp_context.runtime
    real, load, default = runtime.core, warp_context.Module.load, runtime.default_device
    stream_init = warp_context.Stream.__init__
    runtime.core = Core(real)
    warp_context.Stream.__init__ = _stream_init(stream_init)
    device = _device()
    runtime.cuda_devices.append(device)
    runtime.device_map["cuda:0"] = runtime.context_map[CONTEXT] = device
    warp_context.Module.load = _load(load, device)
    try:
        yield device
    finally:
        warp_context.Module.load, warp_context.Stream.__init__ = load, stream_init
        for stream in list(_streams):  # the real library must not destroy what it has not made
            stream.cuda_stream, event = None, stream._cached_event
            if event is not None:
                event.owner = False
        runtime.cuda_devices.remove(device)
        del runtime.device_map["cuda:0"], runtime.context_map[CONTEXT]
        runtime.set_default_device(default)
        runtime.core = real
