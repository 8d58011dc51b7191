"""
acs.tune without a GPU: what is tried, measured at which share, kept, saved and skipped, with a compiler and a clock that are
fakes; and the versions that it declares, on CPU threads where libacs.so has them.
"""

import contextlib
import ctypes
import importlib.util
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import acs
import acs.tune
from acs import _library
from acs.tune import _compile, _found, _space

SPACE = {"TILE": [8, 16, 32, 64, 128], "UNROLL": [1, 2, 4], "FAST": [False, True]}
PROBLEM = acs.tune.Problem((None, 100), name="n = 100")


def time_of(config, share, size=1):
    """Large tiles are best on the whole GPU, small ones on parts of it; UNROLL=2 is always best."""
    best = 128 * share // 100
    return size * (10 + abs(config["TILE"] - best) + 3 * abs(config["UNROLL"] - 2) + (0 if config["FAST"] else 1)) * 100 / share


class Family:
    """A compiler that is none. A launch is (configuration, problem)."""

    name, fingerprint = "fake", "1"

    def __init__(self):
        self.compiled, self.declared = [], None

    def prepare(self, context, config, problem):
        self.compiled.append(config)
        if config["TILE"] == 64 and config["UNROLL"] == 4:
            raise acs.tune.Unfit("too much shared memory")
        return None if config["TILE"] > problem.args[1] else (config, problem)

    def declare(self, base, versions):
        self.declared = base, versions
        return "tuned"


class Clock:
    def __init__(self, sizes=None):
        self.calls, self.sizes = [], sizes or {}

    def __call__(self, launch, share):
        config, problem = launch
        self.calls.append((_space.name_of(config), problem.name, share))
        if config["TILE"] == 8 and config["FAST"]:
            raise acs.LaunchError("too many blocks\nmore", 8)
        return time_of(config, share, self.sizes.get(problem.name, 1))


def search(family=None, problems=(PROBLEM,), clock=None, **more):
    return acs.tune.search(family or Family(), more.pop("space", SPACE), list(problems), measure=clock or Clock(), **more)


