"""The types of the Python package, by mypy. Skipped where mypy is not installed."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PACKAGE = pathlib.Path(__file__).resolve().parent.parent / "acs"

USE = """
import acs

def program(context: acs.Context, kernel: acs.Kernel, a: object, b: acs.Span) -> int:
    op: int = context.launch(kernel, (4, 1), 256, (a, b, 1.0), reads=[a], updates=[b])
    block: acs.Block = context.malloc(1024, lazy=True)
    context.wait(context.copy(block[:512], b))
    with context.group() as figures:
        context.fill(block, 0)
    return op + figures["ops"] + block.free()
"""


@unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not installed")
class Types(unittest.TestCase):
    def mypy(self, *what):
        with tempfile.TemporaryDirectory() as cache:
            done = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", cache, "--ignore-missing-imports", *what],
                                  capture_output=True, text=True,
                                  env={**os.environ, "MYPYPATH": str(PACKAGE.parent)})
        return done.returncode, done.stdout + done.stderr

    def test_the_package(self):
        status, text = self.mypy(str(PACKAGE))
        self.assertEqual(status, 0, text)

    def test_a_program_that_uses_it(self):
        status, text = self.mypy("--strict", "-c", USE)
        self.assertEqual(status, 0, text)

    def test_a_mistake_is_seen(self):
        status, text = self.mypy("-c", USE.replace("op: int", "op: str"))
        self.assertEqual(status, 1, text)
        self.assertIn("Incompatible types in assignment", text)


if __name__ == "__main__":
    unittest.main()
