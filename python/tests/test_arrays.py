"""
Arrays of other libraries on the CPU: what acs takes as their memory, what it refuses, and kernels that use them. What is not
installed is skipped. Run with ACS_LIBRARY set, or with the package installed.
"""

import array
import ctypes
import os
import subprocess
import sys
import tempfile
import threading
import unittest

import acs
from acs import _arrays

COUNT = 24


def library(name):
    try:
        return __import__(name, fromlist=["x"])
    except Exception as error:  # a library may need more than its own package
        raise unittest.SkipTest(f"{name}: {type(error).__name__}: {error}") from None


@acs.host_body("pointer, pointer, int32")
def add(grid, to, source, count):
    a, b = ((ctypes.c_float * count).from_address(at) for at in (to, source))
    for i in range(count):
        a[i] += b[i]


ADD = acs.Kernel(host=add, signature="pointer, pointer, int32", name="add")


def bytes_of(span):
    return {base + row * pitch + i for base, size, rows, pitch in span.pieces for row in range(rows) for i in range(size)}


class OnlyDlpack:
    """An array that shows nothing but DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **wishes):
        return self.array.__dlpack__(**wishes)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Checks(unittest.TestCase):
    def assert_views(self, whole, views, address, strides, itemsize):
        """The spans of views are the bytes of their elements."""
        for name, view in views(whole).items():
            with self.subTest(view=name):
                want = {address(view)} if 0 not in view.shape else set()
                for size, stride in zip(view.shape, strides(view)):
                    want = {at + stride * i for at in want for i in range(size)}
                span = acs.span(view)
                self.assertEqual(bytes_of(span), {at + i for at in want for i in range(itemsize)})
                if want:
                    self.assertEqual(span.ptr, address(view))

    def assert_adds(self, to, source, values):
        """A kernel adds source to `to`, many times, in order; `values`: the elements of `to`."""
        with acs.Context(backend="host") as context:
            before = [float(x) for x in values()]
            for _ in range(5):
                context.launch(ADD, 1, 1, (to, source, COUNT), reads=[source], updates=[to])
                context.launch(ADD, 1, 1, (to, to, COUNT), updates=[to])
            context.sync()
        for was, now in zip(before, values()):
            self.assertEqual(now, was * 32 + 62)  # 5 times: add 1, double


class Numpy(Checks):
    def setUp(self):
        self.numpy = library("numpy")

    def views(self, whole):
        return {"whole": whole, "part": whole[1:], "every second": whole[:, ::2], "turned": whole.T, "backwards": whole[::-1],
                "both backwards": whole[::-1, ::-1], "part backwards": whole[2:0:-1, 4:1:-2], "one": whole[1, 2, ...],
                "none": whole[:0], "no columns": whole[:, 2:2], "none of a step": whole[4:0:2],
                "repeated": self.numpy.broadcast_to(whole[0], (3, 6)), "diagonal": whole.diagonal(),
                "reordered": whole.reshape(2, 2, 6).transpose(2, 0, 1)}

    def test_views(self):
        whole = self.numpy.arange(COUNT, dtype="f").reshape(4, 6)
        self.assert_views(whole, self.views, lambda v: v.__array_interface__["data"][0], lambda v: v.strides, 4)

    def test_kernels(self):
        to, source = self.numpy.arange(COUNT, dtype="f"), self.numpy.ones(COUNT, "f")
        self.assert_adds(to, source, to.tolist)

    def test_copies_refuse_gaps_and_different_sizes(self):
        whole = self.numpy.zeros((4, 6), "f")
        with acs.Context(backend="host") as context:
            for to, source in ((whole[:, :3], self.numpy.ones((4, 3), "f")), (self.numpy.ones((4, 3), "f"), whole[:, ::2]),
                               (whole, self.numpy.ones((3, 6), "f"))):
                with self.assertRaises(ValueError):
                    context.copy(to, source)
            context.copy(whole[1:3], self.numpy.ones((2, 6), "f"))
            context.fill(whole[3:], 0)
            context.fill(whole[:0], 1)
            context.sync()
        self.assertEqual(whole.sum(axis=1).tolist(), [0, 6, 6, 0])

    def test_arrays_that_must_not_be_written_are_taken_and_not_checked(self):
        to, source = self.numpy.arange(COUNT, dtype="f"), self.numpy.ones(COUNT, "f")
        source.flags.writeable = False
        self.assert_adds(to, source, to.tolist)
        self.assertEqual(acs.span(source).nbytes, 4 * COUNT)
        with self.assertRaisesRegex(TypeError, "gives no memory by __dlpack__"):
            acs.span(OnlyDlpack(source))  # NumPy refuses

    def test_elements_of_all_sizes(self):
        for kind in ("?", "i1", "f2", "f8", "c16", "S5", "U3", "M8[s]", [("a", "i1"), ("b", "f8")]):
            made = self.numpy.zeros(3, kind)
            self.assertEqual(acs.span(made).nbytes, made.nbytes)

    def test_what_is_no_array(self):
        for bad in (self.numpy.float32(1), self.numpy.zeros(3, dtype=object)):
            with self.assertRaises(TypeError):
                acs.span(bad)


class Dlpack(Checks):
    def test_numpy(self):
        numpy = library("numpy")
        whole = numpy.arange(COUNT, dtype="f").reshape(4, 6)
        for view in (whole, whole[1:], whole[:, ::2], whole.T, whole[::-1], whole[:0]):
            self.assertEqual(bytes_of(acs.span(OnlyDlpack(view))), bytes_of(acs.span(view)))
        flat = whole.reshape(COUNT)
        self.assert_adds(OnlyDlpack(flat), OnlyDlpack(numpy.ones(COUNT, "f")), flat.tolist)

    def test_torch(self):
        torch = library("torch")
        whole = torch.arange(COUNT, dtype=torch.float32)
        for view in (whole, whole[3:], whole[::2], whole[:0]):
            self.assertEqual(bytes_of(acs.span(OnlyDlpack(view))), bytes_of(acs.span(view)))
        self.assert_adds(OnlyDlpack(whole), OnlyDlpack(torch.ones(COUNT)), whole.tolist)

    def test_what_a_library_lends_is_kept_until_the_op_has_ended(self):
        numpy = library("numpy")
        to, given_back = numpy.zeros(COUNT, "f"), []

        class Lender(OnlyDlpack):
            def __dlpack__(self, **wishes):
                lent = numpy.ones(COUNT, "f")  # a copy that lives no longer than the capsule
                numpy_owner = Owner(lent.ctypes.data, lent)
                return numpy.asarray(numpy_owner).__dlpack__(**wishes)

        class Owner:
            def __init__(self, at, lent):
                self.lent = lent
                self.__array_interface__ = {"data": (at, False), "shape": (COUNT,), "typestr": "<f4", "version": 3}

            def __del__(self):
                given_back.append(True)

        gate = threading.Event()
        with acs.Context(backend="host") as context:
            context.call(gate.wait, updates=[to])
            context.launch(ADD, 1, 1, (to, Lender(to), COUNT), updates=[to])
            self.assertEqual(given_back, [])
            gate.set()
            context.sync()
        self.assertEqual(given_back, [True])
        self.assertEqual(to.tolist(), [1] * COUNT)


class Torch(Checks):
    def setUp(self):
        self.torch = library("torch")

    def test_views(self):
        whole = self.torch.arange(COUNT, dtype=self.torch.float32).reshape(4, 6)
        self.assert_views(whole, lambda w: {
            "whole": w, "part": w[1:], "every second": w[:, ::2], "turned": w.T, "one": w[1, 2], "none": w[:0],
            "no columns": w[:, 2:2], "repeated": w[:1].expand(3, 6), "diagonal": w.diagonal()},
            lambda v: v.data_ptr(), lambda v: [4 * s for s in v.stride()], 4)

    def test_kernels(self):
        to = self.torch.arange(COUNT, dtype=self.torch.float32)
        self.assert_adds(to, self.torch.ones(COUNT), to.tolist)

    def test_what_has_no_bytes_of_its_own(self):
        with self.assertRaises((TypeError, RuntimeError)):
            acs.span(self.torch.eye(3).to_sparse())


class Jax(Checks):
    def setUp(self):
        self.jax = library("jax")
        self.array = self.jax.device_put(library("numpy").ones((4, 6), "f"), self.jax.devices("cpu")[0])

    def test_arrays_are_read(self):
        numpy = library("numpy")
        span = acs.span(self.array)
        self.assertEqual((span.nbytes, span.ptr), (96, self.array.unsafe_buffer_pointer()))
        to = numpy.arange(COUNT, dtype="f")
        self.assert_adds(to, self.array, to.tolist)

    def test_zero_sizes(self):
        self.assertEqual(acs.span(self.array[:0]).nbytes, 0)

    def test_arrays_of_the_cpu_after_one_of_a_gpu(self):
        class Either(OnlyDlpack):
            pass

        on_gpu, on_cpu = Either(self.array), Either(self.array)
        on_gpu.__cuda_array_interface__ = {"data": (4096, True), "shape": (3,), "strides": None, "typestr": "<f4"}
        self.assertEqual(acs.span(on_gpu).pieces, ((4096, 12, 1, 0),))
        self.assertEqual(acs.span(on_cpu).nbytes, 96)


class Numba(Checks):
    def test_a_cfunc_is_the_body_of_a_kernel(self):
        numba, numpy = library("numba"), library("numpy")
        floats = numba.types.CPointer(numba.types.float32)
        arguments = numba.types.CPointer(numba.types.CPointer(floats))  # where each argument lies: all are pointers

        @numba.cfunc(numba.types.void(numba.types.voidptr, arguments))
        def add_all(grid, args):
            to, source = numba.carray(args[0][0], COUNT), numba.carray(args[1][0], COUNT)
            for i in range(COUNT):
                to[i] += source[i]

        kernel = acs.Kernel(host=add_all)
        to, source = numpy.arange(COUNT, dtype="f"), numpy.ones(COUNT, "f")
        with acs.Context(backend="host") as context:
            for _ in range(5):
                context.launch(kernel, 1, 1, (to, source), reads=[source], updates=[to])
                context.launch(kernel, 1, 1, (to, to), updates=[to])
            context.sync()
        self.assertEqual(to.tolist(), [32 * i + 62 for i in range(COUNT)])


class Buffers(Checks):
    def test_arrays_of_the_standard_library(self):
        to, source = array.array("f", range(COUNT)), array.array("f", [1] * COUNT)
        self.assert_adds(to, source, to.tolist)
        self.assertEqual(acs.span(to).ptr, to.buffer_info()[0])
        self.assertEqual(acs.span(memoryview(to)[3:]).ptr, to.buffer_info()[0] + 12)
        self.assertEqual(acs.span(memoryview(to).cast("B").cast("B", (8, 12))).nbytes, 96)
        self.assertEqual(acs.span(bytearray()).nbytes, 0)

    def test_those_that_must_not_be_written_are_refused(self):
        for fixed in (b"bytes", memoryview(b"bytes"), memoryview(bytearray(8)).toreadonly()):
            with self.assertRaisesRegex(TypeError, "cannot be written, and its address is not known"):
                acs.span(fixed)

    def test_those_with_gaps_are_refused(self):
        for view in (memoryview(bytearray(8))[::2], memoryview(bytearray(8))[::-1]):
            with self.assertRaisesRegex(TypeError, "has gaps or runs backwards"):
                acs.span(view)

    def test_they_keep_their_size_until_the_op_has_ended(self):
        to, gate = bytearray(4 * COUNT), threading.Event()
        with acs.Context(backend="host") as context:
            context.call(gate.wait, updates=[to])
            context.launch(ADD, 1, 1, (to, to, COUNT), updates=[to])
            with self.assertRaises(BufferError):
                to.extend(bytes(100000))  # its bytes would move
            gate.set()
            context.sync()
        to.extend(bytes(100000))

    def test_what_is_no_array(self):
        for bad in (5, 1.5, None, "text", object(), [1.0, 2.0], (1, 2), {}, ADD, int):
            with self.subTest(bad=bad), self.assertRaisesRegex(TypeError, "is no array|cannot be written"):
                acs.span(bad)


class FastReaders(Checks):
    """The two kinds of arrays that launches read without a Span, as their libraries show them."""

    class Flags:
        c_contiguous = False

    class Pointer:
        ptr, device_id = 4096, 0

    def cupy_like(self, contiguous, shape, strides):
        class Array:
            data, flags, itemsize, nbytes = self.Pointer(), self.Flags(), 4, 4 * shape[0] * shape[1]
            _c_contiguous = contiguous

        Array.__module__, Array.shape, Array.strides = "cupy._core.core", shape, strides
        return Array()

    def torch_like(self, contiguous, shape, strides):
        class Tensor:
            is_cuda, nbytes = True, 4 * shape[0] * shape[1]
            data_ptr = staticmethod(lambda: 4096)
            element_size = staticmethod(lambda: 4)
            is_conj = is_neg = staticmethod(lambda: False)
            is_contiguous = staticmethod(lambda: contiguous)
            stride = staticmethod(lambda: [s // 4 for s in strides])

        Tensor.shape = shape
        return Tensor()

    def test_memory(self):
        for made in (self.cupy_like, self.torch_like):
            flat, empty, ragged = made(True, (2, 6), (24, 4)), made(True, (0, 6), (24, 4)), made(False, (2, 3), (24, 4))
            self.assertEqual(_arrays.place(flat), (4096, 48))
            self.assertIs(acs.span(flat).owner, flat)
            self.assertEqual(acs.span(flat).pieces, ((4096, 48, 1, 0),))
            self.assertEqual(acs.span(empty).pieces, ())
            self.assertEqual(acs.span(ragged).pieces, ((4096, 12, 2, 24),))
            for access in (_arrays.READ, _arrays.WRITE, _arrays.UPDATE):
                self.assertEqual(_arrays.pack_bytes(4096, 48, access), acs.span(flat).packed(access))

    def test_launches_order_them_as_spans_do(self):
        class Shown:
            _c_contiguous, flags, shape, strides, itemsize = True, self.Flags(), (COUNT,), (4,), 4
            __module__ = "cupy._core.core"

            def __init__(self, memory):
                self.memory, self.nbytes, self.data = memory, 4 * COUNT, self.Data()
                self.data.ptr = ctypes.addressof(memory)

            class Data:
                ptr, device_id = 0, 0

        to, source = (ctypes.c_float * COUNT)(*range(COUNT)), (ctypes.c_float * COUNT)(*[1] * COUNT)
        self.assert_adds(Shown(to), Shown(source), lambda: list(to))
        self.assert_adds(Shown(to), acs.span(Shown(source)), lambda: list(to))

    def test_cupy_itself(self):
        cupy, numpy = library("cupy"), library("numpy")
        memory = numpy.arange(COUNT, dtype="f")
        lent = cupy.cuda.UnownedMemory(memory.ctypes.data, memory.nbytes, memory, 0)
        whole = cupy.ndarray((4, 6), "f", memptr=cupy.cuda.MemoryPointer(lent, 0))
        self.assertEqual(_arrays.place(whole), (memory.ctypes.data, 96))
        for mine, theirs in ((whole, memory.reshape(4, 6)), (whole[1:], memory.reshape(4, 6)[1:]),
                             (whole[:, ::2], memory.reshape(4, 6)[:, ::2]), (whole.T, memory.reshape(4, 6).T),
                             (whole[::-1], memory.reshape(4, 6)[::-1]), (whole[:0], memory.reshape(4, 6)[:0])):
            self.assertEqual(bytes_of(acs.span(mine)), bytes_of(acs.span(theirs)))


class Gpus(Checks):
    """Arrays of a GPU in contexts of the CPU."""

    class Interface:
        __cuda_array_interface__ = {"data": (4096, False), "shape": (COUNT,), "strides": None, "typestr": "<f4"}

    class Capsule:
        def __dlpack__(self):
            raise AssertionError("its memory is not needed")

        def __dlpack_device__(self):
            return (2, 0)

    class Tensor:
        is_cuda, nbytes, shape = True, 4 * COUNT, (COUNT,)
        data_ptr = staticmethod(lambda: 4096)
        element_size = staticmethod(lambda: 4)
        is_conj = is_neg = staticmethod(lambda: False)
        is_contiguous = staticmethod(lambda: True)

    def test_they_are_refused_before_anything_is_queued(self):
        to = (ctypes.c_float * COUNT)()
        interface, tensor = self.Interface(), self.Tensor()
        for backend in ("host", "sim"):
            with acs.Context(backend=backend) as context:
                for bad in (interface, self.Capsule(), tensor, acs.span(interface), acs.span(tensor)):
                    for call in (lambda: context.launch(ADD, 1, 1, (to, bad, COUNT), updates=[to]),
                                 lambda: context.copy(to, bad), lambda: context.copy(bad, to), lambda: context.fill(bad, 0)):
                        with self.assertRaisesRegex(acs.ArgumentError, "in the memory of a GPU, and the context runs ops on"):
                            call()
                context.sync()
                self.assertEqual(context.stats()["queued"], 0)

    def test_spans_of_what_was_lent(self):
        numpy = library("numpy")
        lender = OnlyDlpack(numpy.ones(COUNT, "f"))
        span = acs.span(lender)
        self.assertFalse(_arrays.on_gpu(span))
        lender.__dlpack_device__ = lambda: (2, 0)
        self.assertTrue(_arrays.on_gpu(span))

    def test_they_tell_which_gpu_they_are_on(self):
        class Second(self.Tensor):
            get_device = staticmethod(lambda: 1)

        class Warp(self.Interface):
            __dlpack_device__ = staticmethod(lambda: (2, 3))

        on_cpu = Warp()
        on_cpu.__array_interface__ = {}
        numpy = library("numpy")
        # the same type, first on the CPU
        for array, want in ((on_cpu, _arrays.CPU), (Warp(), 3), (self.Interface(), _arrays.SOME_GPU), (numpy.ones(4), _arrays.CPU),
                            (bytearray(4), _arrays.CPU), (acs.span(numpy.ones(4)), _arrays.CPU),
                            (acs.span(self.Interface()), _arrays.SOME_GPU), (acs.bytes_at(4096, 4), None)):
            self.assertEqual(_arrays.gpu_of(array), want, array)
        self.assertEqual(_arrays._find_gpu_reader(Second())(), 1)

    def test_they_may_be_names_that_ops_are_ordered_by(self):
        array, seen = self.Interface(), []
        with acs.Context(backend="host") as context:
            for i in range(10):
                context.call(lambda i=i: seen.append(i), updates=[array])
            context.wait_for(array)
        self.assertEqual(seen, list(range(10)))


class Demo(unittest.TestCase):
    def demo(self, *options):
        return subprocess.run([sys.executable, "-m", "acs.demo", *options], capture_output=True, text=True)

    def test_a_picture_and_a_number(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "picture.png")
            done = self.demo("--backend", "host", "--out", path)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertLessEqual(len(done.stdout.splitlines()), 5)
            self.assertIn("times as fast", done.stdout)
            self.assertIn("the same bytes, and each pixel is in its place", done.stdout)
            with open(path, "rb") as picture:
                self.assertEqual(picture.read(8), b"\x89PNG\r\n\x1a\n")

    def test_errors(self):
        done = self.demo("--backend", "host", "--out", "/no such folder/picture.png")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, "^acs.demo: .*No such file.*\n$")


if __name__ == "__main__":
    unittest.main()
