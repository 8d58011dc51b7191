"""
PyTorch and ACS in one order.

    import acs, acs.torch

    with acs.torch.region(context):            # in PyTorch's current stream, also inside torch.cuda.graph
        context.launch(kernel, grid, block, args=(y, x), reads=[x], writes=[y])

    with acs.torch.graph(torch.cuda.CUDAGraph()) as recording:    # PyTorch's own operators, side by side
        y = model(x)

docs/torch.md tells more.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

try:
    import torch
except ImportError:
    raise ImportError("acs: acs.torch needs PyTorch (pip install torch)") from None

from .. import default
from .._context import Context
from ._graph import graph
from ._region import Region


def region(context: Context | None = None, *, watch: bool = True) -> Region:
    """
    With this: ops that this thread launches on the context (None: :func:`acs.default`) and PyTorch's work in its current
    stream run as if in one order. No op comes before work that PyTorch's stream was given earlier. Operators of PyTorch come
    behind the ops launched before them, inside the region and after it. PyTorch's allocator may reuse memory as ever.

    Work that PyTorch's dispatcher does not see needs the region's ``order()`` before it: launches of Triton and CuPy,
    compiled functions, ``tolist`` on the CPU. The region puts the next op behind it. Regions nest. On a context of the CPU,
    PyTorch's operators and the region's end wait for the ops.

    ``watch=False``: operators of PyTorch are not seen either, which saves some 20 us for each of them. Those that make a
    tensor without filling it (``torch.empty``) need no order.

    Raises in it :class:`acs.ArgumentError` for launches with tensors of other devices or of the CPU that are not pinned, and
    for writes to tensors that require a gradient. Raises :class:`acs.StateError` for ops while another stream is current.
    """
    return Region(_checked(default() if context is None else context), watch)


def _checked(context: Any) -> Context:
    if not isinstance(context, Context):
        raise TypeError(f"acs: an object of type {type(context).__name__} is no acs.Context")
    return context


def custom_op(name: str, *, mutates_args: str | Iterable[str], context: Context | None = None,
              device_types: Any = None) -> Callable[[Callable[..., Any]], Any]:
    """
    Decorator: a function that launches ops becomes an operator of PyTorch, by ``torch.library.custom_op``. It runs in a
    :func:`region`, without gradients. The result has ``register_fake`` (for ``torch.compile``) and ``register_autograd``.

    ``name``          "library::operator".
    ``mutates_args``  names of the arguments that it writes; it must not return them.
    ``context``       None: :func:`acs.default` at each call.
    """
    if context is not None:
        _checked(context)

    def decorate(function: Callable[..., Any]) -> Any:
        @functools.wraps(function)
        def body(*args: Any, **kwargs: Any) -> Any:
            with torch.no_grad(), region(context):
                return function(*args, **kwargs)

        schema = torch.library.infer_schema(function, mutates_args=mutates_args)
        return torch.library.custom_op(name, body, mutates_args=mutates_args, device_types=device_types, schema=schema)

    return decorate


__all__ = ["Region", "custom_op", "graph", "region"]