class Search(unittest.TestCase):
    def test_all_of_a_small_space_is_tried_once(self):
        family, clock = Family(), Clock()
        found = search(family, [acs.tune.Problem((None, 200))], clock, trials=1000)
        self.assertEqual(found.trials, 30)
        self.assertEqual(len({_space.name_of(config) for config in family.compiled}), 30)
        self.assertEqual(found.skipped, {"too much shared memory": 2, "too many blocks": 3})
        self.assertEqual(len(clock.calls), len(set(clock.calls)))
        self.assertEqual(found.best(100)[0], {"TILE": 128, "UNROLL": 2, "FAST": True})
        self.assertEqual(found.best(50)[0], {"TILE": 64, "UNROLL": 2, "FAST": True})
        self.assertEqual(found.best(10)[0]["TILE"], 16)
        self.assertEqual(found.base, found.best(100)[0])
        self.assertIn(found.best(10)[0], found.versions.values())
        self.assertIn("launch 1", found.table())

    def test_shares_between_see_the_best_quarter_of_either_end(self):
        clock = Clock()
        found = search(clock=clock, problems=[acs.tune.Problem((None, 200))], trials=1000)
        at = {share: {name for name, _, s in clock.calls if s == share} for share in (100, 50, 20, 10)}
        valid = len(found.configs)
        self.assertEqual(valid, 25)
        self.assertEqual(len(at[10]), valid)
        self.assertEqual(at[50], at[20])
        self.assertLess(len(at[50]), 2 * 7 + 1)
        for share in (100, 10):
            best = sorted(found.configs, key=lambda config: time_of(config, share))[:6]
            self.assertLessEqual({_space.name_of(config) for config in best}, at[50])

    def test_the_same_seed_tries_the_same(self):
        tried = []
        for seed in (1, 1, 2):
            family = Family()
            search(family, trials=10, seed=seed)
            tried.append(family.compiled)
        self.assertEqual(tried[0], tried[1])
        self.assertNotEqual(tried[0], tried[2])
        self.assertEqual(len(tried[0]), 10)

    def test_a_constraint_costs_no_trials(self):
        family = Family()
        found = search(family, trials=4, constraint=lambda config: config["TILE"] == 32)
        self.assertEqual((found.trials, {config["TILE"] for config in family.compiled}), (4, {32}))

    def test_a_configuration_fits_one_problem_alone(self):
        problems = [acs.tune.Problem((None, 50), name="small"), acs.tune.Problem((None, 200), name="large")]
        found = search(problems=problems, clock=Clock({"large": 100}), trials=1000)
        self.assertLessEqual(found.base["TILE"], 50)                     # the base runs all of them
        self.assertEqual(found.best(100, 1)[0]["TILE"], 128)
        self.assertIn(128, [config["TILE"] for config in found.versions.values()])
        text = found.table()
        self.assertIn("small", text)
        self.assertIn("large", text)

    def test_versions_that_are_kept(self):
        times = {(0, 0, 100): 10., (0, 0, 10): 100., (1, 0, 100): 12., (1, 0, 10): 50., (2, 0, 100): 11., (2, 0, 10): 60.,
                 (3, 0, 100): 10.5, (3, 0, 10): 99.}
        for most, picked in ((1, [0]), (2, [0, 1]), (4, [0, 1])):
            self.assertEqual(_found.chosen(times, 4, 1, (100, 10), most), picked)
        self.assertEqual(_found.chosen({}, 0, 1, (100,), 4), [])

    def test_wrong_results_are_skipped(self):
        class Checked(Family):
            def prepare(self, context, config, problem):
                super().prepare(context, {**config, "UNROLL": 1}, problem)
                self.last = config
                return Call((config, problem))

        class Call(tuple):
            def __call__(self):
                ran.append(self[0])

        ran, family = [], Checked()
        found = search(family, trials=1000, check=lambda problem: family.last["UNROLL"] != 2)
        self.assertEqual(len(ran), 30)
        self.assertEqual(found.skipped["its results are wrong"], 10)
        self.assertEqual(found.base["UNROLL"] in (1, 4), True)

    def test_lists_of_configurations_and_those_of_triton(self):
        class Config:
            def __init__(self, **kwargs):
                self.kwargs, self.num_warps, self.num_stages = kwargs, 4, 2

        space = _space.Space([Config(BLOCK=16), {"BLOCK": 32}])
        self.assertEqual([space.at(0), space.at(1)], [{"BLOCK": 16, "num_warps": 4, "num_stages": 2}, {"BLOCK": 32}])
        found = search(space=[{"TILE": 16, "UNROLL": 2, "FAST": True}, {"TILE": 128, "UNROLL": 2, "FAST": True}],
                       problems=[acs.tune.Problem((None, 200))])
        self.assertEqual(found.base["TILE"], 128)
        self.assertEqual(list(found.versions), ["TILE16-UNROLL2-FASTTrue"])
        with self.assertRaisesRegex(TypeError, "no configuration"):
            _space.Space([7])

    def test_large_spaces(self):
        space = _space.Space({f"P{i}": list(range(10)) for i in range(12)})
        drawn = space.drawn(1)
        names = [_space.name_of(next(drawn)) for _ in range(100)]
        self.assertEqual(len(set(names)), 100)
        self.assertTrue(all(re.fullmatch("config-[0-9a-f]{12}", name) for name in names))

    def test_mistakes(self):
        for more, text in (({"sampler": "best"}, "no sampler 'best'"), ({"trials": 0}, "at least"), ({"problems": ()}, "at least"),
                           ({"space": {"TILE": []}}, "no configurations")):
            with self.assertRaisesRegex(ValueError, text):
                search(**more)
        with self.assertRaises(acs.ArgumentError):
            search(shares=(100, 0))
        with self.assertRaisesRegex(ValueError, "none of 2 configurations .*2 times: too much shared memory"):
            search(space={"TILE": [64], "UNROLL": [4], "FAST": [False, True]})

    @unittest.skipUnless(importlib.util.find_spec("optuna"), "optuna is not installed")
    def test_optuna(self):
        family = Family()
        found = search(family, [acs.tune.Problem((None, 200))], trials=20, sampler="optuna")
        self.assertEqual(found.trials, 20)
        self.assertEqual(len({_space.name_of(config) for config in family.compiled}), 20)
        self.assertEqual(found.best(100)[0]["TILE"], 128)
        self.assertEqual(search(sampler="optuna", trials=1000).trials, 30)
        one = [{"TILE": 16, "UNROLL": 2, "FAST": True}]
        self.assertEqual(search(sampler="optuna", space=one).trials, 1)

    @unittest.skipIf(importlib.util.find_spec("optuna"), "optuna is installed")
    def test_optuna_is_missing(self):
        with self.assertRaisesRegex(acs.UnsupportedError, "needs the package optuna"):
            search(sampler="optuna")

    def test_progress(self):
        out = io.StringIO()
        with contextlib.redirect_stderr(out):
            search(trials=3, progress=True)
        self.assertRegex(out.getvalue(), "acs.tune: fake: trial 3 of 3, .* s, about 0 s left")


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name) / "sub" / "found.json"

    def tearDown(self):
        self.folder.cleanup()

    def test_what_was_saved_is_declared_without_a_search(self):
        found = search(trials=1000)
        found.save(self.path)
        family = Family()
        loaded = acs.tune.load(self.path, family)
        self.assertEqual((loaded.base, loaded.versions, loaded.trials), (found.base, found.versions, 30))
        self.assertEqual(loaded.declare(), "tuned")
        self.assertEqual(family.declared, (found.base, found.versions))
        self.assertEqual(family.compiled, [])
        self.assertEqual(os.listdir(self.path.parent), ["found.json"])
        loaded.save(self.path)
        self.assertEqual(acs.tune.load(self.path, family).versions, found.versions)

    def test_files_that_do_not_fit(self):
        found, family = search(trials=5), Family()
        with self.assertRaises(FileNotFoundError):
            acs.tune.load(self.path, family)
        found.save(self.path)
        family.fingerprint = "2"
        with self.assertRaisesRegex(acs.StateError, "search again"):
            acs.tune.load(self.path, family)
        whole = json.loads(self.path.read_text())
        for change in ({"acs-tune": 2}, {"times": [[9, 0, 100, 1.0]]}, {"times": [[0, 0, 100, -1.0]]}, {"times": 5}, {"shares": "x"},
                       {"configurations": [1]}):
            self.path.write_text(json.dumps({**whole, **change}))
            with self.assertRaisesRegex(ValueError, "no file of acs.tune"):
                acs.tune.load(self.path, Family())
        for text in ("", "[]", "{}", "\0"):
            self.path.write_text(text)
            with self.assertRaisesRegex(ValueError, "no file of acs.tune"):
                acs.tune.load(self.path, Family())

    def test_the_program(self):
        file = pathlib.Path(self.folder.name) / "described.py"
        file.write_text(f"""
import sys
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
import test_tune as t
def searches(context):
    assert sys.argv[1:] == ["one", "-x"], sys.argv
    return [dict(family=t.Family(), space=t.SPACE, launches=[t.PROBLEM], measure=t.Clock(), file={str(self.path)!r})]
""")

        def run(*words):
            done = subprocess.run([sys.executable, "-m", "acs.tune", *words], capture_output=True, text=True,
                                  env={**os.environ, "ACS_BACKEND": "host"})
            return done.returncode, done.stdout + done.stderr

        status, said = run("--trials", "7", "--shares", "100,10", str(file), "one", "-x")
        self.assertEqual(status, 0, said)
        self.assertIn("fake: 7 configurations tried", said)
        self.assertEqual(json.loads(self.path.read_text())["shares"], [100, 10])
        self.assertEqual(run("--sampler", "best", str(file))[0], 64)
        file.write_text("")
        self.assertEqual(run(str(file)), (1, f"acs-tune: {file} has no function searches(context)\n"))
        self.assertEqual(run(str(file) + "x"), (1, f"acs-tune: {file}x is no Python file\n"))
        self.assertEqual(run(str(file) + "x.py")[0], 1)


