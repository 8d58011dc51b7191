"""Tests of bench/adopted: what the suite reads in Makefiles and makes of figures, and what watch.c tells of memory.

The watched program runs over a pretended CUDA runtime, whose memory is the host's. Needs a C compiler; no GPU.
"""
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
FOLDER = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "bench", "adopted")


def _suite():
    loader = importlib.machinery.SourceFileLoader("suite", os.path.join(FOLDER, "suite"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("suite", loader))
    loader.exec_module(module)
    return module


suite = _suite()

RUNTIME = """
#include <stdlib.h>
#include <string.h>
int cudaMalloc(void **at, size_t bytes) { *at = malloc(bytes); memset(*at, 7, bytes); return 0; }
int cudaFree(void *at) { free(at); return 0; }
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind) { (void)kind; memcpy(to, from, bytes); return 0; }
int cudaMemset(void *at, int value, size_t bytes) { memset(at, value, bytes); return 0; }
int cudaDeviceSynchronize(void) { return 0; }
int cudaDeviceReset(void) { return 0; }
"""
PROGRAM = """
#include <stddef.h>
int cudaMalloc(void **, size_t); int cudaFree(void *); int cudaMemset(void *, int, size_t);
int main(int argc, char **argv)
{
    void *a, *b, *c;
    (void)argv;
    cudaMalloc(&a, 100); cudaMalloc(&b, 20000000); cudaMalloc(&c, 8);
    cudaMemset((char *)b + 17000000, argc, 5);
    cudaFree(b);
    return 0;
}
"""
MAKEFILE = """
CC = nvcc
EXTRA ?= -DEXTRA=2
CFLAGS := $(EXTRA) -std=c++14 -Wall -I../include -O3 # -DNOT_THIS
CFLAGS += -DREPEAT
LDFLAGS = -lm
program = main

run: $(program)
\t@echo running
\t$(LAUNCHER) ./$(program) 1024 "two words" > out.txt
"""


class Makefiles(unittest.TestCase):
    def test_options_and_arguments(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "Makefile"), "w", encoding="utf-8") as file:
                file.write(MAKEFILE)
            made = suite.Makefile(folder)
            self.assertEqual(sorted(made.options()), ["-DEXTRA=2", "-DREPEAT", "-I../include", "-lm"])
            self.assertEqual(made.arguments(), ["1024", "two words"])
            self.assertEqual(suite.Makefile(os.path.join(folder, "none")).arguments(), [])


class Tables(unittest.TestCase):
    def test_factors(self):
        def row(name, outcome, equal, plain, acs):
            return {"name": name, "outcome": outcome, "equal": equal, "plain_us": plain, "acs_us": acs, "adopt": ""}
        lines = suite.table([row("a", "measured", True, [10, 20, 30], [10, 10, 90]),
                             row("b", "measured", False, [10], [20]), row("c", "left as it is", None, [], [])])
        self.assertIn("| a | measured | equal | 20 | 10 | 0.50 |", lines)
        self.assertIn("| b | measured | **DIFFERENT** | 10 | 20 | 2.00 |", lines)
        self.assertIn("| c | left as it is | - | - | - | - |", lines)
        self.assertIn("2 programs measured: ACS over plain 1.00 in the geometric mean, 0.50 to 2.00; 1 slower than 1.03", lines)
        self.assertEqual(lines[-1], "1: left as it is")
        self.assertEqual([suite.is_bad(row("", *more, [], [])) for more in (
            ("measured", True), ("measured", False), ("acs: ended with 1", None), ("plain: ended with 1", None))],
            [False, True, True, False])


