"""
Kernels whose footprint is declared once: by words, by a function, in C. What a launch then touches is told by failures, which
spread to what conflicts with them. Needs nothing but the standard library.
"""

import ctypes
import unittest

import acs
from acs import _library

FOOTPRINT = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


@acs.host_body("pointer, pointer, int32")
def nothing(grid, x, y, n):
    pass


def kernel(uses=None, name="nothing"):
    return acs.Kernel(host=nothing, signature="pointer, pointer, int32", name=name, uses=uses)


def refuse():
    raise ValueError


def touches(context, byte, launch):
    """How an op touches a byte: r, w or -."""
    skipped = []
    for access in ("updates", "reads"):
        context.call(refuse, **{access: [acs.bytes_at(byte, 1)]})
        op = launch()
        try:
            context.wait(op)
            skipped.append(False)
        except acs.SkippedError:
            skipped.append(True)
        context.clear()
    return "w" if skipped[1] else "r" if skipped[0] else "-"


class Declared(unittest.TestCase):
    def setUp(self):
        self.context = acs.Context(backend="host", workers=0)
        self.blocks = [self.context.malloc(256) for _ in range(3)]

    def tearDown(self):
        self.context.close()

    def touched(self, launched, *args, **named):
        """The first and last bytes of all blocks."""
        return "".join(touches(self.context, block.ptr + at, lambda: self.context.launch(launched, 1, 1, args, **named))
                       for block in self.blocks for at in (0, 255))

    def test_words(self):
        x, y, z = self.blocks
        k = kernel("in, inout, none")
        self.assertEqual(self.touched(k, x, y, 1), "rrww--")
        self.assertEqual(self.touched(k, x[0:10], y[5:256], 1), "r--w--")  # of arrays their own bytes
        self.assertEqual(self.touched(k, x.ptr + 7, 0, 1), "rr----")       # of addresses the whole allocation
        self.assertEqual(self.touched(k, x, y, 1, reads=[z]), "----rr")    # a launch that names arrays names all
        acs.declare(k, "out, escapes, none")
        self.assertEqual(self.touched(k, z, y[3:4], 1), "--wwww")
        acs.declare(k, "none, none, none")
        self.assertEqual(self.touched(k, x, y, 1), "------")
        acs.declare(k, None)
        self.assertEqual(self.touched(k, x, y, 1), "wwwwww")

    def test_a_function(self):
        x, y, _ = self.blocks
        k = kernel(lambda a, b, n: {"reads": [a[0:n]], "writes": [acs.whole(b.ptr + n)]})
        self.assertEqual(self.touched(k, x, y, 1), "r-ww--")
        prepared = self.context.prepare(k, 1, 1, (y, x, 1))
        self.assertEqual("".join(touches(self.context, block.ptr, prepared) for block in self.blocks), "wr-")

    def test_what_c_declares(self):
        _library.held.acs_declare.argtypes = [ctypes.c_void_p, FOOTPRINT, ctypes.c_void_p]
        x, y, _ = self.blocks
        k = kernel(name="declared in c")
        self.assertEqual(self.touched(k, x, y, 1), "wwwwww")
        self.assertEqual(self.context.stats()["undeclared"], 12)
        declared = _library.KernelStruct(b"declared in c", None, None, 0, 0)
        none = FOOTPRINT(lambda given, out, room: 0)
        self.assertEqual(_library.held.acs_declare(ctypes.byref(declared), none, None), 0)
        self.assertEqual(self.touched(k, x, y, 1), "------")
        self.assertEqual(self.context.stats()["undeclared"], 12)
        self.assertEqual(_library.held.acs_declare(ctypes.byref(declared), FOOTPRINT(), None), 0)

    def test_mistakes(self):
        x, y, _ = self.blocks
        with self.assertRaisesRegex(ValueError, "has 'read', which is none of in, out"):
            kernel("read, none, none")
        with self.assertRaisesRegex(TypeError, "has 2 words, and the launch 3 arguments"):
            self.context.launch(kernel("in, none"), 1, 1, (x, y, 1))
        with self.assertRaisesRegex(TypeError, "must return a dict"):
            self.context.launch(kernel(lambda *args: [x]), 1, 1, (x, y, 1))
        with self.assertRaisesRegex(ValueError, "what escapes .acs.escapes. is given in updates"):
            self.context.launch(kernel(), 1, 1, (x, y, 1), reads=[acs.escapes(x)])
        memory = (ctypes.c_char * 16)()
        self.context.launch(kernel("in, none, none"), 1, 1, (ctypes.addressof(memory), 0, 1))
        self.context.sync()
        self.assertEqual(self.context.stats()["unknown_memory"], 1)


if __name__ == "__main__":
    unittest.main()
