"""
What the functions of Warp's runtime library touch: copies, fills and helpers that send work to a device. A function that
is in no table here counts as one that may touch anything.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from .._arrays import READ, UPDATE, WRITE
from ._inference import ArrayUse, KernelUses
from ._ranges import touched

Range = tuple[int, int, int]  # first byte, number of bytes, access


def address_of(value: Any) -> int:
    """The address in an argument of a function of ctypes."""
    if isinstance(value, int):
        return value
    if value is None:
        return 0
    if isinstance(value, ctypes._Pointer):
        return ctypes.addressof(value.contents)
    if isinstance(value, (ctypes.c_void_p, ctypes.c_uint64)):
        return value.value or 0
    return ctypes.cast(value, ctypes.c_void_p).value or 0


def _copy(_: Any, to: Any, source: Any, nbytes: int, *rest: Any) -> Sequence[Range]:
    return ((address_of(to), nbytes, WRITE), (address_of(source), nbytes, READ))


def _copy_between(_: Any, to: Any, __: Any, source: Any, nbytes: int, *rest: Any) -> Sequence[Range]:
    return ((address_of(to), nbytes, WRITE), (address_of(source), nbytes, READ))


def _tile(_: Any, to: Any, source: Any, nbytes: int, times: int) -> Sequence[Range]:
    return ((address_of(to), nbytes * times, WRITE),)  # the source is in host memory, and is copied by the call


def condition(_: Any, stream: Any, arch: Any, ptx: Any, at: Any, *rest: Any) -> Sequence[Range]:
    """Of a function of loops and branches: the word on which they depend."""
    return ((address_of(at), 4, READ),)


def _sort_pairs(size: int) -> Callable[..., Sequence[Range]]:
    def sorted_pairs(keys: int, values: int, count: int, *rest: Any) -> Sequence[Range]:
        return ((keys, 2 * size * count, UPDATE), (values, 2 * 4 * count, UPDATE))  # both arrays have room for twice as many
    return sorted_pairs


def _segmented_sort(keys: int, values: int, count: int, starts: int, ends: int, segments: int) -> Sequence[Range]:
    return ((keys, 2 * 4 * count, UPDATE), (values, 2 * 4 * count, UPDATE), (starts, 4 * (segments + 1), READ),
            (ends, 4 * segments, READ))


def _array(at: Any, element: int, updates: bool) -> list[Range]:
    """The bytes of the array whose descriptor lies there."""
    return touched(KernelUses((ArrayUse(0, 0, "array", updates, element),), 0), [address_of(at)])


def _copy_arrays(_: Any, to: Any, source: Any, to_kind: int, source_kind: int, element: int) -> Sequence[Range] | None:
    if to_kind or source_kind:  # arrays with indices
        return None
    return [*_array(to, element, True), *_array(source, element, False)]


def _fill_array(_: Any, array: Any, kind: int, value: Any, element: int) -> Sequence[Range] | None:
    return None if kind else _array(array, element, True)


# What a call touches, from its arguments. None: it may touch anything.
TOUCHED: dict[str, Callable[..., Sequence[Range] | None]] = {
    "wp_memcpy_h2d": _copy,
    "wp_memcpy_d2h": _copy,
    "wp_memcpy_d2d": _copy,
    "wp_memcpy_p2p": _copy_between,
    "wp_memtile_device": _tile,
    "wp_array_copy_device": _copy_arrays,
    "wp_array_fill_device": _fill_array,
    "wp_cuda_graph_set_condition": condition,
    "wp_radix_sort_pairs_int_device": _sort_pairs(4),
    "wp_radix_sort_pairs_uint_device": _sort_pairs(4),
    "wp_radix_sort_pairs_float_device": _sort_pairs(4),
    "wp_radix_sort_pairs_int64_device": _sort_pairs(8),
    "wp_radix_sort_pairs_uint64_device": _sort_pairs(8),
    "wp_radix_sort_pairs_double_device": _sort_pairs(8),
    "wp_segmented_sort_pairs_int_device": _segmented_sort,
    "wp_segmented_sort_pairs_float_device": _segmented_sort,
}

# Functions that send no work to a device. Those whose names begin so, and those that are named.
_QUIET_PREFIXES = ("wp_alloc_tracker_", "wp_apic_", "wp_nvrtc_", "wp_is_", "wp_get_", "wp_cuda_device_", "wp_cuda_get_",
                   "wp_cuda_compile_", "wp_cuda_toolkit", "wp_cuda_driver", "wp_cuda_timing_", "wp_cuda_ipc_",
                   "wp_cuda_profiler_", "wp_cuda_configure_", "wp_cuda_is_", "wp_volume_get_", "wp_float_", "wp_half_",
                   "wp_bfloat16_", "wp_cuda_graphics_", "wp_builtin_", "wp_graph_coloring", "wp_balance_coloring")
_QUIET = frozenset((
    "wp_init", "wp_version", "wp_shutdown", "wp_set_error_output_enabled", "wp_take_cpu_block_error",
    "wp_cpu_block_runtime_get_api", "wp_cpu_launch_kernel", "wp_host_compiler_version", "wp_nanovdb_version",
    "wp_libmathdx_version", "wp_llvm_version", "wp_alloc_pinned", "wp_free_pinned",
    "wp_alloc_device_default", "wp_alloc_device_managed", "wp_cuda_load_module", "wp_cuda_set_kernel_cluster_attrs",
    "wp_cuda_context_get_current", "wp_cuda_context_set_current", "wp_cuda_context_push_current",
    "wp_cuda_context_pop_current", "wp_cuda_context_create", "wp_cuda_context_get_device_ordinal",
    "wp_cuda_context_is_primary", "wp_cuda_context_get_stream", "wp_cuda_context_set_stream", "wp_cuda_context_check",
    "wp_cuda_stream_create", "wp_cuda_stream_register", "wp_cuda_stream_unregister", "wp_cuda_stream_query",
    "wp_cuda_stream_is_capturing", "wp_cuda_stream_is_blocking", "wp_cuda_stream_get_capture_id",
    "wp_cuda_stream_get_priority", "wp_cuda_thread_exchange_capture_mode", "wp_cuda_event_create",
    "wp_cuda_event_destroy", "wp_cuda_event_query", "wp_cuda_event_elapsed_time", "wp_cuda_pointer_get_memory_kind",
    "wp_cuda_graph_create_exec", "wp_cuda_graph_exec_destroy", "wp_cuda_graph_check_conditional_body",
    "wp_cuda_graph_node_depends_on", "wp_capture_debug_dot_print", "wp_cuda_set_peer_access_enabled",
    "wp_cuda_set_mempool_access_enabled", "wp_memcpy_h2h",
))


def sends_work(name: str) -> bool:
    """Whether a function of this name may send work to a device. True for one that is not known."""
    return not (name in _QUIET or name.startswith(_QUIET_PREFIXES) or name.endswith("_host"))


# Functions that send no work, and yet depend on that of a stream: they ask how far it has come, free memory, change streams.
_OBSERVING_PREFIXES = ("wp_cuda_graphics_", "wp_cuda_ipc_", "wp_volume_get_")
_OBSERVING = frozenset(("wp_cuda_stream_query", "wp_cuda_context_check", "wp_cuda_context_set_stream", "wp_free_pinned"))


def observes_work(name: str) -> bool:
    """Whether a function of this name that sends no work needs the work before it to be in its stream."""
    return name in _OBSERVING or name.startswith(_OBSERVING_PREFIXES)
