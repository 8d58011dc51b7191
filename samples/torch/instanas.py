#!/usr/bin/env python3
"""
A network that is different for each image, by kernels of Triton through ACS, beside PyTorch.

usage: instanas.py [--images N] [--repeats N] [--compile]

After InstaNAS (Cheng et al., 2018): 17 layers with five candidate blocks each. A controller looks at an image and picks any of
them; the results of those that it picked are summed. So no graph of the network can be made in advance, and a stream runs the
blocks one after another. ACS finds that the blocks of a layer, and whole images, do not depend on each other.

Prints the time for all images: PyTorch's own operators (eager, and with --compile through torch.compile); Triton's kernels in
one stream, one by one and as a graph for each block; and the same kernels through ACS, launched one by one and prepared
(acs.Context.prepare). Also whether the results agree. Graphs and prepared launches write to memory that stays theirs.
Exit status: 0, 1 if a result is wrong, 77 where PyTorch, Triton or a GPU is missing.
"""
import argparse
import statistics
import sys
import time

try:
    import torch
    import triton
    import triton.language as tl
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)
if not torch.cuda.is_available():
    print("skipped: PyTorch finds no GPU")
    sys.exit(77)

import acs
import acs.torch
import acs.triton
from torch.nn import functional

WIDTHS = (16, 24, 24, 32, 32, 32, 64, 64, 64, 64, 96, 96, 96, 160, 160, 160, 320)
STRIDES = (1, 1, 1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1)
CANDIDATES = ((6, 3), (6, 5), (3, 3), (3, 5), None)  # expansion and kernel of a bottleneck; None: two convolutions of 3 x 3


@triton.jit
def conv_kernel(to, source, weight, bias, inputs, outputs, high, wide, out_high, out_wide, stride,
                SIZE: tl.constexpr, RELU: tl.constexpr, OUT: tl.constexpr, IN: tl.constexpr, PIXELS: tl.constexpr):
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    out = tl.program_id(1) * OUT + tl.arange(0, OUT)
    y, x = pixel // out_wide, pixel % out_wide
    total = tl.zeros((OUT, PIXELS), tl.float32)
    for step in range(0, SIZE * SIZE):
        at_y = y * stride + step // SIZE - SIZE // 2
        at_x = x * stride + step % SIZE - SIZE // 2
        inside = (at_y >= 0) & (at_y < high) & (at_x >= 0) & (at_x < wide) & (pixel < out_high * out_wide)
        for first in range(0, inputs, IN):
            channel = first + tl.arange(0, IN)
            w = tl.load(weight + (out[:, None] * inputs + channel[None, :]) * SIZE * SIZE + step,
                        (out[:, None] < outputs) & (channel[None, :] < inputs), 0.0)
            s = tl.load(source + (channel[:, None] * high + at_y[None, :]) * wide + at_x[None, :],
                        (channel[:, None] < inputs) & inside[None, :], 0.0)
            total += tl.dot(w, s, input_precision="ieee")
    total += tl.load(bias + out, out < outputs, 0.0)[:, None]
    if RELU:
        total = tl.maximum(total, 0.0)
    tl.store(to + out[:, None] * out_high * out_wide + pixel[None, :], total,
             (out[:, None] < outputs) & (pixel[None, :] < out_high * out_wide))


@triton.jit
def depthwise_kernel(to, source, weight, bias, high, wide, out_high, out_wide, stride,
                     SIZE: tl.constexpr, PIXELS: tl.constexpr):
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    channel = tl.program_id(1)
    y, x = pixel // out_wide, pixel % out_wide
    total = tl.zeros((PIXELS,), tl.float32) + tl.load(bias + channel)
    for step in range(0, SIZE * SIZE):
        at_y = y * stride + step // SIZE - SIZE // 2
        at_x = x * stride + step % SIZE - SIZE // 2
        inside = (at_y >= 0) & (at_y < high) & (at_x >= 0) & (at_x < wide) & (pixel < out_high * out_wide)
        s = tl.load(source + (channel * high + at_y) * wide + at_x, inside, 0.0)
        total += s * tl.load(weight + channel * SIZE * SIZE + step)
    tl.store(to + channel * out_high * out_wide + pixel, tl.maximum(total, 0.0), pixel < out_high * out_wide)


