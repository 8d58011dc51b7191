// Two recordings beside each other: numbers, findings and pairs that came and went, kernels by name. Shows one report
// below.
(function (acs) {
    "use strict";
    const {labelOf, nameOf, time, digits, width, count, share, percent} = acs.model;
    const {verdict} = acs.words;
    const {el, section, table, bars} = acs.draw;
    const KERNELS_SHOWN = 12;

    // Labels of different recordings are the same by name and file: lines move.
    const keyOf = (run, label) => JSON.stringify(labelOf(run, label).slice(0, 2));

    // Rows of both by key: [{key, a, b}], with what `add` makes of each.
    function matched(a, b, listOf, keyOfRow, add) {
        const found = new Map();
        [[a, "a"], [b, "b"]].forEach(([run, side]) => listOf(run).forEach(row => {
            const key = keyOfRow(run, row);
            const both = found.get(key) || {key, a: null, b: null};
            both[side] = add(both[side], run, row);
            found.set(key, both);
        }));
        return [...found.values()];
    }
    const kernelsOf = (a, b) => matched(a, b, run => run.kernels, (run, row) => keyOf(run, row[0]),
        (old, run, row) => ({name: nameOf(run, row[0]),
        ops: (old ? old.ops : 0) + row[1], ns: (old ? old.ns : 0) + row[2], waited: (old ? old.waited : 0) + row[4]}));
    const pairsOf = (a, b) => matched(a, b, run => run.pairs,
        (run, pair) => [keyOf(run, pair.up), keyOf(run, pair.down), run.conflicts[pair.conflict]].join(),
            (old, run, pair) => ({
            words: nameOf(run, pair.down) + " waits for " + nameOf(run, pair.up) + " by " +
                (run.conflicts[pair.conflict] ||
                "?"),
            range: run.short(pair.range || ""), ns: (old ? old.ns : 0) + pair.wait_ns,
                count: (old ? old.count : 0) + pair.count}));
    // Titles hold numbers that change; a finding is the same by kind and the title without them.
    const findingsOf = (a, b) => matched(a, b, run => run.findings,
        (run, finding) => finding.kind + ": " + String(finding.title).replace(/[0-9]+([.,][0-9]+)?/g, "#"),
            (old, run, finding) => ({title: run.short(finding.title),
            ns: (old ? old.ns : 0) + (finding.ns || 0)}));

    const nsOf = side => side ? side.ns : 0;
    function change(before, after) {
        if (!before || !after)
            return before === after ? "the same" : before ? "gone" : "new";
        const by = after / before - 1;
        return Math.abs(by) < 0.005 ? "the same" : by > 1 ? digits(after / before) + " times"
            : percent(Math.abs(by)) + (by < 0 ? " less" : " more");
    }
    const good = (before, after, more) => Math.abs(after - before) < 0.005 * Math.abs(before) ? ""
        : (after > before) === Boolean(more) ? "better" : "worse";

    // [name, before, after, words of a value, true where more is better, or null where neither is].
    function numbersOf(a, b) {
        const x = a.summary, y = b.summary, idle = s => Math.max(0, s.span_ns - s.busy_ns);
        return [["Time", x.span_ns, y.span_ns, time, false], ["Ops", x.ops, y.ops, count, null],
            ["Ops at once, by footprints", x.width_possible, y.width_possible, width, true],
            ["Ops at once, as it ran", x.width_achieved, y.width_achieved, width, true],
            ["Critical path", x.critical_ns, y.critical_ns, time, false],
            ["Nothing ran", idle(x), idle(y), time, false], ["Time of all ops, summed", x.work_ns, y.work_ns, time,
                false],
            ["Callers waited, summed", x.host_wait_ns, y.host_wait_ns, time, false]];
    }
    function numbers(a, b) {
        return el("table", {class: "numbers"}, el("caption", null, "Both runs"),
            el("thead", null, el("tr", null, ["", "A", "B", "Change"].map(name => el("th", {scope: "col"}, name)))),
            el("tbody", null, numbersOf(a, b).map(([name, before, after, words, more]) => el("tr", null,
                el("th", {scope: "row"}, name),
                el("td", null, words(before)), el("td", null, words(after)),
                el("td", {class: more === null ? "" : good(before, after, more)}, change(before, after))))));
    }
    function list(title, rows, words) {
        return el("div", {class: "came"}, el("h3", null, title),
            rows.length ? el("ul", null, rows.map(row => el("li", null, words(row))))
            : el("p", {class: "note"}, "none"));
    }
    function cameAndWent(rows, words) {
        const byCost = side => (p, q) => nsOf(q[side]) - nsOf(p[side]);
        return el("div", {class: "columns three"},
            list("Gone in B", rows.filter(row => row.a && !row.b).sort(byCost("a")), row => words(row.a, null)),
            list("New in B", rows.filter(row => row.b && !row.a).sort(byCost("b")), row => words(row.b, null)),
            list("In both", rows.filter(row => row.a && row.b).sort(byCost("a")), row => words(row.b, row.a)));
    }
    const findingWords = (now, before) => [now.title + " ", el("span", {class: "note"}, before ? time(before.ns) +
        ", then " + time(now.ns) : time(now.ns))];
    const pairWords = (now, before) => [now.words + " ", el("span", {class: "note"}, (now.range ? now.range + "; "
        : "") +
        (before ? time(before.ns) + ", then " + time(now.ns) : time(now.ns)))];

    function kernels(a, b) {
        const rows = kernelsOf(a, b).sort((p, q) => Math.abs(nsOf(q.b) - nsOf(q.a)) - Math.abs(nsOf(p.b) - nsOf(p.a)));
        const most = Math.max(...rows.map(row => Math.max(nsOf(row.a), nsOf(row.b))), 1);
        const pictured = rows.slice(0, KERNELS_SHOWN).map(row => el("div", {class: "twin"},
            el("div", null, (row.a || row.b).name), bars([
            {name: "A", value: nsOf(row.a), colour: "var(--base)", words: row.a ? time(row.a.ns) : "not there"},
            {name: "B", value: nsOf(row.b), colour: "var(--accent)", words: [row.b ? time(row.b.ns) + ", " : "",
                el("span", {class: good(nsOf(row.a), nsOf(row.b), false)}, change(nsOf(row.a), nsOf(row.b)))]}],
                    {most})));
        const right = name => ({name, right: true});
        const cell = side => side ? {text: time(side.ns), sort: side.ns} : {text: "", sort: 0};
        return [el("div", {class: "twins"}, pictured), el("details", null,
            el("summary", null, "All kernels (" + rows.length + ")"), table("Kernels by name and file.",
            [{name: "Name"}, right("Ops in A"), right("Ops in B"), right("Time in A"), right("Time in B"),
                right("Change")],
            rows.map(row => [(row.a || row.b).name, row.a ? row.a.ops : 0, row.b ? row.b.ops : 0, cell(row.a),
                cell(row.b),
                {text: change(nsOf(row.a), nsOf(row.b)), sort: nsOf(row.b) - nsOf(row.a)}])))];
    }
    function says(a, b) {
        const before = a.summary.span_ns, after = b.summary.span_ns;
        if (!before || !after)
            return "The time of one run is not known.";
        const by = after / before;
        const words = Math.abs(by - 1) < 0.005 ? "Both runs take the same time." : by < 1
            ? "B takes " + percent(1 - by) + " less time than A."
            : "B takes " + percent(by - 1) + " more time than A.";
        return words + " On average A ran " + width(a.summary.width_achieved) + " ops at once, B " +
            width(b.summary.width_achieved) + ".";
    }
    function bothTimes(a, b) {
        return bars([["A", a, "var(--base)"], ["B", b, "var(--accent)"]].map(([name, run, colour]) => ({name,
            note: run.program, value: run.summary.span_ns, colour,
            words: [el("b", null, time(run.summary.span_ns)), " nothing ran in " +
                percent(share(run.summary.span_ns - run.summary.busy_ns, run.summary.span_ns))]})));
    }

    // The page of two recordings: {node, timeline()} of the one whose report is shown.
    function compare(a, b) {
        const {report} = acs.sections;
        const holder = el("div"), state = {};
        const buttons = [[a, "A"], [b, "B"]].map(([run, name]) => el("button",
            {type: "button", class: "tool", "aria-pressed": "false",
            onclick: () => showRun(run, name)}, "Run " + name));
        function showRun(run, name) {
            buttons.forEach(button => button.setAttribute("aria-pressed", String(button.textContent === "Run " +
                name)));
            state.shown = report(run, true);
            const [could, rest] = verdict(run, state.shown.gpuMost);
            holder.replaceChildren(el("p", {class: "verdict"}, "Run " + name + ": " + could + " " + rest),
                state.shown.node);
        }
        showRun(b, "B");
        const name = a.program === b.program ? a.program : a.program + " and " + b.program;
        return {timeline: () => state.shown.timeline, node: el("div", {class: "compare"},
            el("header", null, el("p", {class: "crumb"}, "ACS report: two runs"), el("h1", null, name),
                el("p", {class: "verdict"}, el("strong", null, says(a, b))), bothTimes(a, b)),
            section("numbers", "Numbers", null, numbers(a, b)),
            section("findings-both", "Findings", null, cameAndWent(findingsOf(a, b), findingWords)),
            section("kernels-both", "Kernels", "Those whose time changed most come first.", kernels(a, b)),
            section("pairs-both", "Pairs that serialise", null, cameAndWent(pairsOf(a, b), pairWords)),
            section("run", "One run", "Choose the run that the rest of this page shows.",
                el("div", {class: "tools"}, buttons)), holder)};
    }

    acs.compare = {compare, kernelsOf, pairsOf, findingsOf, change};
})(window.acsReport = window.acsReport || {});
