"""The page of a recording in a real browser: what it shows, and what it does when it is used. Exit status 77: no browser."""
import json
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(pathlib.Path(__file__).parent)]
sys.dont_write_bytecode = True

from acs_report import page as pages  # noqa: E402
import browser  # noqa: E402
import recordings  # noqa: E402

CANVAS = "document.querySelector('canvas.rows')"
STATE = "acsReport.shown.timeline().state"
VIEW = "acsReport.shown.timeline().view"
# Names of the first finding's kind, and words of the fix that its card must have.
PLANTED = {"false_dependence": ("false dependence", "Name the tile"), "war": ("war", "ACS_RELOCATABLE"),
    "host_wait": ("host wait", "acs_wait"),
           "window": ("window", "ACS_WINDOW=512"), "streams": ("streams", "ACS_STREAMS=32"), "fills": ("fills",
               "second GPU"),
           "allocation": ("allocation", "before the loop"), "chain": ("chain", "shorter")}


class PageTest(unittest.TestCase):
    """One browser for all tests; each test opens pages of its own."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.browser = browser.Browser(browser.find())

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        shutil.rmtree(cls.folder)

    def open(self, *runs, **how):
        """Show recordings (by name, or made), and wait until they are drawn."""
        made = [recordings.named(run) if isinstance(run, str) else run for run in runs]
        path = self.folder / "page.html"
        path.write_text(pages.made([json.dumps(run) for run in made]), encoding="utf-8")
        page = self.browser.page(path.as_uri(), **how).ready()
        self.addCleanup(page.close)
        self.assertIsNone(page.run("document.documentElement.dataset.error"))
        return page

    def shown(self, page, selector):
        """Texts of elements."""
        return page.run("[...document.querySelectorAll(%s)].map(one => one.textContent)" % json.dumps(selector))

    def quiet(self, page):
        """Nothing went wrong, and nothing was asked of the network."""
        self.assertEqual(page.wrong, [])
        self.assertEqual(page.asked, [])

    def place_of(self, page, op):
        """Where an op is in the window: the middle of its picture."""
        return page.run("""(() => {
            const canvas = %s, box = canvas.getBoundingClientRect(), state = %s, op = state.run.ops[%d], row = state.rowOf.get(%d);
            const x = state.view.x((op[8] + op[9]) / 2, Math.floor(box.width - 118 - 14));
            return [box.left + 118 + x, box.top + row.y + row.height / 2];
        })()""" % (CANVAS, STATE, op, op))

    # ------------------------------------------------------------------------------------------------ what it shows

    def test_each_planted_slowness_is_the_first_card_with_its_fix(self):
        for name, (kind, fix) in PLANTED.items():
            with self.subTest(name):
                page = self.open(name)
                self.assertEqual(page.run("document.querySelector('.card').dataset.kind"), kind)
                self.assertIn(fix, self.shown(page, ".card:first-child .fix")[0])
                self.assertIn(self.shown(page, ".card h3")[0], self.shown(page, ".verdict")[0])
                self.quiet(page)

    def test_numbers_of_the_headline_are_those_of_the_recording(self):
        acs = recordings.named("war")
        page = self.open(acs)
        tiles = dict(zip(self.shown(page, ".tile dt"), self.shown(page, ".tile dd")))
        self.assertIn("300", tiles["Ops"])
        self.assertIn("1.98 ms", tiles["Time"])
        self.assertIn("%.1f" % acs["summary"]["width_possible"], tiles["Ops at once, on average"])
        self.assertIn("%.1f" % acs["summary"]["width_achieved"], tiles["Ops at once, on average"])
        self.assertIn("1.81 ms", tiles["Critical path"])
        verdict = self.shown(page, ".verdict")[0]
        self.assertIn("As its footprints say, about 6.1 ops could run at once, on average; it ran 5.6.", verdict)
        self.assertIn("In the simulator, ACS_RENAME=4 takes 33 % less time. Renaming needs", verdict)
        self.assertNotIn("nearly all", verdict)

    def test_time_before_the_first_op_is_no_part_of_the_run(self):
        for name in ("war", "allocation", "host_wait"):
            shown = []
            for acs in (recordings.named(name), recordings.late(recordings.named(name))):
                page = self.open(acs)
                shown.append([self.shown(page, one) for one in (".cost", ".tile", ".verdict", "#where .path", "#what-if")])
            self.assertEqual(*shown)
            self.assertEqual(page.run("%s.from" % VIEW), 50000000, "the picture begins with the run")
            self.quiet(page)

    def test_page_has_all_sections_with_names(self):
        page = self.open("allocation")
        self.assertEqual(self.shown(page, "h2"), ["What costs the most", "What ran when", "Where the time went",
                                                  "What other settings would bring", "Memory over time", "Tables"])
        self.assertEqual(page.run("document.querySelectorAll('section:not([aria-labelledby])').length"), 0)
        self.assertEqual(page.run("document.querySelectorAll('canvas:not([aria-label])').length"), 0)
        self.assertIn("40 allocations", self.shown(page, "#memory .intro")[0])
        self.assertIn("The caller was late", self.shown(page, "#where .path dt"))
        self.assertEqual(self.shown(page, "#what-if .bar-name")[1], "without the allocations")

    def test_timeline_has_rows_for_callers_and_streams_and_draws_them(self):
        page = self.open("streams")
        names = page.run("%s.rows.map(row => row.head || row.name)" % STATE)
        self.assertEqual(names, ["What the end of the run waited for", "the path", "Callers", "thread 0", "GPU 0", "stream 0",
            "stream 1", "stream 2"])
        colours = page.run("""(() => {
            const canvas = %s, data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data, found = new Set();
            for (let at = 0; at < data.length; at += 4) found.add(data[at] << 16 | data[at + 1] << 8 | data[at + 2]);
            return found.has(0x2563a8) && found.has(0x2f8f4e);
        })()""" % CANVAS)
        self.assertTrue(colours, "the colours of both kernels are on the canvas")

    def test_path_and_tables_tell_kinds_of_dependence_apart(self):
        page = self.open("war")
        self.assertLessEqual({"Needed results", "Overwritten bytes"}, set(self.shown(page, "#where .path dt")))
        held = self.shown(page, "#t-held tbody td:first-child")
        self.assertLessEqual({"Needed results", "Overwritten bytes"}, set(held))
        colours = page.run("[...document.querySelectorAll('#where .path .key')].map(key => getComputedStyle(key).backgroundColor)")
        self.assertEqual(len(colours), len(set(colours)))
        self.assertNotIn("rgba(0, 0, 0, 0)", colours)
        self.assertIn("At most, by the simulator".lower(), self.shown(page, ".card .how")[0])

    def test_simulator_far_from_the_recording_is_told(self):
        acs = recordings.named("streams")
        for row in acs["what_if"]:
            row["ns"] *= 1.3
        page = self.open(acs)
        self.assertIn("less time than the simulator's run as it is, which takes 30 % more time than the recording.",
            self.shown(page, ".verdict")[0])
        self.assertIn("fits this run badly", self.shown(page, "#what-if .intro")[0])
        acs["findings"][0]["fix"] = "Make ops longer."
        self.assertNotIn("ACS_STREAMS", self.shown(self.open(acs), ".verdict")[0])

    def test_curves_are_exact_in_the_shown_span(self):
        acs = recordings.named("war")
        page = self.open(acs)
        at = acs["ops"][150][8] + 1
        for name, begin, end in (("running", 8, 9), ("ready", 6, 8), ("window", 5, 9)):
            there = sum(op[begin] <= at < op[end] for op in acs["ops"])
            self.assertEqual(page.run("(() => { const one = acsReport.shown.timeline().curves.%s;"
                " return one.values[acsReport.curves.above(one.t, %d) - 1]; })()" % (name, at)), there, name)

    def test_streams_with_few_ops_share_rows(self):
        acs = recordings.named("war")
        for place, op in enumerate(acs["ops"]):
            op[11] = place % 7 if place % 20 else 7 + place // 20
        page = self.open(acs)
        names = page.run("%s.rows.filter(row => row.ops).map(row => row.name)" % STATE)
        self.assertIn("15 other streams", names)
        self.assertEqual(page.run("%s.rows.reduce((sum, row) => sum + (row.ops || []).length, 0)" % STATE), 300)

    def test_words_are_explained_where_they_come_first(self):
        page = self.open("war")
        self.assertEqual(page.run("document.getElementById('glossary').open"), False)
        words = self.shown(page, "a.word")
        self.assertIn("WAR", words)
        self.assertEqual(len(words), len({word.lower() for word in words}))
        page.run("[...document.querySelectorAll('a.word')].find(one => one.textContent === 'WAR').click()")
        self.assertTrue(page.run("document.getElementById('glossary').open"))
        self.assertIn("overwrites bytes", self.shown(page, "#word-war dd")[0])

    def test_bundles_are_framed_and_counted(self):
        page = self.open("bundles")
        self.assertEqual(page.run("%s.bundles.length" % STATE), 11)
        self.assertIn("11 bundles had 252 ops", self.shown(page, "#issue")[0])

    def test_tables_list_pairs_with_fixes_and_sort(self):
        page = self.open("war")
        page.run("document.querySelectorAll('#tables details').forEach(one => one.open = true)")
        row = next(row for row in self.shown(page, "#t-pairs tbody tr") if "WAR" in row)
        self.assertTrue(row.startswith("find_contactssolve_islandWARbytes 0 to 64 KiB"), row)
        self.assertIn("ACS_RENAME", row)
        first = "document.querySelector('#t-kernels tbody td').textContent"
        self.assertEqual(page.run(first), "solve_island")
        page.run("document.querySelector('#t-kernels th button').click()")
        self.assertEqual(page.run(first), "find_contacts")
        self.assertEqual(page.run("document.querySelector('#t-kernels th').getAttribute('aria-sort')"), "ascending")

    # ------------------------------------------------------------------------------------------------- what it does

    def test_finding_zooms_the_timeline_to_its_ops(self):
        page = self.open("war")
        page.run("document.querySelector('.card button').click()")
        page.frame()
        self.assertLess(page.run("%s.to - %s.from" % (VIEW, VIEW)), 0.5 * 1980000)
        self.assertIn("find_contacts #26", self.shown(page, ".panel h3")[0])
        self.assertIn("WAR on bytes 0 to 64 KiB of the block of physics.cu:33", self.shown(page, ".panel .phase-list")[0])
        self.assertLess(abs(page.run("document.getElementById('timeline').getBoundingClientRect().top")), 30)
        page.run("[...document.querySelectorAll('.tool')].find(one => one.textContent === 'Whole run').click()")
        self.assertEqual(page.run("%s.from" % VIEW), 0)

    def test_click_shows_an_op_and_the_chain_it_waited_for(self):
        page = self.open("war")
        page.run("document.getElementById('timeline').scrollIntoView()")
        page.frame()
        page.mouse("mouseMoved", *self.place_of(page, 25))
        self.assertIn("find_contacts #26", self.shown(page, ".tip")[0])
        page.click(*self.place_of(page, 25))
        self.assertEqual(page.run("%s.selected" % STATE), 25)
        self.assertIn("waited for solve_island #13", self.shown(page, ".panel")[0])
        self.assertEqual(page.run("document.querySelectorAll('.chain li').length"), 2)
        page.run("document.querySelector('.chain button').click()")
        self.assertIn("solve_island #13", self.shown(page, ".panel h3")[0])

    def test_wheel_drag_and_keys_move_the_view(self):
        page = self.open("war")
        op = page.run("%s.rows.find(row => row.ops).ops[20]" % STATE)
        length = page.run("%s.to - %s.from" % (VIEW, VIEW))

        def place():
            page.run("document.getElementById('timeline').scrollIntoView()")
            page.frame()
            return self.place_of(page, op)

        x, y = place()
        page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-100)
        page.frame()
        self.assertEqual(page.run("%s.to - %s.from" % (VIEW, VIEW)), length,
            "the wheel scrolls the page until the timeline is clicked")
        x, y = place()
        page.click(x, y)
        for _ in range(4):
            page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-100)
        page.wait("%s.to - %s.from < %f" % (VIEW, VIEW, 0.6 * length))
        before = page.run("%s.from" % VIEW)
        x, y = place()
        page.mouse("mousePressed", x, y, button="left", clickCount=1)
        page.mouse("mouseMoved", x - 200, y, button="left", buttons=1)
        page.mouse("mouseReleased", x - 200, y, button="left", clickCount=1)
        self.assertGreater(page.run("%s.from" % VIEW), before)
        self.assertEqual(page.run("%s.selected" % STATE), op, "a drag selects nothing")
        page.key("0")
        self.assertEqual(page.run("%s.to - %s.from" % (VIEW, VIEW)), length)
        page.key("+")
        self.assertLess(page.run("%s.to - %s.from" % (VIEW, VIEW)), 0.51 * length)
        page.key("n")
        self.assertEqual(page.run("%s.selected" % STATE), op + 1)
        upstream = page.run("%s.run.ops[%d][19]" % (STATE, op + 1))
        page.key("c")
        self.assertEqual(page.run("%s.selected" % STATE), upstream)
        page.key("Escape")
        self.assertEqual(page.run("%s.selected" % STATE), -1)

    def test_kernels_and_the_critical_path_are_highlighted(self):
        page = self.open("war")
        page.run("document.querySelector('.legend button').click()")
        self.assertEqual(page.run("[%s.label, document.querySelector('.legend button').getAttribute('aria-pressed')]" % STATE), [1, "true"])
        page.run("document.querySelector('.legend button').click()")
        self.assertEqual(page.run("%s.label" % STATE), -1)
        page.run("document.querySelector('.critical').click()")
        self.assertTrue(page.run("%s.critical" % STATE))
        page.frame()
        self.quiet(page)

    # --------------------------------------------------------------------------------------------------- odd shapes

    def test_empty_recording_and_one_op_are_shown(self):
        self.assertIn("No op was recorded", self.shown(self.open("empty"), ".verdict")[0])
        page = self.open("one")
        self.assertIn("about 1.0 ops could run at once", self.shown(page, ".verdict")[0])
        self.assertIn("no simulated runs", self.shown(page, "#what-if")[0])
        self.quiet(page)

    def test_unknown_times_are_no_error(self):
        page = self.open(recordings.without_times(recordings.named("war")))
        page.run("document.querySelector('.card button').click()")
        page.key("n")
        page.frame()
        self.quiet(page)

    def test_names_are_text_and_never_markup(self):
        page = self.open("hostile")
        page.run("document.querySelector('.card button').click()")
        page.frame()
        self.assertTrue(page.run("document.title").startswith("ACS report: </script>"))
        self.assertEqual(page.run("document.querySelectorAll('main img, main i, main u, main .card h3 b, main script').length"), 0)
        self.assertEqual(self.shown(page, ".card h3"), ["<b>bold</b> title"])
        self.quiet(page)

    def test_fifty_thousand_ops_are_drawn_at_once(self):
        page = self.open("many")
        self.assertEqual(self.shown(page, ".tile dd")[0][:6], "50,000")
        draw = page.run("new Promise(done => { const t = acsReport.shown.timeline(); const began = performance.now(); t.view.zoom(0.9, 1e7);"
                        " requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - began))); })")
        print("50,000 ops: shown after %s ms, drawn again in %d ms" % (page.run("document.documentElement.dataset.ready"),
            draw))
        self.quiet(page)

    def test_page_without_a_recording_says_so(self):
        path = self.folder / "none.html"
        for text, words in (("/*ACS_DATA*/", "no recording"), ("{\"format\":99}", "format 99"), ("{", "JSON")):
            path.write_text(pages.made([text]), encoding="utf-8")
            page = self.browser.page(path.as_uri()).ready()
            self.assertIn(words, page.run("document.documentElement.dataset.error"))
            self.assertIn(words, self.shown(page, ".warn")[0])
            page.close()

    def test_dark_theme_and_narrow_windows_fit(self):
        page = self.open("war", width=420, height=800, dark=True)
        self.assertEqual(page.run("getComputedStyle(document.body).backgroundColor"), "rgb(20, 23, 28)")
        self.assertLessEqual(page.run("document.documentElement.scrollWidth"), 420)

    # ------------------------------------------------------------------------------------------------------ two runs

    def test_two_runs_are_compared(self):
        page = self.open("war", "host_wait")
        self.assertIn("B takes 17 % less time than A", self.shown(page, "header .verdict")[0])
        rows = {row.split("\t")[0]: row.split("\t")[1:] for row in page.run(
            "[...document.querySelectorAll('.numbers tbody tr')].map(row => [...row.children].map(cell => cell.textContent).join('\\t'))")}
        self.assertEqual(rows["Time"], ["1.98 ms", "1.65 ms", "17 % less"])
        gone, new, both = page.run("[...document.querySelectorAll('#findings-both .came')].map(one => one.textContent)")
        self.assertIn("find_contacts waits until", gone)
        self.assertIn("The caller waits behind loss", new)
        self.assertIn("none", both)
        self.assertIn("find_contacts waits for solve_island by WAR", self.shown(page, "#pairs-both .came")[0])
        self.assertEqual(self.shown(page, "#kernels-both .twin > div:first-child")[0], "solve_island")
        self.assertEqual(page.run("%s.run.program" % STATE), "train")
        page.run("document.querySelector('#run button').click()")
        page.frame()
        self.assertEqual(page.run("%s.run.program" % STATE), "physics")
        self.quiet(page)


if __name__ == "__main__":
    if not browser.find():
        print("no browser: install chromium-headless-shell, chromium or Chrome, or name one by ACS_TEST_BROWSER")
        sys.exit(77)
    os.environ.setdefault("HOME", tempfile.gettempdir())
    unittest.main(verbosity=1)
