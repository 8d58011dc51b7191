"""
The Python module on a GPU, with kernels and arrays of whatever libraries are installed: cuda.core, CuPy, numba-cuda,
Triton, PyTorch. What is missing is skipped. `--speed` prints how long a launch takes beside that of the library itself.
"""

import sys
import time
import unittest

import acs

SOURCE = r"""
extern "C" __global__ void scale(float *to, const float *from, float by, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] = to[i] + from[i] * by;
}
"""
COUNT = 1000
SHAPE = {"grid": (COUNT + 255) // 256, "block": 256}


def library(name):
    try:
        module = __import__(name, fromlist=["x"])
        return module
    except Exception as error:  # a library may need more than its own package
        raise unittest.SkipTest(f"{name}: {type(error).__name__}: {error}") from None


class Gpu(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            cls.context = acs.Context(backend="cuda")
        except acs.UnsupportedError as error:
            raise unittest.SkipTest(str(error)) from None

    @classmethod
    def tearDownClass(cls):
        if hasattr(cls, "context"):
            cls.context.close()

    def chain(self, kernel, to, source, times=20):
        for i in range(times):
            self.context.launch(kernel, **SHAPE, args=(to, source, float(i), COUNT), reads=[source], updates=[to])
        self.context.sync()
        return times * (times - 1) / 2

    def test_cupy(self):
        cupy = library("cupy")
        raw = cupy.RawKernel(SOURCE, "scale")
        kernel = acs.Kernel(raw, signature="pointer, pointer, float32, int32")
        to, source = cupy.zeros(COUNT, "f"), cupy.ones(COUNT, "f")
        cupy.cuda.Device().synchronize()
        self.assertEqual(float(to.max()), 0)
        want = self.chain(kernel, to, source)
        self.assertEqual((float(to.min()), float(to.max())), (want, want))
        part = to[::2]
        self.assertEqual(acs.span(part).pieces[0][1:], (4, COUNT // 2, 8))

    def test_memory_that_kernels_do_not_reach(self):
        cupy, numpy = library("cupy"), library("numpy")
        cupyx = library("cupyx")
        kernel = acs.Kernel(cupy.RawKernel(SOURCE, "scale"), signature="pointer, pointer, float32, int32")
        on_cpu, locked, to = numpy.ones(COUNT, "f"), cupyx.zeros_pinned(COUNT, "f"), cupy.zeros(COUNT, "f")
        locked[:] = 1
        cupy.cuda.Device().synchronize()
        want = self.chain(kernel, to, locked)
        self.assertEqual((float(to.min()), float(to.max())), (want, want))
        beyond = [(on_cpu, "pageable memory of the CPU"), (acs.span(on_cpu), "type ndarray is in pageable")]
        if cupy.cuda.runtime.getDeviceCount() > 1:
            with cupy.cuda.Device(1):
                second = cupy.ones(COUNT, "f")
            beyond += [(second, "on GPU 1"), (acs.span(second), "on GPU 1")]
            torch = library("torch")
            beyond.append((torch.ones(COUNT, device="cuda:1"), "type Tensor is on GPU 1"))
        for array, text in beyond:
            for call in (self.context.launch, self.context.prepare):
                with self.assertRaisesRegex(acs.ArgumentError, text):
                    call(kernel, **SHAPE, args=(to, array, 1.0, COUNT), reads=[array], updates=[to])
        self.assertEqual(float(to.max()), want)

    def test_cuda_core(self):
        core = library("cuda.core") if hasattr(library("cuda.core"), "Program") else library("cuda.core.experimental")
        cupy = library("cupy")
        device = core.Device()
        device.set_current()
        options = core.ProgramOptions(arch=f"sm_{device.arch}")
        compiled = core.Program(SOURCE, code_type="c++", options=options).compile("cubin").get_kernel("scale")
        kernel = acs.Kernel(compiled, signature="pointer, pointer, float32, int32", name="scale")
        to, source = cupy.zeros(COUNT, "f"), cupy.ones(COUNT, "f")
        cupy.cuda.Device().synchronize()
        want = self.chain(kernel, to, source)
        self.assertEqual((float(to.min()), float(to.max())), (want, want))

    def test_numba(self):
        cuda = library("numba.cuda")
        numpy = library("numpy")

        def scale(to, source, by):
            i = cuda.grid(1)
            if i < to.size:
                to[i] += source[i] * by

        try:
            scale = cuda.jit("void(float32[::1], float32[::1], float32)")(scale)
        except AttributeError as error:  # numba does not go with this version of NumPy
            self.skipTest(f"numba: {error}")
        to, source = cuda.to_device(numpy.zeros(COUNT, "f")), cuda.to_device(numpy.ones(COUNT, "f"))
        cuda.synchronize()
        kernel = acs.Kernel(scale, signature=", ".join(["pointer, pointer, int64, int64, pointer, int64, int64"] * 2) +
                            ", float32")

        def fields(array):  # how numba passes an array: two words of its own, sizes, address, shape, strides
            return (0, 0, array.size, array.dtype.itemsize, array, *array.shape, *array.strides)

        for i in range(20):
            self.context.launch(kernel, **SHAPE, args=(*fields(to), *fields(source), float(i)), reads=[source], updates=[to])
        self.context.sync()
        self.assertEqual((to.copy_to_host().min(), to.copy_to_host().max()), (190, 190))

    def test_triton_and_torch(self):
        torch, triton = library("torch"), library("triton")
        tl = library("triton.language")
        source_text = triton_kernel(triton, tl)
        to, source = torch.zeros(COUNT, device="cuda"), torch.ones(COUNT, device="cuda")
        compiled = source_text[(SHAPE["grid"],)](to, source, 0.0, COUNT, BLOCK=256)
        torch.cuda.synchronize()
        kernel = acs.Kernel(compiled, name="scale")
        self.assertTrue(kernel.name)
        self.assertEqual(acs.span(to).nbytes, COUNT * 4)
        self.context.fill(to, 0)
        self.context.copy(to, source)
        self.context.wait_for(to)
        self.assertEqual(float(to.sum()), COUNT)

    def test_streams(self):
        torch = library("torch")
        stream = torch.cuda.Stream()
        a, b = torch.zeros(1 << 22, device="cuda"), torch.zeros(1 << 22, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            a.fill_(3)
        self.context.after_stream(stream, reads=[a])
        self.context.copy(b, a)
        self.context.stream_after(stream, reads=[b])
        with torch.cuda.stream(stream):
            b.add_(1)
        stream.synchronize()
        self.assertEqual((float(b.min()), float(b.max())), (4, 4))


def triton_kernel(triton, tl):
    globals()["tl"] = tl

    @triton.jit
    def scale(to, source, by, n, BLOCK: "tl.constexpr"):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(to + at, tl.load(to + at, at < n) + tl.load(source + at, at < n) * by, at < n)

    return scale


def best_us(run, launches=2000, times=5):
    best = float("inf")
    for _ in range(times):
        begin = time.perf_counter()
        for _ in range(launches):
            run()
        best = min(best, (time.perf_counter() - begin) / launches * 1e6)
    return best


def speed():
    """Time of a launch in Python: what the interpreter spends, not what the GPU does."""
    import cupy
    raw = cupy.RawKernel(SOURCE, "scale")
    to, source = cupy.zeros(COUNT, "f"), cupy.ones(COUNT, "f")
    kernel = acs.Kernel(raw, signature="pointer, pointer, float32, int32")
    by, n = cupy.float32(1), cupy.int32(COUNT)
    with acs.Context(backend="cuda", fifo=65536) as context:
        spans = acs.span(to), acs.span(source)
        rows = {
            "CuPy RawKernel": lambda: raw((SHAPE["grid"],), (SHAPE["block"],), (to, source, by, n)),
            "acs, arrays": lambda: context.launch(kernel, **SHAPE, args=(to, source, 1.0, COUNT), reads=[source], updates=[to]),
            "acs, spans": lambda: context.launch(kernel, **SHAPE, args=(*spans, 1.0, COUNT), reads=[spans[1]],
                                                 updates=[spans[0]]),
        }
        for name, run in rows.items():
            us = best_us(run)
            cupy.cuda.Device().synchronize()
            context.sync()
            print(f"{name:16} {us:6.2f} us a launch")


if __name__ == "__main__":
    if "--speed" in sys.argv:
        speed()
    else:
        unittest.main()
