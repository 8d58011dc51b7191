"""Regions in PyTorch's current stream."""

from __future__ import annotations

import threading
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .. import _errors, _layout
from .._arrays import Span
from .._context import Context, Launch
from .._kernels import Kernel
from .._region import KEPT_MOST
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

    supports_higher_order_operators = True

    def __init__(self, region: "Region") -> None:
        super().__init__()
        self._region = region

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if sends_work(function):
            self._region.order()
        return function(*args, **(kwargs or {}))


_NUMBERS = frozenset((int, float, bool))


def _tensor_of(array: Any) -> torch.Tensor | None:
    """The tensor that an array is, or of which a span was made."""
    if type(array) is Span:
        array = array.owner[0] if isinstance(array.owner, tuple) else array.owner
    return array if isinstance(array, torch.Tensor) else None


class _Facts:
    """What is known of a prepared launch: its tensors, and the streams of which they were told."""

    __slots__ = ("is_stream_ordered", "tensors", "written", "_streams")

    def __init__(self, is_stream_ordered: bool, tensors: list[torch.Tensor], written: list[torch.Tensor]) -> None:
        self.is_stream_ordered, self.tensors, self.written = is_stream_ordered, tensors, written
        self._streams: set[int] = set()

    def record(self, stream: Any) -> None:
        """Tell the tensors of a stream. Once is enough, since the launch keeps them alive."""
        if stream.cuda_stream not in self._streams:
            self._streams.add(stream.cuda_stream)
            for tensor in self.tensors:
                if tensor.is_cuda:
                    tensor.record_stream(stream)


class Region(StreamRegion):
    """What :func:`acs.torch.region` returns."""

    def __init__(self, context: Context, watch: bool) -> None:
        super().__init__(context, None)
        self._watch = watch
        self._turns: _Turns | None = None
        self._device = -1
        self._tensors: dict[int, torch.Tensor] = {}  # by id: what the ops since the stream's last turn use
        self._prepared: dict[int, _Facts] = {}       # by id of a prepared launch
        self._stream_ordered: list[list[Any]] = []   # as the base's list, of ops that use nothing but these tensors

    def __enter__(self) -> "Region":
        if not self.context._on_cpu:
            self.stream, self._device = torch.cuda.current_stream(), torch.cuda.current_device()
        super().__enter__()
        if self._watch:
            self._turns = _Turns(self)
            self._turns.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.check_exit()
        if self._turns is not None:
            self._turns.__exit__(*error)
            self._turns = None  # refers to the region
        super().__exit__(*error)

    def begin_ops(self) -> None:
        if self._ops_turn:
            return
        if not self.context._on_cpu and torch.cuda.current_stream() != self.stream:
            raise _errors.StateError("acs: PyTorch's current stream is another one than at the region's begin",
                                     _layout.ACS_ERR_STATE)
        super().begin_ops()

    def begin_op(self, what: Any) -> list[list[Any]]:
        """Refuses tensors of other devices, and writes that autograd would not see."""
        if len(self._stream_ordered) > KEPT_MOST and threading.get_ident() not in self.context._held:
            self.order()  # PyTorch's allocator gets their memory
        kept = super().begin_op(what)
        if type(what) is Launch:
            is_ordered = self._note_prepared(what)
        else:
            is_ordered = isinstance(what, tuple) and self._note(what)
        return self._stream_ordered if is_ordered else kept

    def _note(self, op: Any) -> bool:
        """
        Look at what an op uses, as the context keeps it, and remember its tensors. Returns whether the stream's order is
        enough for all of it: it is a launch that uses numbers and tensors of the GPU, each of which it reads or writes.
        """
        is_launch, tensors = type(op[0]) is Kernel, self._tensors
        others = len(op) - 5
        for arrays in op[2:5]:
            for array in arrays:
                if id(array) in tensors:
                    continue
                if is_launch and isinstance(array, torch.Tensor):
                    self._check_place(array)
                if isinstance(array, torch.Tensor) and array.is_cuda:
                    tensors[id(array)] = array
                else:
                    others += 1
        for arrays in op[3:5]:
            for array in arrays:
                tensor = _tensor_of(array)
                if tensor is not None:
                    self._note_write(tensor)
        if others or not is_launch or self.context._on_cpu:
            return False
        return all(type(value) in _NUMBERS or id(value) in tensors for value in op[1])

    def _note_prepared(self, launch: Launch) -> bool:
        """The same of a prepared launch, whose tensors are looked at once."""
        facts = launch.facts
        if facts is None:
            is_ordered = self._note(launch.uses)
            tensors = [array for arrays in launch.uses[2:5] for array in arrays if isinstance(array, torch.Tensor)]
            written = [_tensor_of(array) for arrays in launch.uses[3:5] for array in arrays]
            launch.facts = facts = _Facts(is_ordered, tensors, [tensor for tensor in written if tensor is not None])
        else:
            for tensor in facts.written:
                self._note_write(tensor)
        self._prepared[id(launch)] = facts
        return facts.is_stream_ordered

    @staticmethod
    def _note_write(tensor: torch.Tensor) -> None:
        """An op writes a tensor: autograd has to see that, or it is refused."""
        if tensor.requires_grad and torch.is_grad_enabled():
            raise _errors.ArgumentError(
                "acs: an op writes a tensor that requires a gradient, and autograd would not see it: use torch.no_grad(), or "
                "acs.torch.custom_op with register_autograd", _layout.ACS_ERR_ARGUMENT)
        if not tensor.is_inference():
            torch.autograd.graph.increment_version(tensor)

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

    def keep(self) -> None:
        self._kept += self._stream_ordered
        self._stream_ordered.clear()
        self._forget()
        super().keep()

    def _forget(self) -> None:
        self._tensors.clear()
        self._prepared.clear()

    def give_back(self) -> None:
        """
        PyTorch gives memory out again in the order of the stream on which it was allocated. The region's stream is behind
        the ops, and is told of tensors of other streams.
        """
        if not self.context._on_cpu:
            for tensor in self._tensors.values():
                tensor.record_stream(self.stream)
            for facts in self._prepared.values():
                facts.record(self.stream)
        self._stream_ordered.clear()  # the stream's order is enough for them
        self._forget()
        super().give_back()
