"""What an operator of PyTorch touches: it follows from its schema and its tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch

from .._arrays import READ, UPDATE, pack_bytes, strided

_UNSEEN_WORK = frozenset(("c10d", "_c10d_functional", "symm_mem"))
"""Operators of these libraries give work to streams of their own."""

_SILENT_WRITERS = frozenset(("native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm", "batch_norm_gather_stats",
                             "batch_norm_gather_stats_with_counts", "mkldnn_rnn_layer_backward", "_cudnn_rnn_backward",
                             "_cudnn_rnn"))
"""Operators that write arguments, of which their schemas do not tell (python/tests/check_torch_footprints.py)."""


def has_own_streams(function: Any) -> bool:
    """Whether an operator gives work to streams of its own."""
    return getattr(function, "namespace", "") in _UNSEEN_WORK


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of an argument or a result: itself, or those in lists, tuples and dictionaries."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors_in(part)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))


def pack(tensor: torch.Tensor, access: int) -> bytes | None:
    """The segments of a tensor. None: it does not say where its memory is."""
    if tensor.layout is not torch.strided or tensor.is_meta:
        return None
    if tensor.is_contiguous():
        nbytes = tensor.numel() * tensor.element_size()
        return pack_bytes(tensor.data_ptr(), nbytes, access) if nbytes else b""
    size = tensor.element_size()
    return strided(tensor.data_ptr(), tensor.shape, [step * size for step in tensor.stride()], size).packed(access)


def _pack_all(tensors: Iterable[torch.Tensor], access: int, segments: list[bytes]) -> bool:
    for tensor in tensors:
        packed = pack(tensor, access)
        if packed is None:
            return False
        segments.append(packed)
    return True


def footprint(function: Any, args: Any, kwargs: dict[str, Any], result: Any) -> bytes | None:
    """
    Segments of all that an operator touched: arguments that its schema does not call written are read, those that it does
    and the results are updated. None: it may touch anything.
    """
    schema = getattr(function, "_schema", None)
    if schema is None:
        return None
    segments: list[bytes] = []
    is_silent = getattr(function, "__name__", "").split(".")[0] in _SILENT_WRITERS
    for place, argument in enumerate(schema.arguments):
        value = args[place] if place < len(args) else kwargs.get(argument.name)
        written = is_silent or argument.alias_info is not None and argument.alias_info.is_write
        if not _pack_all(tensors_in(value), UPDATE if written else READ, segments):
            return None
    if not _pack_all(tensors_in(result), UPDATE, segments):
        return None
    return b"".join(segments)


def fresh_results(function: Any, result: Any) -> Iterator[torch.Tensor]:
    """Tensors on a GPU that an operator allocated for its result. Those that are arguments, or views of them, are not."""
    schema = getattr(function, "_schema", None)
    if schema is None:
        return
    results = result if len(schema.returns) > 1 else (result,)
    for value, about in zip(results, schema.returns):
        if about.alias_info is None:
            yield from (tensor for tensor in tensors_in(value) if tensor.is_cuda and tensor.layout is torch.strided)
