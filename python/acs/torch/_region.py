"""Regions in PyTorch's current stream."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .. import _errors, _layout
from .._context import Context
from .._kernels import Kernel
from .._region import Region as StreamRegion

_NO_WORK = frozenset(("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "detach",
                      "alias", "lift_fresh", "sym_size", "sym_stride", "sym_numel", "sym_storage_offset", "is_pinned"))
"""Operators, besides those that make views, that give the stream no work and read no memory."""


def sends_work(function: Any) -> bool:
    """Whether an operator may give the stream work, or read memory."""
    if getattr(function, "is_view", False):
        return False
    return getattr(function, "__name__", "").split(".")[0] not in _NO_WORK


class _Turns(TorchDispatchMode):
    """Puts each operator of PyTorch behind the ops of a region."""

    def __init__(self, region: "Region") -> None:
        super().__init__()
        self._region = region

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if sends_work(function):
            self._region.order()
        return function(*args, **(kwargs or {}))


class Region(StreamRegion):
    """What :func:`acs.torch.region` returns."""

    def __init__(self, context: Context) -> None:
        super().__init__(context, None)
        self._turns: _Turns | None = None
        self._device = -1

    def __enter__(self) -> "Region":
        if not self.context._on_cpu:
            self.stream, self._device = torch.cuda.current_stream(), torch.cuda.current_device()
        super().__enter__()
        self._turns = _Turns(self)
        self._turns.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._turns is not None:
            self._turns.__exit__(*error)
        super().__exit__(*error)

    def begin_ops(self) -> None:
        if not self.context._on_cpu and torch.cuda.current_stream() != self.stream:
            raise _errors.StateError("acs: PyTorch's current stream is another one than at the region's begin",
                                     _layout.ACS_ERR_STATE)
        super().begin_ops()

    def check(self, what: Any) -> None:
        """Refuse tensors of other devices, and writes that autograd would not see."""
        if not isinstance(what, tuple) or not isinstance(what[0], Kernel):
            return
        for tensor in what[1]:
            if isinstance(tensor, torch.Tensor):
                self._check_place(tensor)
        for access in what[3:5]:
            for tensor in access:
                if isinstance(tensor, torch.Tensor) and tensor.requires_grad and torch.is_grad_enabled():
                    raise _errors.ArgumentError(
                        "acs: an op writes a tensor that requires a gradient, and autograd would not see it: use "
                        "torch.no_grad(), or acs.torch.custom_op with register_autograd", _layout.ACS_ERR_ARGUMENT)

    def _check_place(self, tensor: torch.Tensor) -> None:
        at = tensor.get_device()
        if self.context._on_cpu:
            if at >= 0:
                raise _errors.ArgumentError("acs: a tensor is in the memory of a GPU, and the context runs ops on the CPU",
                                            _layout.ACS_ERR_ARGUMENT)
        elif at != self._device and (at >= 0 or not tensor.is_pinned()):
            raise _errors.ArgumentError(
                f"acs: an argument is a tensor on {tensor.device}; the ops run on cuda:{self._device}",
                _layout.ACS_ERR_ARGUMENT)

    def give_back(self) -> None:
        written = {id(tensor): tensor for entry in self._kept if _is_launch(entry[1])
                   for access in entry[1][3:5] for tensor in access
                   if isinstance(tensor, torch.Tensor) and not tensor.is_inference()}
        if written:
            torch.autograd.graph.increment_version(written.values())
        super().give_back()

    def may_drop(self, what: Any) -> bool:
        """
        PyTorch gives memory out again in the order of the stream on which it was allocated. The region's stream is behind
        the ops, and is told of tensors of other streams.
        """
        if what is None:
            return True
        if not _is_launch(what):
            return False
        tensors = {id(value): value for part in what[1:5] for value in part if isinstance(value, torch.Tensor)}
        others = sum(1 for part in what[2:5] for value in part if not isinstance(value, torch.Tensor))
        if others or len(what) > 5:  # memory of another library
            return False
        for tensor in tensors.values():
            if not tensor.is_cuda:
                return False
            tensor.record_stream(self.stream)
        return True


def _is_launch(what: Any) -> bool:
    return isinstance(what, tuple) and isinstance(what[0], Kernel)
