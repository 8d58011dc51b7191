"""bench/report, run as a program on the result files in results/: essential facts of its tables, comparison, errors."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
REPORT = HERE.parents[1] / "bench" / "report"
RESULTS = HERE / "results"
NEWEST = RESULTS / "h200-2026-01-02"


def run(*arguments):
    return subprocess.run([sys.executable, REPORT, *arguments], capture_output=True, text=True, check=False)


class Scratch(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.scratch = pathlib.Path(folder.name)

    def copy(self, name="copy", keep="*.json"):
        """A copy of the newest results, of the files that match `keep`."""
        target = self.scratch / name
        target.mkdir()
        for file in NEWEST.glob(keep):
            shutil.copy(file, target)
        return target

    def edit(self, file, change):
        data = json.loads(file.read_text())
        change(data)
        file.write_text(json.dumps(data))

    def add_kernel_times(self, file):
        """Two more, since few points make no curve."""
        self.edit(file, lambda data: data["rows"].extend(data["rows"][1] | {"kernel_us": us} for us in (24, 48)))


class Tables(unittest.TestCase):
    """What the tables say of the kept results."""

    @classmethod
    def setUpClass(cls):
        done = run(NEWEST)
        assert done.returncode == 0, done.stderr
        cls.text = done.stdout

    def section(self, begin, end="\n#"):
        """From the heading that begins so to the next one."""
        start = self.text.index(begin)
        stop = self.text.find(end, start + len(begin))
        return self.text[start:stop if stop >= 0 else None]

    def rows(self, section, name):
        """Cells behind the first of each row that begins with `name`."""
        lines = [line.strip("| ").split(" | ") for line in section.split("\n") if line.startswith("|")]
        return [cells[1:] for cells in lines if cells[0] in (name, f"`{name}`")]

    def test_head_names_machine_commit_and_commands(self):
        head = self.section("# h200", "\n###")
        for fact in ("| CPU | Some CPU, 16 CPUs |", "| GPU | NVIDIA H200 |", "| driver | 580.1 |",
                     "| CUDA of the driver | 13.0 |", "| CUDA runtime | 12.5 |", "| commit | abc1234 |",
                     "ACS_STREAMS=8", "2026-01-02T03:04:05Z", "`physics-bench --check --worlds 256`",
                     "`acs-micro`",
                     "test_gpu_launch FAILED (1)"):
            self.assertIn(fact, head)

    def test_what_steps_printed_is_kept_but_not_what_has_a_file(self):
        printed = self.section("### As `tools/gpu-check` printed it")
        self.assertIn("kernels of  10 us: ratio 0.996", printed)
        self.assertNotIn("not shown again", printed)

    def test_devices_have_ratios_to_hand_written_programs_and_their_mean(self):
        section = self.section("### GrCUDA's suite on several GPUs: `devices.json`", "\n### ")
        self.assertIn(["0.800"], self.rows(section, "vec-16"))
        self.assertIn(["0.400"], self.rows(section, "*geometric mean*"))
        self.assertIn(["2.00", "1.60"], self.rows(section, "vec-16"))
        self.assertIn(["1.50"], self.rows(section, "vec-16"))
        self.assertIn(["-"], self.rows(section, "cg"))

    def test_mixes_have_speeds_over_one_job_at_a_time_beside_the_papers(self):
        section = self.section("### HuntKTm's workloads on several GPUs: `mixes.json`", "\n### ")
        self.assertIn("0.125 times the paper's bytes, in one process, on devices of 5.00 GB each", section)
        self.assertEqual(self.rows(section, "W1")[0], ["8 + 8", "1.00", "2.00", "4.00", "**WRONG**"])
        self.assertEqual(self.rows(section, "*geometric mean*")[0][-4:], ["1.00", "2.45", "6.00", "-"])
        self.assertEqual(self.rows(section, "*the paper's, on 4 A100*")[0][-4:], ["1.00", "2.02", "2.69", "2.69"])
        self.assertIn(["14 + 2", "4.80", "9.60", "9.00", "9.00"], self.rows(section, "W4"))
        self.assertIn(["8 + 8", "25.0", "50.0", "100", "**WRONG**"], self.rows(section, "W1"))
        self.assertIn("- W1: 2 jobs of `groups-8`", section)

    def test_launches_to_several_devices_are_a_rate_and_a_ratio(self):
        section = self.section("### Launches to several GPUs: `devices_launches.json`")
        self.assertEqual(self.rows(section, "1"), [["`acs-1`", "1,000,000", "1.00"], ["`acs-gpu-1`", "4,000,000", "1.00"]])
        self.assertEqual(self.rows(section, "2"), [["`acs`", "2,000,000", "2.00"], ["`acs-gpu`", "5,000,000", "1.25"]])

    def test_what_was_found_out_later_is_above_the_table(self):
        section = self.section("### Launches to several GPUs: `devices_launches.json`")
        self.assertIn("\n\nThe clock was wrong in this run.\n\n| devices |", section)
        self.assertNotIn("The clock was wrong", self.section("### GrCUDA's suite on several GPUs: `devices.json`", "\n### "))

    def test_pattern_has_bound_and_best_rival_first(self):
        section = self.section("#### stencil_1d\n")
        self.assertEqual(self.rows(section, "bound"), [["0.500 (path)", "3.00 (path)"]])
        self.assertEqual(self.rows(section, "best rival"), [["1.00 streams", "3.50 acs-sw-4"]])

    def test_median_least_and_most_are_per_op(self):
        section = self.section("#### stencil_1d\n")
        self.assertIn("4.00 (3.88-5.00)", self.rows(section, "acs")[0][1])
        self.assertIn("3.12 (3.00-3.25)", self.rows(section, "graph-replay")[0][1])

    def test_acs_slower_than_a_rival_loses_and_only_then(self):
        section = self.section("#### stencil_1d\n")
        marked = {name: ["loses" in cell for cell in self.rows(section, name)[0]]
                  for name in ("acs", "acs-s4", "acs-sw-4", "acs-off", "stream", "graph-replay")}
        self.assertEqual(marked, {"acs": [True, True], "acs-s4": [False, True], "acs-sw-4": [False, False],
                                  "acs-off": [False, False], "stream": [False, False], "graph-replay": [False, False]})

    def test_summary_divides_the_best_rival_by_the_best_acs(self):
        section = self.section("#### The best mode of ACS")
        self.assertEqual(self.rows(section, "stencil_1d"), [["1.14", "0.875 (loses)"]])
        self.assertIn("in 1 of 2 cases", section)

    def test_wrong_is_never_a_time(self):
        self.assertEqual(self.rows(self.section("#### stencil_1d\n"), "graph-update")[0][1], "**WRONG**")
        self.assertEqual(self.rows(self.section("### METG"), "graph-update"), [["**WRONG**"]])
        self.assertEqual(self.rows(self.section("### Workloads"), "CG")[1][3], "**WRONG**")
        physics = self.rows(self.section("#### 5 scenes"), "graph-update")
        self.assertEqual(physics, [["**WRONG**"]] * 3)
        for time in ("0.123", "0.0154", "321", "322"):
            self.assertNotIn(time, self.text)
        for reason in ("`graph-update` (12 us): task 3 did not see mark 17", "`streams` (CG): residual 1e-2",
                       "`graph-update`: the final state is not that of one stream"):
            self.assertIn(reason, self.text)

    def test_left_out_says_why_once(self):
        self.assertEqual(self.rows(self.section("#### stencil_1d\n"), "graph-step")[0], ["left out", "left out"])
        self.assertEqual(self.text.count("more kernels than a graph may hold"), 1)

    def test_settings_name_their_kernel_times(self):
        self.assertIn("- `streams` (12 us): 2 streams, 1 thread", self.text)

    def test_submission_is_a_table_of_its_own(self):
        self.assertEqual(self.rows(self.section("#### stencil_1d\n"), "acs")[1][0], "0.250 (0.250-0.250)")

    def test_metg_is_interpolated_in_logarithms(self):
        # acs: efficiency 4/16 at 16 us * 4 workers / 8 tasks = 8 us, 24/32 at 16 us: one half at sqrt(8 * 16) = 11.3.
        metg = {name: self.rows(self.section("### METG"), name) for name in ("acs", "stream", "streams")}
        self.assertEqual(metg, {"acs": [["11.3"]], "stream": [["above 50.0"]], "streams": [["below 4.00"]]})

    def test_workloads_show_shape_expectation_and_ratio(self):
        section = self.section("### Workloads")
        self.assertEqual(self.rows(section, "M1")[0], ["HuntKTm", "normal", "17", "16", "8", "4", "the same", "no"])
        self.assertEqual(self.rows(section, "CG")[0][2:], ["97", "200", "18", "12", "97 / - / 16 / - (DIFFERS)", "yes"])
        self.assertEqual(self.rows(section, "M1")[1],
                         ["44.0 (work)", "streams", "100", "50.0, 2.00 x", "80.0, 1.25 x (loses)"])
        self.assertEqual(self.rows(section, "CG")[1], ["-", "stream", "200", "**WRONG**", "160, 1.25 x"])

    def test_overhead_is_beside_starpu_with_and_without_the_loop(self):
        section = self.section("#### independent")
        self.assertEqual(self.rows(section, "acs")[0], ["0.400 (0.400-0.400), less serial 0.300",
                                                        "0.800 (0.800-0.800), less serial 0.700", "2.00"])
        self.assertEqual(self.rows(section, "acs")[1], ["0.200, less serial 0.158",
                                                        "0.400, less serial 0.368 (misses the target)"])

    def test_physics_says_who_wins(self):
        section = self.section("#### 5 scenes")
        self.assertEqual(self.rows(section, "acs"), [["2000 / 2500 (loses)"], ["1200"], ["700"]])
        self.assertEqual(self.rows(section, "step p50"), [["0.800 (acs, graph-max) graph-max wins, ACS loses"]])
        self.assertEqual(self.rows(section, "steps without a wait"), [["1.25 (acs, graph-max) acs wins"]])
        self.assertEqual(self.rows(section, "256"), [["730", "900", "71", "139"]])

    def test_memory_is_per_pair_beside_the_reference(self):
        section = self.section("### Allocate and free on the GPU, blocks not used: `memory.json`")
        self.assertEqual(self.rows(section, "same"), [
            ["100", "1.00 MiB", "-"],
            ["1.00 (0.900-1.10), 2.00 x", "2.00 (2.00-2.00)", "100 (100-100), 0.020 x", "left out"],
            ["3.10, 0.645 x (loses)", "2.00", "100, 0.020 x", "left out"],
            ["1.50 / 2.50", "3.00 / 4.00", "80.0 / 90.0", "left out"],
            ["5.00", "9.00", "120", "left out"],
            ["2.00 (2.00 MiB)", "32.0 (32.0 MiB)", "not known", "left out"]])
        for remark in ("- `malloc`: on the CPU only", "- `cuda`: the first 10 pairs", "the easy case"):
            self.assertIn(remark, section)

    def test_memory_tells_used_blocks_apart_and_hides_wrong_ways(self):
        section = self.section("### Allocate and free on the GPU, blocks used: `memory.json`")
        self.assertEqual(self.rows(section, "log.csv")[0], ["50", "4.00 MiB", "of host memory, so left out: 3"])
        self.assertEqual(self.rows(section, "log.csv")[1], ["**WRONG**", "1.00 (1.00-1.00)"])
        self.assertIn("a block lies in one that has not been freed", section)
        self.assertNotIn("7777", section)

    def test_growth_tells_what_waits_for_the_device(self):
        section = self.section("### Getting memory from the device: `growth.json`")
        self.assertEqual(self.rows(section, "cudaMalloc"),
                         [["2.00", "give", "25.0 (20.0-30.0)", "4000 (4000-4000), waited for it 2.00 of 2.00 times"]])
        self.assertEqual(self.rows(section, "mapping"), [["32.0", "map", "1.00 (1.00-1.00)", "-"]])

    def test_jobs_are_per_job_beside_the_paper(self):
        section = self.section("### Job loops on the GPU: `jobs.json`")
        self.assertEqual(self.rows(section, "sobel"), [
            ["100", "7", "65536", "65536", "1048576"],
            ["20.0 (19.0-21.0)", "10.0 (10.0-10.0)", "left out", "5.00 (5.00-5.00)", "8.00 (8.00-8.00) (loses)",
             "3.00 (3.00-3.00)", "4.00 (4.00-4.00)"],
            ["1.00", "8.00", "left out", "16.0", "1.00", "16.0", "4.00"],
            ["2.00", "-", "4.00", "2.50", "6.67", "5.00", "2.99 / 1.86"],
            ["0.500", "-", "2.00", "1.25", "3.33", "2.50", "1.23 / 1.12"],
            ["0.625", "1.25", "0.750"]])
        self.assertIn("*SET in the paper, RTX 3090 / RTX 5090*", section)
        for remark in ("- `queue` (sobel): there are not CPUs enough", "- `batch` (sobel): 8 streams"):
            self.assertIn(remark, section)

    def test_jobs_hide_wrong_runners_and_have_works_that_the_paper_lacks(self):
        section = self.section("### Job loops on the GPU: `jobs.json`")
        self.assertEqual(self.rows(section, "own")[1][4], "**WRONG**")
        self.assertEqual(self.rows(section, "own")[3][-1], "-")
        self.assertNotIn("888", section)

    def test_micro_has_the_index_beside_all_pairs(self):
        section = self.section("### Host costs")
        self.assertEqual(self.rows(section, "tiles, window 32"), [["100 (90.0-110)", "1000 (900-1100)", "10.0"]])


class Pictures(Scratch):
    """Curves of efficiency as SVG."""

    def draw(self, name):
        folder, results = self.scratch / name, self.copy(f"{name}-results", "patterns.json")
        self.add_kernel_times(results / "patterns.json")
        done = run(results, "--svg", folder, "--out", self.scratch / "r.md")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return (folder / "patterns-stencil_1d.svg").read_text()

    def test_curve_names_every_runner_that_was_right(self):
        svg = self.draw("a")
        texts = [e.text for e in xml.etree.ElementTree.fromstring(svg).iter() if e.tag.endswith("text")]
        for name in ("stream", "streams", "graph-replay", "acs-sw-4", "acs", "acs-s4"):
            self.assertIn(name, texts)
        self.assertNotIn("graph-update", texts)

    def test_same_input_gives_same_bytes_and_loads_nothing(self):
        svg = self.draw("a")
        self.assertEqual(svg, self.draw("b"))
        self.assertIsNone(re.search(r"href|url\(|<script|<style|@import", svg))

    def test_few_points_make_no_picture(self):
        done = run(NEWEST, "--svg", self.scratch / "few")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertFalse((self.scratch / "few").exists())

    def test_markdown_refers_to_the_file(self):
        self.draw("a")
        self.assertIn("](a/patterns-stencil_1d.svg)", (self.scratch / "r.md").read_text())


class Comparison(Scratch):
    """--compare: exit status, and what is listed."""

    def slower(self, factor):
        """Another run in which acs took `factor` times as long at 12 us."""
        other = self.copy("other", "patterns.json")

        def change(data):
            for outcome in data["rows"][1]["runners"]:
                if outcome["name"] == "acs":
                    outcome["total_us"] = [t * factor for t in outcome["total_us"]]
        self.edit(other / "patterns.json", change)
        return self.copy("one", "patterns.json"), other

    def test_a_run_agrees_with_itself(self):
        one = self.copy("one", "[mo][iv][ce]*.json")
        done = run("--compare", one, one, "--agree", "1")
        self.assertEqual(done.returncode, 0)
        self.assertIn("11 of 11 agree", done.stdout)

    def test_overlapping_ranges_agree(self):
        done = run("--compare", *self.slower(1.2), "--agree", "1")
        self.assertNotIn("12: acs, us:", done.stdout)

    def test_ranges_apart_are_listed_and_fail(self):
        done = run("--compare", *self.slower(2), "--agree", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("acs, us: 32.0 (31.0-40.0) and 64.0 (62.0-80.0)", done.stdout)
        self.assertIn("NOT ENOUGH", done.stdout)

    def test_enough_may_disagree(self):
        done = run("--compare", *self.slower(2), "--agree", "0.8")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_medians_within_a_given_part_agree(self):
        pair = self.slower(2)
        self.assertIn("acs, us: 32.0", run("--compare", *pair, "--within", "0.9").stdout)
        self.assertNotIn("acs, us: 32.0", run("--compare", *pair, "--within", "1").stdout)

    def test_wrong_never_agrees(self):
        one = self.copy("one", "patterns.json")
        done = run("--compare", one, one, "--agree", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("graph-update, us: WRONG and WRONG", done.stdout)

    def test_a_row_that_one_run_lacks_does_not_agree(self):
        other = self.copy("other", "patterns.json")
        self.edit(other / "patterns.json", lambda data: data["rows"].pop())
        done = run("--compare", self.copy("one", "patterns.json"), other)
        self.assertEqual(done.returncode, 1)
        self.assertIn("12: streams, us: 30.0 (30.0-30.0) and not there", done.stdout)

    def test_nothing_in_common_is_bad_input(self):
        done = run("--compare", self.copy("one", "patterns.json"), self.copy("other", "micro.json"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("no row and runner in common", done.stderr)


class Document(Scratch):
    """--performance: what the first page and the pages behind it show."""

    def results(self):
        root = self.scratch / "results"
        shutil.copytree(RESULTS, root)
        return root

    def make(self, root):
        done = run("--performance", root, "--into", self.scratch / "docs")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return (self.scratch / "docs" / "performance.md").read_text()

    def page(self, name):
        return (self.scratch / "docs" / "performance" / f"{name}.md").read_text()

    def test_newest_file_of_each_gpu_is_shown(self):
        root = self.results()
        shutil.copytree(RESULTS / "h200-2026-01-01", root / "rtx-3060-2025-01-01")
        self.make(root)
        self.assertEqual(re.findall(r"^## (.*)$", self.page("launches"), re.MULTILINE), ["h200", "rtx-3060"])
        self.assertNotIn("h200-2026-01-01", self.page("launches"))

    def test_a_file_that_the_newest_set_lacks_is_of_an_older_one(self):
        root = self.results()
        (root / "h200-2026-01-02" / "micro.json").unlink()
        self.assertIn("[h200-2026-01-01](../bench/results/h200-2026-01-01.md)", self.make(root))
        self.assertIn("h200-2026-01-01", self.page("launches"))

    def test_archives_give_the_same_document_as_directories(self):
        text, root = self.make(RESULTS), self.scratch / "packed"
        for name in ("h200-2026-01-01", "h200-2026-01-02"):
            self.assertEqual(run("--pack", RESULTS / name, "--into", root).returncode, 0)
        self.assertEqual(self.make(root), text)

    def test_first_page_says_how_much_is_won_and_lost(self):
        text = self.make(RESULTS)
        self.assertIn("| stencil_1d | **0.500** | **0.875** |", text)
        self.assertIn("| everything at its maximum size, one graph | 1600 | 2900 | 1500 | 1.25 |", text)
        self.assertIn("| [physics, a step](performance/physics.md) | 1 of 1 | 5 scenes of 256 worlds 1.25 (`graph-max`) |", text)
        self.assertIn("| [programs of the papers](performance/workloads.md) | 1 of 2 | 0.625 | 0.884 | 1.25 |", text)

    def test_what_a_launch_costs_is_read_from_what_was_printed(self):
        root = self.results()
        (root / "h200-2026-01-02" / "chain.txt").write_text(
            "kernels of  10 us: one stream   12.00 us per kernel, ACS   11.00 us, ratio 0.917 (target at most 1.03)\n")
        self.assertIn("| 10 | 12.0 | 11.0 | 0.917 |", self.make(root))
        self.assertIn("kernels of  10 us: one stream   12.00", self.page("launches"))

    def test_printed_line_of_another_form_is_refused(self):
        root = self.results()
        (root / "h200-2026-01-02" / "latency.txt").write_text("something else\n")
        done = run("--performance", root, "--into", self.scratch / "docs")
        self.assertEqual(done.returncode, 2)
        self.assertIn("latency.txt: cannot be read: something else", done.stderr)

    def test_pictures_are_written_and_referred_to(self):
        root, name = self.results(), "h200-patterns-stencil_1d.svg"
        self.add_kernel_times(root / "h200-2026-01-02" / "patterns.json")
        self.make(root)
        self.assertIn(f"]({name})", self.page("patterns"))
        self.assertTrue((self.scratch / "docs" / "performance" / name).exists())

    def test_directory_with_another_name_is_refused(self):
        (self.scratch / "results" / "2026-01-02-h200").mkdir(parents=True)
        done = run("--performance", self.scratch / "results")
        self.assertEqual(done.returncode, 2)
        self.assertIn("2026-01-02-h200: is not named <gpu>-<year>", done.stderr)


class Archives(Scratch):
    """--pack and --summary, and archives in place of directories."""

    def pack(self, directory=NEWEST, into="packed"):
        done = run("--pack", directory, "--into", self.scratch / into)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return self.scratch / into / f"{directory.name}.tar.xz"

    def test_archive_has_the_tables_of_its_directory(self):
        self.assertEqual(run(self.pack()).stdout, run(NEWEST).stdout)

    def test_same_files_give_the_same_archive(self):
        self.assertEqual(self.pack().read_bytes(), self.pack(into="again").read_bytes())

    def test_archive_agrees_with_its_directory(self):
        one = self.scratch / "h200-2026-01-03"
        one.mkdir()
        shutil.copy(NEWEST / "micro.json", one)
        self.assertEqual(run("--compare", one, self.pack(one), "--agree", "1").returncode, 0)

    def test_summary_lies_beside_the_archive_and_can_be_made_again(self):
        archive = self.pack()
        made = run("--summary", archive)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual(archive.with_name("h200-2026-01-02.md").read_text(), made.stdout)

    def test_summary_names_machine_and_command_and_says_what_was_found(self):
        note = "Kept for its physics.\n"
        copy = self.copy("h200-2026-01-03", "rivals.json")
        (copy / "note.txt").write_text(note)
        text = run("--summary", self.pack(copy)).stdout
        for fact in ("# h200-2026-01-03", note, "`physics-bench --check --worlds 256`", "2026-01-02 03:07:05 UTC",
                     "| `rivals.json` | physics, a step | 0 of 1 | 0.800 | 0.800 | 0.800 |"):
            self.assertIn(fact, text)

    def test_what_is_no_archive_is_refused(self):
        broken = self.scratch / "h200-2026-01-03.tar.xz"
        broken.write_bytes(b"not an archive")
        done = run(broken)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("h200-2026-01-03.tar.xz: is no archive", done.stderr)

    def test_archive_that_is_cut_off_is_refused(self):
        archive = self.pack()
        archive.write_bytes(archive.read_bytes()[:-200])
        done = run(archive)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("is no archive", done.stderr)

    def test_directory_with_another_name_is_not_packed(self):
        done = run("--pack", self.copy("other"), "--into", self.scratch)
        self.assertEqual(done.returncode, 2)
        self.assertIn("other: is not named <gpu>-<year>", done.stderr)


class Errors(Scratch):
    """Input that cannot be used: status 2, and a line that names file and field."""

    def refused(self, directory, *words):
        done = run(directory)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def changed(self, change, name="patterns.json"):
        copy = self.copy(keep=name)
        self.edit(copy / name, change)
        return copy

    def test_text_that_is_not_json(self):
        copy = self.copy()
        (copy / "patterns.json").write_text('{"program": "acs-bench", "rows": [')
        self.refused(copy, "patterns.json: is not JSON")

    def test_empty_directory(self):
        self.refused(self.scratch, "has no result file")

    def test_no_directory(self):
        self.refused(self.scratch / "nowhere", "nowhere: is neither a directory nor an archive")

    def test_unknown_program(self):
        self.refused(self.changed(lambda d: d.update(program="other")), "patterns.json: program", "'other'")

    def test_missing_field(self):
        self.refused(self.changed(lambda d: d["rows"][1].pop("ops")), "patterns.json: rows[1].ops is missing")

    def test_field_of_another_type(self):
        self.refused(self.changed(lambda d: d["rows"][0]["runners"][2].update(name=7)),
                     "patterns.json: rows[0].runners[2].name must be a text, not 7")

    def test_time_that_is_no_number(self):
        self.refused(self.changed(lambda d: d["rows"][0]["runners"][0].update(total_us=[1, "2"])),
                     'patterns.json: rows[0].runners[0].total_us[1] must be a number, not "2"')


    def test_time_that_is_not_finite(self):
        self.refused(self.changed(lambda d: d["rows"][0]["runners"][0].update(total_us=[float("nan")])),
                     "rows[0].runners[0].total_us[0] must be a number, not NaN")

    def test_number_that_must_be_above_zero(self):
        self.refused(self.changed(lambda d: d["rows"][0].update(ops=0)), "rows[0].ops must be more than 0, not 0")

    def test_kernel_time_twice(self):
        self.refused(self.changed(lambda d: d["rows"][1].update(kernel_us=2)), "rows[1].kernel_us is there twice")

    def test_runner_twice(self):
        self.refused(self.changed(lambda d: d["rows"][4].update(runner="stream"), "rivals.json"),
                     "names a runner twice")

    def test_memory_without_the_pairs_of_a_way(self):
        self.refused(self.changed(lambda d: d["rows"][0]["runners"][1].pop("pairs"), "memory.json"),
                     "memory.json: rows[0].runners[1].pairs is missing")

    def test_memory_without_the_times_of_the_calls(self):
        self.refused(self.changed(lambda d: d["rows"][0]["runners"][1].update(calls_us=[]), "memory.json"),
                     "memory.json: rows[0].runners[1].calls_us has no times")

    def test_jobs_without_their_number(self):
        self.refused(self.changed(lambda d: d["rows"][0].pop("jobs"), "jobs.json"), "jobs.json: rows[0].jobs is missing")

    def test_physics_without_its_median(self):
        self.refused(self.changed(lambda d: d["rows"][0]["step_us"].pop("p50"), "rivals.json"),
                     "rivals.json: rows[0].step_us.p50 is missing")

    def test_unknown_and_absent_fields_are_no_error(self):
        def change(data):
            for row in data["rows"]:
                row.update(later="field")
                for name in ("fields", "functions", "check", "edges", "depth", "critical_us", "ideal_us", "workers"):
                    row.pop(name)
        self.assertEqual(run(self.changed(change)).returncode, 0)

    def test_file_without_rows_is_named(self):
        self.assertIn("Without any row: patterns.json.", run(self.changed(lambda d: d.update(rows=[]))).stdout)

    def test_two_commands_at_once(self):
        self.assertEqual(run(NEWEST, "--performance", RESULTS).returncode, 2)

    def test_option_of_another_command(self):
        self.assertEqual(run(NEWEST, "--into", self.scratch).returncode, 2)
        self.assertEqual(run("--performance", RESULTS, "--svg", self.scratch).returncode, 2)


if __name__ == "__main__":
    unittest.main()
