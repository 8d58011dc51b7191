"""
Compares what operators of PyTorch change with what acs.torch takes of their schemas, over PyTorch's own samples of operators
and modules, with gradients. Takes minutes; needs PyTorch with expecttest, and no GPU.

usage: check_torch_footprints.py [DEVICE]      cpu (the default) or cuda
Exit status: 0, 1 if an operator changes what its footprint does not name.
"""

import collections
import sys
import warnings

import test_torch_footprints
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db

SAMPLES = 6


class Watch(test_torch_footprints._Watch):
    names: set = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.add(str(function))
        return super().__torch_dispatch__(function, types, args, kwargs)


def samples(make):
    """Some of PyTorch's samples; none where this device has none."""
    try:
        return list(make())[:SAMPLES]
    except Exception:
        return []


def operators(device):
    """Calls of each operator with PyTorch's samples, also in place."""
    for about in op_db:
        dtype = next((t for t in (torch.float32, torch.int64) if t in about.supported_dtypes(device)), None)
        if dtype is None:
            continue
        for sample in samples(lambda: about.sample_inputs(device, dtype, requires_grad=False)):
            yield lambda: about(sample.input, *sample.args, **sample.kwargs)
            in_place = about.get_inplace()
            if in_place and isinstance(sample.input, torch.Tensor) and sample.input.layout is torch.strided:
                yield lambda: in_place(sample.input.clone(), *sample.args, **sample.kwargs)


def differentiate(result):
    tensors = [t for t in test_torch_footprints._footprint.tensors_in(result) if t.requires_grad and t.dtype.is_floating_point]
    if tensors:
        sum(t.sum() for t in tensors).backward()


def modules(device):
    """Forward and backward passes of each module with PyTorch's samples."""
    for about in module_db:
        for training in (True, False):
            for sample in samples(lambda: about.module_inputs_func(about, device=device, dtype=torch.float32,
                                                                   requires_grad=True, training=training)):
                made, given = sample.constructor_input, sample.forward_input
                if given is not None:
                    yield lambda: differentiate(about.module_cls(*made.args, **made.kwargs).to(device).train(training)(
                        *given.args, **given.kwargs))


def main():
    device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
    warnings.simplefilter("ignore")
    wrong, calls, refused = collections.Counter(), 0, 0
    for source in (operators(device), modules(device)):
        while True:
            watch = Watch()
            call = next(source, None)
            if call is None:
                break
            try:
                with watch:
                    call()
                calls += 1
            except Exception:  # samples that this device or this mode does not take
                refused += 1
            wrong.update(watch.wrong)
    print(f"{device}: {calls} calls, {refused} refused, {len(Watch.names)} operators")
    for (name, what), count in wrong.most_common():
        print(f"  {name} {what} more than its footprint says, {count} times")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