class Watch(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        for name, text in (("runtime.c", RUNTIME), ("program.c", PROGRAM)):
            with open(self.at(name), "w", encoding="utf-8") as file:
                file.write(text)
        self.make("-fPIC", "-shared", "-o", self.at("libruntime.so"), self.at("runtime.c"))
        self.make("-fPIC", "-shared", "-o", self.at("libwatch.so"), os.path.join(FOLDER, "watch.c"), "-ldl")
        self.make("-o", self.at("program"), self.at("program.c"), "-L" + self.folder.name, "-lruntime",
                  "-Wl,-rpath," + self.folder.name)

    def at(self, name):
        return os.path.join(self.folder.name, name)

    def make(self, *words):
        subprocess.run(["cc", "-std=gnu11", "-Wall", "-Werror", *words], check=True)

    def watched(self, memory, *arguments):
        told = self.at("told")
        env = dict(os.environ, LD_PRELOAD=self.at("libwatch.so"), WATCH_FILE=told, WATCH_MEMORY=memory)
        subprocess.run([self.at("program"), *arguments], env=env, check=True)
        with open(told, encoding="utf-8") as file:
            lines = [line.split() for line in file]
        os.unlink(told)
        return lines

    def test_memory_is_told_when_it_is_freed_and_at_the_end(self):
        first, again, other = self.watched("1"), self.watched("1"), self.watched("1", "more")
        self.assertEqual([words[:3] for words in first if words[0] == "memory"],
                         [["memory", "2", "20000000"], ["memory", "3", "8"], ["memory", "1", "100"]])
        hashes = [[words[3] for words in run if words[0] == "memory"] for run in (first, again, other)]
        self.assertEqual(hashes[0], hashes[1])
        self.assertNotEqual(hashes[0][0], hashes[2][0])
        self.assertEqual(hashes[0][1:], hashes[2][1:])

    def test_time_alone(self):
        lines = self.watched("0")
        self.assertEqual([words[0] for words in lines], ["time"])
        self.assertGreaterEqual(float(lines[0][1]), 0)


class RunOnly(unittest.TestCase):
    """Programs that were built elsewhere: the watched program stands for both, over the pretended runtime."""

    def _run(self, *arguments):
        command = [sys.executable, os.path.join(FOLDER, "suite"), *arguments]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)

    def test_runs_what_is_there(self):
        with tempfile.TemporaryDirectory() as folder:
            source, out = os.path.join(folder, "src"), os.path.join(folder, "out")
            runtime, program = os.path.join(folder, "runtime.c"), os.path.join(folder, "program.c")
            for path, text in ((runtime, RUNTIME), (program, PROGRAM)):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            library, watch = os.path.join(folder, "libruntime.so"), os.path.join(out, "libwatch.so")
            for name in ("one", "two"):
                os.makedirs(os.path.join(source, name))
                with open(os.path.join(source, name, "main.cu"), "w", encoding="utf-8"):
                    pass
            os.makedirs(out)
            subprocess.run(["cc", "-shared", "-fPIC", "-o", library, runtime], check=True)
            subprocess.run(["cc", "-std=gnu11", "-shared", "-fPIC", "-o", watch, os.path.join(FOLDER, "watch.c"), "-ldl"], check=True)
            for kind in ("plain", "acs"):
                at = os.path.join(out, kind, "one")
                os.makedirs(at)
                subprocess.run(["cc", "-o", os.path.join(at, "suite_program"), program, library, "-Wl,-rpath," + folder],
                               check=True)
            json = os.path.join(folder, "rows.json")
            run = self._run("--run-only", "--out", out, "--reps", "1", "--jobs", "2", "--json", json, source)
            self.assertEqual(run.returncode, 0, run.stdout)
            self.assertIn("| one | measured | equal |", run.stdout)
            self.assertIn("| two | not there |", run.stdout)
            with open(json, encoding="utf-8") as file:
                self.assertIn('"complete": true', file.read())

    def test_building_or_running_is_asked_for(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self._run(folder).returncode, suite.WRONG_USE)
            self.assertEqual(self._run("--run-only", "--build", folder, folder).returncode, suite.WRONG_USE)


if __name__ == "__main__":
    unittest.main()
