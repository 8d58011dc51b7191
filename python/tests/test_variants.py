"""
Versions of kernels, shares and times, on CPU threads: which version ran is told by what it wrote. Needs nothing but the
standard library, and a libacs.so that has versions.
"""

import ctypes
import types
import unittest

import acs
import acs.triton
from acs import _library, _variants

SIGNATURE = "pointer, int32"


def body(letter):
    @acs.host_body(SIGNATURE)
    def write(grid, to, n):
        ctypes.c_int32.from_address(to).value = ord(letter) + 1000 * grid.grid.x + 100000 * grid.block.x + n * 10000000

    return write


def kernel(letter, **more):
    return acs.Kernel(host=body(letter), signature=SIGNATURE, name="write " + letter, **more)


class Mistakes(unittest.TestCase):
    """What is refused before the library sees it."""

    def test_declarations(self):
        base, other = kernel("b"), kernel("o")
        plain = acs.Kernel(host=body("p"), name="plain")
        for versions, kind, text in (({"x": 1}, TypeError, "'x' of kernel 'write b' is an object of type int"),
                                     ({"x": acs.Kernel(host=body("x"), signature="pointer")}, ValueError, "must take the same"),
                                     ({"x": (1, None)}, TypeError, "must be an acs.Kernel")):
            with self.assertRaisesRegex(kind, text):
                acs.variants(base, versions)
        with self.assertRaisesRegex(TypeError, "has no signature"):
            acs.variants(plain, {"x": (other, lambda args, grid: (grid, 1))})
        with self.assertRaisesRegex(TypeError, "make an acs.Kernel of it"):
            acs.variants(body("x"), {})
        self.assertEqual(base.versions, ("base",))

    def test_launches(self):
        base, to = kernel("b"), (ctypes.c_int32 * 1)()
        with acs.Context(backend="host", workers=0) as context:
            for wish in ({"share": 0}, {"share": 101}, {"fit": 0}, {"fit": 101}, {"variant": 63}, {"variant": -1}):
                for call in (context.launch, context.prepare):
                    with self.assertRaisesRegex(acs.ArgumentError, "must be"):
                        call(base, 1, 1, (to, 1), updates=[to], **wish)
            with self.assertRaisesRegex(TypeError, "whole number"):
                context.launch(base, 1, 1, (to, 1), updates=[to], share=0.5)
            launch = context.prepare(base, 1, 1, (to, 1), updates=[to])
            for given in (base, lambda: 0):
                with self.assertRaisesRegex(TypeError, "prepare"):
                    acs.measure(given)
            with acs.Context(backend="host", workers=0) as second:
                with self.assertRaisesRegex(TypeError, "prepare of this context"):
                    second.measure(launch)


