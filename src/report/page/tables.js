// The tables of one recording, and the glossary.
(function (acs) {
    "use strict";
    const {C, nameOf, placeOf, time, count, percent, partOfGpu, reasonOf} = acs.model;
    const {CONFLICTS, OPTIONS, GLOSSARY, pathWords, waitWords} = acs.words;
    const {el, section, table, codeIn} = acs.draw;

    const PAIRS_SHOWN = 300, WAITS_SHOWN = 300;

    const right = (name, title) => ({name, title, right: true});
    const left = name => ({name});
    const nsCell = ns => ({text: time(ns), sort: ns});
    const knownNs = ns => ns === undefined ? {text: "", sort: -1} : {text: ns ? time(ns) : "0", sort: ns};
    const numberCell = value => ({text: count(value), sort: value});

    function pairsTable(run) {
        return table("Pairs of which one waited for the other. On the path: the pair's part of the time of the run. " +
            "To gain: the time that the run would save without this dependence, at most, by the simulator.",
        [left("Waits"), left("For"), left("By"), left("Bytes"), right("Times"), right("Waited, summed over ops"),
            right("On the path"), right("To gain, at most"), left("What to do")],
        run.pairs.map(pair => [nameOf(run, pair.down), nameOf(run, pair.up), conflictCell(run, pair),
            run.short(pair.range || ""), numberCell(pair.count), nsCell(pair.wait_ns), knownNs(pair.path_ns),
            knownNs(pair.gain_ns), {node: el("span", null, codeIn(run.short(pair.fix || ""))), sort: pair.fix || ""}]),
        PAIRS_SHOWN);
    }
    function conflictCell(run, pair) {
        const name = run.conflicts[pair.conflict] || "";
        return {text: name, sort: name, title: CONFLICTS[name] || null};
    }
    // Part of the GPU that an average launch of a kernel takes, by label.
    function fillsOf(run) {
        const found = new Map();
        for (const op of run.ops) {
            const part = partOfGpu(run, op), row = found.get(op[C.label]) || [0, 0];
            if (part > 0)
                found.set(op[C.label], [row[0] + part, row[1] + 1]);
        }
        return new Map([...found].map(([label, [sum, many]]) => [label, sum / many]));
    }
    function kernelsTable(run, highlight) {
        const fills = fillsOf(run);
        return table("Kernels and other ops, most time first. Total and waited are summed over all ops of the name.",
            [left("Name"), left("At"), right("Ops"), right("Total"), right("Mean"), right("Longest"), right("Waited"),
                right("Of the GPU, each")],
            run.kernels.map(row => [{node: el("button", {type: "button", class: "link",
                onclick: () => highlight(row[0])},
                nameOf(run, row[0])), sort: nameOf(run, row[0])}, placeOf(run, row[0]), numberCell(row[1]),
                    nsCell(row[2]),
            nsCell(row[2] / Math.max(1, row[1])), nsCell(row[3]), knownNs(row[4]),
            fills.has(row[0]) ? {text: percent(fills.get(row[0])), sort: fills.get(row[0])} : {text: "", sort: -1}]));
    }

    // What held ops longest: [{name, ops, ns}], most time first.
    function heldOf(run) {
        const found = new Map();
        for (const op of run.ops) {
            const name = reasonOf(run, op), row = found.get(name) || {name, ops: 0, ns: 0};
            row.ops++;
            row.ns += op[C.reasonNs];
            found.set(name, row);
        }
        return [...found.values()].filter(row => row.name !== "none" && row.ns > 0).sort((a, b) => b.ns - a.ns);
    }
    function heldTable(run, rows) {
        return table("What held each op longest. A wait that passes on from op to op counts for each of them, " +
            "so sums can be " +
            "longer than the run. They do not tell what is to be gained.",
        [left("Cause"), left("The op waited for"), right("Ops"), right("Waited, summed over these ops")],
        rows.map(row => [pathWords(row.name)[0], waitWords(row.name), numberCell(row.ops), nsCell(row.ns)]));
    }

    const WAITS = ["one op", "all ops", "room in the FIFO"];
    // Waits of callers with the same thread, kind, and newest op before them, longest first.
    function waitsOf(run) {
        const groups = new Map();
        for (const wait of run.waits) {
            const key = wait[0] + "/" + wait[1] + "/" + wait[5];
            const row = groups.get(key) || {thread: wait[0], type: wait[1], label: wait[5], many: 0, ns: 0, longest: 0};
            row.many++;
            row.ns += wait[3] - wait[2];
            row.longest = Math.max(row.longest, wait[3] - wait[2]);
            groups.set(key, row);
        }
        return [...groups.values()].sort((a, b) => b.ns - a.ns);
    }
    function waitsTable(rows, run) {
        return table("Waits of callers, most time first. Last launch: what the thread launched last before it waited.",
            [left("Thread"), left("Waits for"), left("Last launch"), left("At"), right("Times"), right("Total"),
                right("Longest")],
            rows.map(row => [row.thread, WAITS[row.type] || "", row.label >= 0 ? nameOf(run, row.label) : "",
                row.label >= 0 ? placeOf(run, row.label) : "", numberCell(row.many), nsCell(row.ns),
                    nsCell(row.longest)]),
            WAITS_SHOWN);
    }

    const METHOD_WORDS = {launch: "each op by a launch of its own", replay: "bundles as graphs that are kept",
        resident: "one kernel on the GPU runs the blocks of the ops", unknown: "not known"};
    // Ops by issue method: [{name, ops, bundled}], most ops first.
    function methodsOf(run) {
        const found = new Map();
        for (const op of run.ops) {
            const name = run.methods[op[C.method]] || "unknown";
            const row = found.get(name) || {name, ops: 0, bundled: 0};
            row.ops++;
            row.bundled += op[C.bundle] >= 0;
            found.set(name, row);
        }
        return [...found.values()].sort((a, b) => b.ops - a.ops);
    }
    function methodsTable(rows) {
        return table("Ops by issue method.", [left("Method"), left("Meaning"), right("Ops"),
            right("Of them in bundles")],
            rows.map(row => [row.name, METHOD_WORDS[row.name] || "", numberCell(row.ops), numberCell(row.bundled)]));
    }
    function optionsTable(run) {
        return table("Options of the run.", [left("Option"), left("Value"), left("Meaning")],
            Object.entries(run.options).map(([name, value]) => [{node: el("code", null, "ACS_" + name.toUpperCase()),
                sort: name}, typeof value === "number" ? numberCell(value) : String(value), OPTIONS[name] || ""]));
    }
    function tables(run, highlight) {
        const part = (id, title, many, make) => many ? el("details", {id},
            el("summary", null, title + " (" + count(many) + ")"), make()) : null;
        const held = heldOf(run), waits = waitsOf(run), methods = methodsOf(run);
        return section("tables", "Tables", null,
            part("t-pairs", "Pairs that serialise: one waits for the other", run.pairs.length, () => pairsTable(run)),
            part("t-kernels", "Kernels", run.kernels.length, () => kernelsTable(run, highlight)),
            part("t-held", "What held ops", held.length, () => heldTable(run, held)),
            part("t-waits", "Waits of callers", waits.length, () => waitsTable(waits, run)),
            part("t-methods", "Issue methods", methods.length > 1 || run.bundles.length ? methods.length : 0,
                () => methodsTable(methods)),
            part("t-options", "Options", Object.keys(run.options).length, () => optionsTable(run)));
    }

    // -------------------------------------------------------------------------------------------------------- glossary

    const idOf = word => "word-" + word.toLowerCase().replace(/[^a-z]+/g, "-");
    function glossary() {
        return el("details", {id: "glossary"}, el("summary", null, "Words of this page"),
            el("dl", {class: "glossary"}, GLOSSARY.map(([word, , means]) => el("div", {id: idOf(word)},
                el("dt", null, word), el("dd", null, codeIn(means))))));
    }
    // Makes the first use of each word of the glossary in a text below a node a link to what it means.
    function linkWords(node) {
        const left = new Set(GLOSSARY.filter(([, pattern]) => pattern));
        const texts = document.createTreeWalker(node, NodeFilter.SHOW_TEXT, {acceptNode: text =>
            text.parentElement.closest("h1, h2, h3, button, summary, code, table, svg, .kind, #glossary, a, " +
                ".bar-name, .legend")
                ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT});
        for (let text = texts.nextNode(); text && left.size; text = texts.nextNode())
            linkOne(text, left);
    }
    // The first of the words that a text has becomes a link; the rest of the text comes next in the walk.
    function linkOne(text, left) {
        const found = [...left].map(entry => ({entry, at: entry[1].exec(text.data)})).filter(one => one.at)
            .sort((a, b) => a.at.index - b.at.index)[0];
        if (!found)
            return;
        left.delete(found.entry);
        const used = text.splitText(found.at.index);
        used.splitText(found.at[0].length);
        const [word, , means] = found.entry, link = el("a", {class: "word", href: "#" + idOf(word), title: word +
            ": " + means,
            onclick: () => {
                document.getElementById("glossary").open = true;
            }});
        used.replaceWith(link);
        link.append(used);
    }

    acs.tables = {tables, fillsOf, methodsOf, glossary, linkWords, METHOD_WORDS};
})(window.acsReport = window.acsReport || {});
