"""
Versions of kernels, shares and times, on CPU threads: which version ran is told by what it wrote. Needs nothing but the
standard library, and a libacs.so that has versions.
"""

import ctypes
import unittest

import acs
from acs import _library

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


@unittest.skipUnless(_library.has("acs_variants"), "this libacs.so has no acs_variants")
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
        acs.variants(base, {"worse": (kernel("n"), lambda args, grid: grid)})
        with self.assertRaises(acs.ArgumentError) as caught:
            self.ran(base, variant="worse")
        self.assertIsInstance(caught.exception.__cause__, TypeError)
        self.context.clear()

    def test_names_are_checked_by_the_library(self):
        for names in (["base"], ["with space"], [""], ["x" * 48]):
            with self.assertRaises(acs.ArgumentError):
                acs.variants(kernel("b"), {name: kernel("o") for name in names})

    @unittest.skipUnless(_library.has("acs_share_find"), "this libacs.so has no acs_share_find")
    def test_shares_of_a_cpu(self):
        info = self.context.share_info(50)
        self.assertEqual(info.step_sms, 0)
        self.assertTrue(info.reason)
        self.assertEqual(self.ran(kernel("b"), share=50), ("b", 3, 2))
        self.assertEqual(self.context.stats()["shares_ignored"], 1)
        with self.assertRaises(acs.ArgumentError):
            self.context.share_info(0)

    @unittest.skipUnless(_library.has("acs_measure"), "this libacs.so has no acs_measure")
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