SIGNATURE = "pointer, int32"


class Compilers(unittest.TestCase):
    """The families, with compilers that are fakes."""

    def setUp(self):
        self.compiled, self.real = [], _compile._compiled

        def compiled(text, name, include):
            self.compiled.append(text)
            if "#define TILE 99" in text:
                raise acs.tune.Unfit("error: 99")
            return 4096 + 16 * len(self.compiled)

        _compile._compiled = compiled

    def tearDown(self):
        _compile._compiled = self.real

    def family(self):
        return acs.tune.Cuda("source", "scale", signature=SIGNATURE, block=lambda c: c["TILE"], shared=lambda c: 4 * c["TILE"],
                             grid=lambda c, args: None if args[1] > 1000 else -(-args[1] // c["TILE"]))

    def test_cuda(self):
        family = self.family()
        kernel = family.kernel({"TILE": 16, "FAST": True})
        self.assertEqual(self.compiled, ["#define TILE 16\n#define FAST 1\n#line 1\nsource"])
        self.assertIs(family.kernel({"TILE": 16, "FAST": True}), kernel)
        self.assertRegex(kernel.name, r"^scale\.[0-9a-f]{12}$")
        self.assertEqual(family.shape({"TILE": 16}, (123, 100)), (7, 16, 64))
        self.assertIsNone(family.shape({"TILE": 16}, (123, 1001)))
        self.assertNotEqual(family.fingerprint, acs.tune.Cuda("other", "scale", signature=SIGNATURE, block=1,
                                                              grid=lambda c, args: 1).fingerprint)
        with self.assertRaises(acs.tune.Unfit):
            family.kernel({"TILE": 99})

    def test_a_search_on_the_cpu(self):
        to, share_of = (ctypes.c_int32 * 4)(), []
        with acs.Context(backend="host", workers=0) as context:
            def measure(launch, share):
                share_of.append(share)
                return launch._params.block.x + share
            found = acs.tune.search(self.family(), {"TILE": [8, 16, 99]}, [acs.tune.Problem((to, 100), updates=[to])],
                                    context=context, measure=measure)
        self.assertEqual(found.skipped, {"error: 99": 1})
        self.assertEqual((found.base, found.versions), ({"TILE": 8}, {}))
        self.assertEqual(set(share_of), {100, 50, 20, 10})

    def test_what_was_found_is_declared(self):
        tuned = self.family().declare({"TILE": 16}, {"TILE8": {"TILE": 8}})
        self.assertEqual(tuned.kernel.versions, ("base", "TILE8"))
        self.assertEqual(tuned._shape((0, 100)), (7, 16, 64))
        with self.assertRaisesRegex(ValueError, "does not fit these arguments"):
            tuned._shape((0, 1001))


if __name__ == "__main__":
    unittest.main()