class Shapes(unittest.TestCase):
    """Functions for shapes, called as the library calls them."""

    def called(self, shape, *args, sizes=(8, 4)):
        function = _variants._called_back(shape, ("pointer", "int32"), "v")
        values = [ctypes.c_uint64(args[0]), ctypes.c_int32(args[1])]
        given = _library.FootprintInput(grid=(3, 2, 1), block=(8, 1, 1), arg_count=len(sizes))
        given.args = (ctypes.c_void_p * 2)(*map(ctypes.addressof, values))
        given.arg_bytes = (ctypes.c_uint32 * 2)(*sizes)
        out = _library.LaunchShape()
        result = function(ctypes.pointer(given), ctypes.pointer(out))
        sizes_of = [(size.x, size.y, size.z) for size in (out.grid, out.block)]
        return result, *sizes_of, out.shared_bytes, _variants.taken_failure()

    def test_results(self):
        seen = []
        result = self.called(lambda args, grid: seen.append((args, grid)) or ((args[1], 2), 64, 1024), 4096, -7 + 12)
        self.assertEqual(result, (1, (5, 2, 1), (64, 1, 1), 1024, None))
        self.assertEqual(seen, [((4096, 5), (3, 2, 1))])
        self.assertEqual(self.called(lambda args, grid: (grid, (8, 8)), 1, 1)[:4], (1, (3, 2, 1), (8, 8, 1), 0))
        self.assertEqual(self.called(lambda args, grid: None, 1, 1)[0], 0)

    def test_refusals(self):
        refused = ctypes.c_size_t(-1).value
        self.assertEqual(self.called(lambda args, grid: (grid, 1), 1, 1, sizes=(8, 8))[0], refused)
        self.assertEqual(self.called(lambda args, grid: (grid, 1), 1, 1, sizes=(8,))[0], refused)
        for shape, kind in ((lambda args, grid: 1 // 0, ZeroDivisionError), (lambda args, grid: 4, TypeError),
                            (lambda args, grid: (-1, 1), acs.ArgumentError), (lambda args, grid: (1, 1, "x"), TypeError)):
            result = self.called(shape, 1, 1)
            self.assertEqual(result[0], refused)
            self.assertIsInstance(result[-1], kind)
        self.assertIsNone(_variants.taken_failure())


class Triton(unittest.TestCase):
    """Versions of kernels of Triton, with a Triton that is a fake: what is declared when a kernel is compiled."""

    class Compiled:
        def __init__(self, name, constants, ones):
            self.name, self.function, self.run = name, 4096 + 16 * constants["BLOCK"], None
            self.metadata = types.SimpleNamespace(num_warps=constants["num_warps"], warp_size=32, shared=constants["BLOCK"])
            kept = {name: "constexpr" if name in ones or name == "BLOCK" else "i32" for name in ("n", "m", "BLOCK")}
            self.src = types.SimpleNamespace(signature=kept)
            count = list(kept.values()).count("i32")
            self.asm = {"ptx": ".visible .entry k(" + ", ".join(".param .u32 p" for _ in range(count)) + ")"}

    Compiled.__module__ = "triton.fake"

    class Jit:
        __name__, arg_names = "k", ["n", "m", "BLOCK"]
        params = [types.SimpleNamespace(name=name, is_constexpr=name == "BLOCK") for name in arg_names]

        def warmup(self, grid, n, m, **constants):
            return Triton.Compiled("k", constants, [name for name, value in (("n", n), ("m", m)) if value == 1])

    def setUp(self):
        self.declared, self.real = [], acs.triton._declare_versions
        acs.triton._declare_versions = lambda kernel, rows: self.declared.append((kernel, rows))

    def tearDown(self):
        acs.triton._declare_versions = self.real

    def test_each_compiled_kernel_gets_the_versions(self):
        jit = self.Jit()
        base, small = (acs.triton.Kernel(jit, BLOCK=block, num_warps=4) for block in (64, 16))
        acs.variants(base, {"small": (small, lambda args, grid: None if args[0] > 100 else -(-args[0] // 16)), "same": small})
        self.assertEqual(self.declared, [])
        first = base.variant((50, 1))
        ((kernel, rows),) = self.declared
        self.assertIs(kernel, first.kernel)
        self.assertEqual(list(rows), ["small", "same"])
        self.assertIs(rows["small"][0], small.variant((50, 1)).kernel)
        self.assertEqual(rows["small"][1]((40,), (9, 1, 1)), (3, 128, 16))  # the 1 is compiled into the kernel
        self.assertIsNone(rows["small"][1]((200,), (9, 1, 1)))
        self.assertEqual(rows["same"][1]((40,), (9, 1, 1)), ((9, 1, 1), 128, 16))
        count = len(self.declared)
        other = base.variant((50, 7))
        self.assertEqual(len(self.declared), count + 1)
        self.assertEqual(self.declared[-1][1]["small"][1]((40, 7), (9, 1, 1)), (3, 128, 16))
        self.assertRegex(first.kernel.name, r"^k\.[0-9a-f]{12}$")
        self.assertNotEqual(first.kernel.name, other.kernel.name)
        self.assertEqual(small.variant((50, 1)).kernel.name, "k")
        acs.variants(base, {})
        self.assertEqual(self.declared[-1][1], {})
        self.assertEqual(base.variant((50, 1)).kernel.name, "k")

    def test_mistakes(self):
        base = acs.triton.Kernel(self.Jit(), BLOCK=64, num_warps=4)
        for version in (1, kernel("x"), (base.variant((2, 2)).kernel, None)):
            with self.assertRaisesRegex(TypeError, "must be an acs.triton.Kernel with the arguments n, m"):
                acs.variants(base, {"bad": version})


class Versions(unittest.TestCase):
    def setUp(self):
        self.context = acs.Context(backend="host", workers=0)
        self.to = (ctypes.c_int32 * 1)()

    def tearDown(self):
        self.context.close()

    def ran(self, launched, grid=3, block=2, n=1, **wish):
        """Letter of the version that ran, its grid, its block."""
        self.context.launch(launched, grid, block, (self.to, n), updates=[self.to], **wish)
        self.context.sync()
        value = self.to[0]
        self.assertEqual(value // 10000000, n)
        return chr(value % 1000), value // 1000 % 100, value // 100000 % 100

    def test_a_version_by_name_and_by_number(self):
        base = kernel("b", variants={"same": kernel("s"),
                                     "own": (kernel("o"), lambda args, grid: (grid[0] + args[1], (5, 1, 1), 16))})
        self.assertEqual(base.versions, ("base", "same", "own"))
        self.assertEqual(self.ran(base, variant="base"), ("b", 3, 2))
        self.assertEqual(self.ran(base, variant="same"), ("s", 3, 2))
        self.assertEqual(self.ran(base, variant="own", n=4), ("o", 7, 5))
        self.assertEqual(self.ran(base, variant=2), ("o", 4, 5))
        self.assertIn(self.ran(base)[0], "bso")
        self.assertIn(self.ran(base, fit=10)[0], "bso")
        launch = self.context.prepare(base, 3, 2, (self.to, 1), updates=[self.to], variant="own")
        launch()
        self.context.sync()
        self.assertEqual(chr(self.to[0] % 1000), "o")
        with self.assertRaises(acs.ArgumentError):
            self.ran(base, variant="none")
        with self.assertRaises(acs.ArgumentError):
            self.ran(base, variant=3)
        self.context.clear()
        acs.variants(base, {})
        self.assertEqual(self.ran(base), ("b", 3, 2))

    def test_a_version_that_does_not_fit_is_not_picked(self):
        base = kernel("b", variants={"never": (kernel("n"), lambda args, grid: None)})
        self.assertEqual(self.ran(base), ("b", 3, 2))

    def test_what_a_shape_function_raises(self):
        def shape(args, grid):
            raise KeyError("shape")

        base = kernel("b", variants={"bad": (kernel("n"), shape)})
        with self.assertRaises(acs.ArgumentError) as caught:
            self.ran(base, variant="bad")
        self.assertIsInstance(caught.exception.__cause__, KeyError)
        self.context.clear()
        acs.variants(base, {"worse": (kernel("n"), lambda args, grid: 5)})
        with self.assertRaises(acs.ArgumentError) as caught:
            self.ran(base, variant="worse")
        self.assertIsInstance(caught.exception.__cause__, TypeError)
        self.context.clear()

    def test_names_are_checked_by_the_library(self):
        for names in (["base"], ["with space"], [""], ["x" * 48]):
            with self.assertRaises(acs.ArgumentError):
                acs.variants(kernel("b"), {name: kernel("o") for name in names})

    def test_shares_of_a_cpu(self):
        info = self.context.share_info(50)
        self.assertEqual(info.step_sms, 0)
        self.assertTrue(info.reason)
        self.assertEqual(self.ran(kernel("b"), share=50), ("b", 3, 2))
        self.assertEqual(self.context.stats()["shares_ignored"], 1)
        with self.assertRaises(acs.ArgumentError):
            self.context.share_info(0)

    def test_times_leave_the_memory_as_it_was(self):
        base = kernel("b", variants={"same": kernel("s")})
        launch = self.context.prepare(base, 3, 2, (self.to, 1), updates=[self.to], variant="same")
        self.to[0] = 17
        try:
            measured = acs.measure(launch, runs=3)
        except acs.UnsupportedError as error:
            self.skipTest(str(error))
        self.assertEqual(self.to[0], 17)
        self.assertEqual(measured.runs, 3)
        self.assertGreaterEqual(measured.us, measured.least_us)


if __name__ == "__main__":
    unittest.main()