@triton.jit
def sum_kernel(to, a, b, c, d, e, count, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(a + at, at < count) + tl.load(b + at, at < count)
    if PARTS > 2:
        total += tl.load(c + at, at < count)
    if PARTS > 3:
        total += tl.load(d + at, at < count)
    if PARTS > 4:
        total += tl.load(e + at, at < count)
    tl.store(to + at, total, at < count)


class Stream:
    """Launches kernels in PyTorch's current stream, as Triton does."""

    def launch(self, function, grid, args, constants, reads, to):
        function[grid](*args, **constants)


class ThroughAcs:
    """Launches kernels as ops: `reads` and `to` are all that a kernel touches."""

    def __init__(self, context):
        self.context, self.kernels = context, {}

    def launch(self, function, grid, args, constants, reads, to):
        key = (function, *constants.values())
        kernel = self.kernels.get(key)
        if kernel is None:
            kernel = self.kernels[key] = acs.triton.Kernel(function, **constants)
        kernel.launch(self.context, grid, args, reads=reads, writes=[to])


class Layers:
    """What all kinds of layers have in common."""

    def stem(self, x, weights):
        return self.conv(x, weights, 1, True)

    def block(self, x, weights, stride):
        if len(weights) == 2:
            return self.conv(self.conv(x, weights[0], stride, True), weights[1], 1, False)
        return self.conv(self.depthwise(self.conv(x, weights[0], 1, True), weights[1], stride), weights[2], 1, False)


class TritonLayers(Layers):
    """The layers by kernels of Triton."""

    def __init__(self, launcher):
        self.launcher = launcher

    def conv(self, x, weights, stride, relu):
        weight, bias = weights
        inputs, high, wide = x.shape
        outputs, size = weight.shape[0], weight.shape[2]
        out_high, out_wide = (high + stride - 1) // stride, (wide + stride - 1) // stride
        y = torch.empty((outputs, out_high, out_wide), device=x.device)
        grid = ((out_high * out_wide + 31) // 32, (outputs + 31) // 32)
        self.launcher.launch(conv_kernel, grid,
                             (y, x, weight, bias, inputs, outputs, high, wide, out_high, out_wide, stride),
                             {"SIZE": size, "RELU": relu, "OUT": 32, "IN": 16, "PIXELS": 32}, (x, weight, bias), y)
        return y

    def depthwise(self, x, weights, stride):
        weight, bias = weights
        channels, high, wide = x.shape
        out_high, out_wide = (high + stride - 1) // stride, (wide + stride - 1) // stride
        y = torch.empty((channels, out_high, out_wide), device=x.device)
        self.launcher.launch(depthwise_kernel, ((out_high * out_wide + 127) // 128, channels),
                             (y, x, weight, bias, high, wide, out_high, out_wide, stride),
                             {"SIZE": weight.shape[2], "PIXELS": 128}, (x, weight, bias), y)
        return y

    def sum(self, parts):
        y = torch.empty_like(parts[0])
        padded = [*parts, *[parts[0]] * (5 - len(parts))]
        self.launcher.launch(sum_kernel, ((y.numel() + 255) // 256,), (y, *padded, y.numel()),
                             {"PARTS": len(parts), "BLOCK": 256}, parts, y)
        return y


class PreparedLayers(TritonLayers):
    """The same launches, each prepared when it comes first: one for each input tensor and its weights."""

    def __init__(self, context):
        super().__init__(self)
        self.context, self.kernels, self.made, self.prepared = context, {}, {}, None

    def launch(self, function, grid, args, constants, reads, to):
        key = (function, *constants.values())
        if key not in self.kernels:
            self.kernels[key] = acs.triton.Kernel(function, **constants)
        self.prepared = self.kernels[key].prepare(self.context, grid, args, reads=reads, writes=[to])

    def again(self, key, make, *inputs):
        known = self.made.get(key)
        if known is None:
            result = make()
            known = self.made[key] = (self.prepared, result, inputs)
        known[0]()
        return known[1]

    def conv(self, x, weights, stride, relu):
        return self.again((id(x), id(weights)), lambda: super(PreparedLayers, self).conv(x, weights, stride, relu), x)

    def depthwise(self, x, weights, stride):
        return self.again((id(x), id(weights)), lambda: super(PreparedLayers, self).depthwise(x, weights, stride), x)

    def sum(self, parts):
        return self.again(tuple(map(id, parts)), lambda: super(PreparedLayers, self).sum(parts), *parts)


class GraphLayers(TritonLayers):
    """Triton's kernels in one stream, with a graph for each block and each input of it."""

    def __init__(self):
        super().__init__(Stream())
        self.made, self.pool = {}, torch.cuda.graph_pool_handle()

    def again(self, key, make, *inputs):
        known = self.made.get(key)
        if known is None:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self.pool):
                result = make()
            known = self.made[key] = (graph, result, inputs)
        known[0].replay()
        return known[1]

    def stem(self, x, weights):
        return self.again((id(x), id(weights)), lambda: super(GraphLayers, self).stem(x, weights), x)

    def block(self, x, weights, stride):
        return self.again((id(x), id(weights)), lambda: super(GraphLayers, self).block(x, weights, stride), x)

    def sum(self, parts):
        return self.again(tuple(map(id, parts)), lambda: super(GraphLayers, self).sum(parts), *parts)


class TorchLayers(Layers):
    """The layers by PyTorch's operators."""

    def conv(self, x, weights, stride, relu):
        weight, bias = weights
        y = functional.conv2d(x[None], weight, bias, stride, weight.shape[2] // 2)[0]
        return functional.relu_(y) if relu else y

    def depthwise(self, x, weights, stride):
        weight, bias = weights
        return functional.relu_(functional.conv2d(x[None], weight, bias, stride, weight.shape[2] // 2, groups=x.shape[0])[0])

    def sum(self, parts):
        y = parts[0] + parts[1]
        for part in parts[2:]:
            y += part
        return y


class Network:
    def __init__(self, device, seed):
        draw = torch.Generator(device="cpu").manual_seed(seed)

        def weights(outputs, inputs, size):
            scale = (2.0 / (inputs * size * size)) ** 0.5
            return ((torch.randn((outputs, inputs, size, size), generator=draw) * scale).to(device),
                    (torch.randn(outputs, generator=draw) * 0.1).to(device))

        self.stem, self.blocks, channels = weights(32, 3, 3), [], 32
        for width in WIDTHS:
            layer = []
            for candidate in CANDIDATES:
                if candidate is None:
                    layer.append((weights(width, channels, 3), weights(width, width, 3)))
                else:
                    expansion, size = candidate
                    middle = channels * expansion
                    layer.append((weights(middle, channels, 1), weights(middle, 1, size), weights(width, middle, 1)))
            self.blocks.append(layer)
            channels = width
        self.controller = torch.nn.Sequential(
            torch.nn.Conv2d(3, 16, 3, 2), torch.nn.ReLU(), torch.nn.Conv2d(16, 32, 3, 2), torch.nn.ReLU(), torch.nn.Flatten(),
            torch.nn.Linear(32 * 49, len(WIDTHS) * len(CANDIDATES))).to(device)

    def decide(self, images):
        """For each image and layer: the candidates to run, at least one. Waits for the GPU."""
        with torch.no_grad():
            scores = self.controller(images).reshape(len(images), len(WIDTHS), len(CANDIDATES))
        picked = scores >= scores.mean(dim=-1, keepdim=True)
        return [[[c for c in range(len(CANDIDATES)) if row[c]] for row in image] for image in picked.tolist()]

    def run(self, layers, image, path):
        x = layers.stem(image, self.stem)
        for layer, (picked, stride) in enumerate(zip(path, STRIDES)):
            results = [layers.block(x, self.blocks[layer][candidate], stride) for candidate in picked]
            x = layers.sum(results) if len(results) > 1 else results[0]
        return x


def milliseconds(run, repeats):
    """The median of several calls, from an idle GPU to an idle GPU."""
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        run()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--compile", action="store_true", help="also through torch.compile, which takes minutes")
    options = parser.parse_args()
    torch.backends.cudnn.allow_tf32 = False
    network = Network("cuda", 1)
    images = torch.randn(options.images, 3, 32, 32, device="cuda")
    paths, images = network.decide(images), list(images)
    context = acs.Context(backend="cuda")
    eager, in_stream, graphs = TorchLayers(), TritonLayers(Stream()), GraphLayers()
    through_acs, prepared = TritonLayers(ThroughAcs(context)), PreparedLayers(context)

    def all_images(layers):
        return [network.run(layers, image, path) for image, path in zip(images, paths)]

    def ordered(layers):
        with acs.torch.region(context, watch=False):  # torch.empty is all that PyTorch does inside
            return all_images(layers)

    rows = {"PyTorch, eager": lambda: all_images(eager), "Triton in one stream": lambda: all_images(in_stream),
            "  a graph for each block": lambda: all_images(graphs), "Triton through ACS": lambda: ordered(through_acs),
            "  prepared launches": lambda: ordered(prepared)}
    if options.compile:
        torch._dynamo.config.recompile_limit = 256  # blocks differ in their convolutions' sizes and strides
        compiled = TorchLayers()
        compiled.block, compiled.sum = torch.compile(eager.block, dynamic=True), torch.compile(eager.sum, dynamic=True)
        rows["PyTorch, torch.compile"] = lambda: all_images(compiled)
    with torch.no_grad():
        results = {name: run() for name, run in rows.items()}
        kernels = sum(2 + sum(3 * (c < 4) + 2 * (c == 4) for c in layer) for path in paths for layer in path)
        print(f"{options.images} images of their own paths, about {kernels // options.images} kernels each, "
              f"{torch.cuda.get_device_name()}, ms for all")
        for name, run in rows.items():
            print(f"  {name:26} {milliseconds(run, options.repeats):8.2f}", flush=True)
    one_stream, own = results["Triton in one stream"], results["PyTorch, eager"]
    same = all(torch.equal(a, b) for name in ("  a graph for each block", "Triton through ACS", "  prepared launches")
               for a, b in zip(one_stream, results[name]))
    far = max(float((a - b).abs().max() / b.abs().max()) for result in results.values() for a, b in zip(result, own))
    print(f"results of Triton's kernels: {'equal' if same else 'NOT equal'} bit for bit in all ways; "
          f"all results at most {far:.1e} from PyTorch's own (of the largest)")
    context.close()
    return 0 if same and far < 1e-3 else 1


if __name__ == "__main__":
    sys.exit(main())
