"""acs-report: the pages that it writes, what it prints, and which files it refuses. With no browser."""
import html.parser
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "acs-report"
sys.path[:0] = [str(ROOT / "tools"), str(pathlib.Path(__file__).parent)]
sys.dont_write_bytecode = True

from acs_report import page as pages  # noqa: E402
import recordings  # noqa: E402


class Elements(html.parser.HTMLParser):
    """Names of the elements of a page, and the text of its data."""

    def __init__(self):
        super().__init__()
        self.names, self.data, self.inside = [], "", False

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.inside = tag == "script" and dict(attrs).get("id") == "acs-data"

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.data += data


class ReportTest(unittest.TestCase):
    """Each test has a folder of its own."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def file(self, name, text):
        """A file in the folder."""
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        return path

    def trace(self, name, **more):
        """A trace of a recording."""
        return self.file(name + ".json", recordings.trace(dict(recordings.named(name), **more)))

    def run_tool(self, *words, tool=TOOL, status=0):
        """What the tool says."""
        done = subprocess.run([sys.executable, tool, *map(str, words)], capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        return done.stdout if status == 0 else done.stderr

    def data_of(self, path):
        """The recordings in a page, and the names of its elements."""
        parser = Elements()
        parser.feed(path.read_text(encoding="utf-8"))
        return json.loads(parser.data), parser.names

    # ---------------------------------------------------------------------------------------------------------- pages

    def test_page_has_the_recording_and_asks_for_nothing(self):
        said = self.run_tool(self.trace("war"))
        page = self.folder / "war.html"
        self.assertIn("300 ops of physics", said)
        data, names = self.data_of(page)
        self.assertEqual(data, json.loads(json.dumps(recordings.named("war"))))
        self.assertFalse({"iframe", "object", "embed"} & set(names))
        text = page.read_text(encoding="utf-8")
        for word in ("http:", "https:", "src=", "@import", "url(", "/*ACS_"):
            self.assertNotIn(word, text.replace("http://www.w3.org/2000/svg", ""))

    def test_markup_in_names_ends_no_element(self):
        self.run_tool(self.trace("hostile"), "-o", self.folder / "page.html")
        data, names = self.data_of(self.folder / "page.html")
        self.assertEqual(data["program"], recordings.named("hostile")["program"])
        self.assertEqual(names.count("script"), 2)
        self.assertNotIn("img", names)

    def test_page_of_two_has_both_in_order(self):
        self.run_tool(self.trace("war"), self.trace("host_wait"), "-o", self.folder / "both.html")
        data, _ = self.data_of(self.folder / "both.html")
        self.assertEqual([one["program"] for one in data], ["physics", "train"])

    def test_page_of_the_c_library_is_the_same(self):
        made = self.folder / "page_text.c"
        if not shutil.which("cmake"):
            self.skipTest("no cmake")
        subprocess.run(["cmake", "-D", "FOLDER=%s" % (ROOT / "src/report/page"), "-D", "OUTPUT=%s" % made, "-P",
            ROOT / "src/report/page/page.cmake"],
                       check=True)
        text, parts = made.read_text(encoding="utf-8"), []
        for name in ("acs_page_head", "acs_page_tail"):
            body = text.split("%s[] = {\n" % name)[1].split("\n    NULL};")[0]
            parts.append("".join(json.loads(line.strip().rstrip(",")) for line in body.split("\n") if line.strip()))
        self.assertEqual(tuple(parts), pages.halves())
        self.assertNotIn("??", text, "a trigraph")

    def test_installed_tool_finds_its_page(self):
        for part in ("acs_report", "acs_output"):
            shutil.copytree(ROOT / "tools" / part, self.folder / "share" / "acs" / part)
        shutil.copytree(ROOT / "src" / "report" / "page", self.folder / "share" / "acs" / "acs_report" / "page")
        (self.folder / "bin").mkdir()
        tool = shutil.copy(TOOL, self.folder / "bin")
        self.run_tool(self.trace("one"), tool=tool)
        shutil.rmtree(self.folder / "share" / "acs" / "acs_report" / "page")
        self.assertIn("template is missing", self.run_tool(self.trace("one"), tool=tool, status=1))

    def test_large_trace_is_read_without_its_events(self):
        text = recordings.trace(recordings.named("one"))
        events = ",".join('{"name":"\\"acs\\":{\\"format\\":1}","args":{"acs":1}}' for _ in range(200000))
        path = self.file("large.json", text.replace('"traceEvents":[]', '"traceEvents":[%s]' % events))
        self.run_tool(path)
        self.assertEqual(self.data_of(self.folder / "large.html")[0]["program"], "one")

    # ----------------------------------------------------------------------------------------------------------- text

    def test_text_has_headline_findings_pairs_and_kernels(self):
        said = self.run_tool("--text", self.trace("war"))
        self.assertIn("physics: 300 ops in 1.98 ms. As its footprints say, about 6.1 ops could run at once, on average; it ran"
                      " 5.6.", said)
        self.assertIn("The cost: At most, by the simulator", said)
        self.assertIn("1. find_contacts waits until solve_island has read contacts (WAR) (653 us, 33 % of the time)", said)
        self.assertIn("To do: Make the block ACS_RELOCATABLE", said)
        self.assertIn("find_contacts waits for solve_island by WAR", said)
        self.assertRegex(said, r"8\.64 ms +144 +90\.0 us +solve_island +physics\.cu:131")
        self.assertRegex(said, r"1\.32 ms +-33 % +renaming \(ACS_RENAME=4\)")

    def test_page_and_text_have_the_same_figures(self):
        """Also of a context that was open long before the first op. Node runs the page's own scripts."""
        if not shutil.which("node"):
            self.skipTest("no node")
        script = "globalThis.window = {};" + "".join((ROOT / "src/report/page" / name).read_text(encoding="utf-8")
            for name in ("model.js", "words.js")) + """;
            const {model, words} = window.acsReport, s = model.percent, run = model.parse(require('fs').readFileSync(0, 'utf8'))[0], sum = run.summary;
            console.log(JSON.stringify(run.findings.map(one => "(" + model.time(one.ns) + ", " + s(words.costOf(run, one)) +
                " of the time)").concat(run.ops.length + " ops in " + model.time(run.took), words.verdict(run, 0)[0],
                "Critical path: " + model.time(sum.critical_ns) + " (" + s(model.share(sum.critical_ns, sum.span_ns)) +
                " of the time). Nothing ran in " + s(model.share(sum.span_ns - sum.busy_ns, sum.span_ns)))));"""
        shown = self.file("figures.js", script)
        for name in ("war", "host_wait", "window", "streams", "fills", "allocation", "chain"):
            texts = []
            for acs in (recordings.named(name), recordings.late(recordings.named(name))):
                done = subprocess.run(["node", shown], input=json.dumps(acs), capture_output=True, text=True, timeout=60)
                self.assertEqual(done.returncode, 0, done.stderr)
                texts.append(self.run_tool("--text", self.file("it.json", recordings.trace(acs))))
                for figure in json.loads(done.stdout):
                    self.assertIn(figure.replace("\u00b5", "u"), " ".join(texts[-1].split()), name)
            self.assertEqual(*texts)

    def test_text_of_two_says_what_changed(self):
        said = self.run_tool("--text", self.trace("war"), self.trace("host_wait"))
        self.assertRegex(said, r"time +1\.98 ms +1\.65 ms +-17 %")
        self.assertIn("Gone finding: find_contacts waits until", said)
        self.assertIn("New pair: loss waits for forward by RAW", said)
        self.assertRegex(said, r"8\.64 ms +0 +gone +solve_island")

    def test_text_says_how_times_were_learnt(self):
        self.assertIn("learnt by polls", self.run_tool("--text", self.trace("war", times="polls")))
        self.assertIn("the GPU's own", self.run_tool("--text", self.trace("war", times="graphs")))
        self.assertNotIn("polls", self.run_tool("--text", self.trace("war", times="exact")))

    def test_text_of_odd_recordings(self):
        self.assertIn("no op was recorded", self.run_tool("--text", self.trace("empty")))
        self.assertIn("1 ops", self.run_tool("--text", self.trace("one")))
        self.assertNotIn("\u202e", self.run_tool("--text", self.trace("hostile")))

    # --------------------------------------------------------------------------------------------------------- errors

    def test_files_that_are_no_traces_are_refused_with_the_reason(self):
        good = recordings.trace(recordings.named("one"))
        for name, text, why in (
                ("empty", "", "it is empty"), ("binary", b"\x7fELF\0\0", "not JSON"), ("list", "[1, 2]", 'no "traceEvents"'),
                ("other", '{"traceEvents":[]}', 'no object "acs"'), ("cut in acs", good[:-40], "cut off"), ("cut in events",
                    '{"traceEvents":[{"a":1},', "cut off"),
                ("broken", good.replace('"kernels":[[', '"kernels":[[,', 1), "not valid JSON at character"), ("latin",
                    good.encode().replace(b"only", b"\xff\xfe"), "not UTF-8"),
                ("page", pages.made([json.dumps(recordings.named("one"))]), "it is a page already"),
                ("format", good.replace('"format":1', '"format":7'), "format 7; this acs-report reads format 1"),
                ("parts", good.replace('"findings":', '"found":'), "no findings")):
            with self.subTest(name):
                path = self.file(name, text)
                said = self.run_tool("--text", path, status=1)
                self.assertIn("%s is no trace that can be shown: " % path, said)
                self.assertIn(why, said)

    def test_a_recording_of_another_form_is_told(self):
        for changed in ({"pairs": 7}, {"kernels": [[1]]}, {"labels": 7}):
            said = self.run_tool("--text", self.trace("war", **changed), status=1)
            self.assertIn("is not as this version writes it", said)

    def test_outputs_that_cannot_be_written_are_told_in_one_line(self):
        one = self.trace("one")
        said = self.run_tool(one, "-o", self.folder, status=1)
        self.assertEqual(said, "acs-report: %s cannot be written: Is a directory\n" % self.folder)
        for words in (["--text", one], [one], ["--help"]):
            with self.subTest(words), open(os.devnull, "rb") as closed:
                buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
                done = subprocess.run([sys.executable, TOOL, *words], stdout=closed, stderr=subprocess.PIPE, text=True, check=False,
                    env=buffered)
                self.assertEqual((done.returncode, done.stderr), (1, "acs-report: the output cannot be written: Bad file descriptor\n"))
                read, write = os.pipe()
                os.close(read)
                done = subprocess.run([sys.executable, TOOL, *words], stdout=write, stderr=subprocess.PIPE, text=True, check=False,
                    env=buffered)
                os.close(write)
                self.assertEqual((done.returncode, done.stderr), (1, ""))
        done = subprocess.run("exec %s --text %s >&-" % (TOOL, one), shell=True, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_output_that_is_no_file_is_written_to_and_stays(self):
        pipe, link = self.folder / "pipe", self.folder / "link.html"
        os.mkfifo(pipe)
        with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True) as reader:
            try:
                self.run_tool(self.trace("one"), "-o", pipe)
                self.assertTrue(pipe.is_fifo())
                self.assertIn("acs-data", reader.communicate(timeout=60)[0])
            finally:
                reader.kill()
        link.symlink_to("page.html")
        self.run_tool(self.trace("one"), "-o", link)
        self.assertTrue(link.is_symlink())
        self.assertEqual(self.data_of(self.folder / "page.html")[0]["program"], "one")

    def test_wrong_use_is_told(self):
        one = self.trace("one")
        self.assertIn("give -o", self.run_tool(one, one, status=64))
        self.assertIn("two traces, not 3", self.run_tool(one, one, one, status=64))
        self.assertIn("write over a trace", self.run_tool(one, "-o", one, status=64))
        self.assertIn("-o needs the name", self.run_tool(one, "-o", "", status=64))
        self.assertIn("--text prints", self.run_tool("--text", one, "-o", "x.html", status=64))
        self.assertIn("No such file", self.run_tool(self.folder / "none.json", status=1))
        self.assertIn("No such file", self.run_tool(one, "-o", self.folder / "none" / "page.html", status=1))
        self.run_tool(status=64)
        self.assertEqual([name for name in os.listdir(self.folder) if name != "one.json"], [], "nothing is left behind")


if __name__ == "__main__":
    unittest.main(verbosity=1)
