// The sections of one recording: headline, findings, timeline, where time went, what if, memory, tables.
(function (acs) {
    "use strict";
    const {C, nameOf, placeOf, time, width, count, share, percent, bytes, plural, partOfGpu, reasonWords,
        verdict} = acs.model;
    const {el, svg, bars, stacked, table, kernelColours} = acs.draw;

    const FINDINGS_SHOWN = 6, FULL = 0.95, KERNELS_SHOWN = 12, PAIRS_SHOWN = 300, WAITS_SHOWN = 300;

    function section(id, title, intro, ...children) {
        return el("section", {id, "aria-labelledby": id + "-title"}, el("h2", {id: id + "-title"}, title),
            intro ? el("p", {class: "intro"}, intro) : null, ...children);
    }
    const none = words => el("p", {class: "note"}, words);

    // -------------------------------------------------------------------------------------------------------- headline

    function headline(run) {
        const s = run.summary, [could, rest] = verdict(run);
        const idle = share(s.span_ns - s.busy_ns, s.span_ns);
        const tile = (name, value, note, title) => el("div", {class: "tile", title}, el("dt", null, name),
            el("dd", null, value, note ? el("span", {class: "note"}, note) : null));
        return el("header", null,
            el("p", {class: "crumb"}, "ACS report"),
            el("h1", null, run.program),
            el("p", {class: "note"}, subtitle(run)),
            el("p", {class: "verdict"}, el("strong", null, could), " ", rest),
            run.ops.length ? el("dl", {class: "tiles"},
                tile("Ops", count(s.ops), plural(s.kernels, "kernel"), "Ops in this recording"),
                tile("Time", time(s.span_ns || run.span), "first op to last end",
                    "From the entry of the first op to the end of the last"),
                el("div", {class: "tile wide",
                    title: "Ops at once: the work divided by the critical path, and by the time in which ops ran"},
                    el("dt", null, "Ops at once"), el("dd", null, widthBars(s))),
                tile("Critical path", time(s.critical_ns), percent(share(s.critical_ns, s.span_ns)) + " of the time, " +
                    plural(s.levels, "op"),
                    "The longest chain of ops that need each other. No setting makes the run shorter than this"),
                tile("Nothing ran", s.busy_ns > 0 ? percent(idle) : "not known",
                    s.busy_ns > 0 ? time(s.span_ns - s.busy_ns) + " of the time" : "",
                    "Time in which no op ran")) : null,
            partly(run));
    }
    function subtitle(run) {
        const where = {cuda: "on a GPU", host: "on CPU threads",
            sim: "on the simulated GPU"}[run.backend] || run.backend || "";
        const many = run.devices.length > 1 ? "on " + run.devices.length + " GPUs" : where;
        const size = run.backend !== "host" && run.devices[0] && run.devices[0].sms
            ? ", " + run.devices[0].sms + " multiprocessors each".replace(run.devices.length > 1 ? "" : " each", "") : "";
        return "Recorded " + many + size + (run.virtual_time ? ", in simulated time" : "") + ".";
    }
    function partly(run) {
        const seen = Number(run.ops_seen) || 0;
        if (run.sampled > 0 && run.sampled < 100)
            return el("p", {class: "warn"}, "The recording has " + run.sampled +
                " % of the ops. Numbers are those of this part.");
        return run.ops.length < 0.99 * seen && run.ops.length
            ? el("p", {class: "warn"}, "The recording has the newest " + count(run.ops.length) + " of " + count(seen) +
                " ops.") : null;
    }
    function widthBars(s) {
        const most = Math.max(s.width_possible, s.width_achieved, 1e-9);
        const bar = (name, value, colour) => el("span", {class: "width-row"}, el("span", {class: "width-name"}, name),
            el("span", {class: "width-track"}, el("span", {class: "width-bar", style: "width:" + 100 * value / most +
                "%;background:" + colour})),
            el("b", null, value > 0 ? width(value) : "?"));
        return [bar("possible", s.width_possible, "var(--aim)"), bar("achieved", s.width_achieved, "var(--running)")];
    }

    // -------------------------------------------------------------------------------------------------------- findings

    const KIND_WORDS = {war: "buffer used again", "false dependence": "footprint too large",
        "host wait": "the caller waits", window: "window too small",
        streams: "too few streams", fills: "a kernel fills the GPU", allocation: "allocation", chain: "a chain",
            issue: "issue takes long"};

    function findings(run, show) {
        if (!run.findings.length)
            return section("findings", "What costs the most", null, none(run.ops.length
                ? "No slowness stands out. The program uses what it has, or its ops need each other."
                    : "There is nothing to look at."));
        const cards = run.findings.map((finding, place) => card(run, finding, place, show));
        const rest = cards.slice(FINDINGS_SHOWN);
        return section("findings", "What costs the most",
            "Most costly first. The bar is the cost beside the time of the run; costs can overlap.",
            el("ol", {class: "cards"}, cards.slice(0, FINDINGS_SHOWN)),
            rest.length ? el("details", null, el("summary", null, plural(rest.length, "smaller finding")),
                el("ol", {class: "cards", start: FINDINGS_SHOWN + 1}, rest)) : null);
    }
    function card(run, finding, place, show) {
        const part = share(finding.ns, run.span), places = (finding.ops || []).filter(at => run.ops[at]);
        return el("li", {class: "card", "data-kind": finding.kind},
            el("div", {class: "card-head"}, el("span", {class: "rank"}, String(place + 1)),
                el("h3", null, run.short(finding.title)),
                el("span", {class: "kind"}, KIND_WORDS[finding.kind] || String(finding.kind || ""))),
            el("div", {class: "cost", title: "Cost, beside the time of the run"},
                el("div", {class: "bar-track"}, el("div", {class: "bar", style: "width:" + Math.min(100, 100 * part) +
                    "%;background:var(--cost)"})),
                el("span", null, el("b", null, time(finding.ns || 0)), part > 1 ? ", summed over ops" : ", " +
                    percent(part) + " of the time")),
            finding.text ? el("p", null, run.short(finding.text)) : null,
            finding.fix ? el("p", {class: "fix"}, el("b", null, "What to do: "), codeIn(run.short(finding.fix))) : null,
            places.length ? el("button", {type: "button", class: "tool", onclick: () => show(places)},
                "Show in the timeline") : null);
    }
    // Words in capitals with a low line, calls and settings look like code.
    function codeIn(text) {
        return text.split(/(\b(?:ACS|acs)_\w+(?:=-?\w+)?(?:\([^()]*\))?)/).map((part, at) => at % 2 ? el("code", null, part)
            : part);
    }

    // ----------------------------------------------------------------------------------------------- where the time went

    // The whole time by what the end waited for: the parts of the path are the time.
    function pathBar(run) {
        const total = run.path_ns.reduce((sum, ns) => sum + ns, 0);
        const parts = run.path_reasons.map((name, at) => ({name: acs.model.pathWords(name)[0],
            title: acs.model.pathWords(name)[1], value: run.path_ns[at] || 0,
            colour: "var(--" + acs.model.pathColour(name) + ")",
                words: percent(share(run.path_ns[at] || 0, total)) + ", " + time(run.path_ns[at] || 0)}))
            .filter(part => part.value > 0);
        return parts.length ? el("div", {class: "path"},
            el("p", null, "The whole time, walked back from the op that ended last: at each moment one thing kept the program from being done."),
            stacked(parts, "Time by what the end waited for")) : null;
    }
    function reasons(run) {
        const sums = run.summary.reasons_ns, total = sums.reduce((sum, ns) => sum + ns, 0);
        const parts = run.reasons.map((name, at) => ({name: reasonWords(name)[0], title: reasonWords(name)[1],
            value: at ? sums[at] || 0 : 0,
            colour: "var(--r-" + name + ")", words: percent(share(sums[at] || 0, total))})).filter(part => part.value > 0);
        if (!parts.length)
            return none("No op waited.");
        return el("div", null,
            el("p", null, "On average an op waited " + time(total / run.summary.ops) + " and ran " +
                time(run.summary.work_ns / run.summary.ops) +
                ". The bar parts the waiting by what held each op longest."),
            stacked(parts, "Waiting of ops by reason"),
            run.summary.host_wait_ns > 0 ? el("p", null, "Callers waited " + time(run.summary.host_wait_ns) + " in " +
                plural(run.waits.length, "wait") + ".")
                : null);
    }
    function byKernel(run, highlight) {
        const colours = kernelColours(run), fills = fillsOf(run);
        const noteOf = label => [placeOf(run, label), fills.get(label) >= FULL ? "each fills the GPU"
            : ""].filter(Boolean).join(", ");
        const rows = run.kernels.slice(0, KERNELS_SHOWN).map(row => ({
            name: el("button", {type: "button", class: "link", title: placeOf(run, row[0]),
                onclick: () => highlight(row[0])}, nameOf(run, row[0])),
            note: noteOf(row[0]), value: row[2], colour: colours.css(row[0]),
            words: [el("b", null, time(row[2])), " " + percent(share(row[2], run.summary.work_ns)) + ", " +
                plural(row[1], "op")]}));
        return rows.length ? [bars(rows), run.kernels.length > KERNELS_SHOWN
            ? none("The table of kernels has all " + run.kernels.length + ".") : null]
            : none("No kernel ran.");
    }
    function where(run, highlight) {
        return section("where", "Where the time went", null, pathBar(run),
            el("div", {class: "columns"},
                el("div", null, el("h3", null, "Why ops waited"), reasons(run)),
                el("div", null, el("h3", null, "Time by kernel"), byKernel(run, highlight))));
    }

    // --------------------------------------------------------------------------------------------------- how it was issued

    // Ops by issue method: [{name, ops, ns}], most ops first.
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
    const METHOD_WORDS = {launch: "each op by a launch of its own", replay: "bundles as graphs that are kept",
        layers: "bundles as graphs of layers",
        gpu: "the GPU issues ops of a bundle", resident: "one kernel on the GPU runs the blocks of the ops",
            unknown: "not known"};
    // How long ready ops waited to be issued.
    function issueWait(run) {
        const known = run.ops.filter(op => op[C.ready] > 0 && op[C.issued] >= op[C.ready]);
        const sum = known.reduce((total, op) => total + op[C.issued] - op[C.ready], 0);
        return sum > 0 ? "A ready op waited " + time(sum / known.length) + " on average until it was issued." : "";
    }
    function issued(run) {
        const methods = methodsOf(run);
        const parts = methods.map((row, place) => ({name: row.name, value: row.ops, colour: "var(--k" + (place + 2) % 10 +
            ")",
            words: percent(share(row.ops, run.ops.length)), title: METHOD_WORDS[row.name] || ""}));
        const handing = run.bundles.filter(one => one[3] > one[2] && one[2] > 0).reduce((sum, one) => sum + one[3] - one[2],
            0);
        const inBundles = run.ops.filter(op => op[C.bundle] >= 0).length;
        return section("issue", "How it was issued", null, parts.length ? stacked(parts, "Ops by issue method")
            : none("No op was issued."),
            run.bundles.length ? el("p", null, plural(run.bundles.length, "bundle") + " had " + plural(inBundles, "op") +
                ", " +
                width(inBundles / run.bundles.length) + " each." + (handing ? " Handing them over took " +
                    time(handing / run.bundles.length) + " each." : ""))
                : run.ops.length ? el("p", null, "No op was part of a bundle.") : null, el("p", null, issueWait(run)));
    }

    // --------------------------------------------------------------------------------------------------------- what if

    function whatIf(run) {
        const rows = run.what_if.filter(row => row.ns > 0);
        if (!rows.length)
            return section("what-if", "What other settings would bring", null, none("This page has no simulated runs."));
        const base = rows[0].ns, best = Math.min(...rows.map(row => row.ns));
        const change = row => row === rows[0] ? "" : Math.abs(row.ns / base - 1) < 0.005 ? "no change"
            : row.ns < base ? percent(1 - row.ns / base) + " less" : percent(row.ns / base - 1) + " more";
        return section("what-if", "What other settings would bring",
            "The simulator ran the recorded ops again with other settings. Shorter is better. Compare with the first bar, not with the time of the run.",
            bars(rows.map((row, at) => ({name: row.name, note: row.setting || null, value: row.ns,
                strong: row.ns === best && best < base * 0.98,
                colour: at === 0 ? "var(--base)" : row.ns < base * 0.98 ? "var(--good)" : "var(--base-other)",
                words: [el("b", null, time(row.ns)), " " + change(row)]}))));
    }

    // ---------------------------------------------------------------------------------------------------------- memory

    // Bytes over time as steps, with a tick for each call.
    function memory(run) {
        if (!run.memory.length)
            return section("memory", "Memory over time", null, none("No block was allocated or freed while recording."));
        const W = 1000, H = 160, events = [...run.memory].sort((a, b) => a[1] - b[1]);
        const most = Math.max(...events.map(event => Math.max(event[4], event[5])), 1), span = Math.max(run.span, 1);
        const x = at => (at / span * W).toFixed(1), y = value => (H - 8 - (H - 20) * value / most).toFixed(1);
        const steps = column => {
            let path = "M0," + y(before(events, column));
            for (const event of events)
                path += "H" + x(event[1]) + "V" + y(event[column]);
            return path + "H" + W;
        };
        const calls = events.filter(event => !event[2]), spent = events.reduce((sum, event) => sum +
            Math.max(0, event[1] - event[0]), 0);
        const legend = (name, words) => el("span", null, el("span",
            {class: "key", style: "background:var(--" + name + ")"}), words);
        return section("memory", "Memory over time",
            plural(calls.length, "allocation") + " and " + plural(events.length - calls.length,
                "free") + " took " + time(spent) + ", " +
            percent(share(spent,
                run.span)) + " of the time. At most " + bytes(Math.max(...events.map(event => event[4]))) + " were in use.",
            svg("svg", {viewBox: "0 0 " + W + " " + H, preserveAspectRatio: "none", class: "memory", role: "img",
                "aria-label": "Bytes in use and reserved over time"},
            svg("path", {d: steps(5) + "V" + H + "H0Z", class: "reserved"}),
                svg("path", {d: steps(4) + "V" + H + "H0Z", class: "live"}),
            svg("path", {d: events.slice(0, 5000).map(event => "M" + x(event[0]) + "," + H + "V" + (H - 6)).join(""),
                class: "calls"})),
            el("div", {class: "memory-axis"}, el("span", null, "0"), el("span", null, "top: " + bytes(most)),
                el("span", null, time(span))),
            el("p", {class: "note marks"}, legend("live", "in use"), legend("reserved", "reserved in pools"),
                legend("memory", "a call")));
    }
    // Bytes before the first event, as far as its size tells.
    function before(events, column) {
        const first = events[0];
        return column === 5 ? first[5] : Math.max(0, first[4] + (first[2] ? first[3] : -first[3]));
    }

    // ---------------------------------------------------------------------------------------------------------- tables

    const right = name => ({name, right: true});
    const left = name => ({name});
    const nsCell = ns => ({text: time(ns), sort: ns});
    const numberCell = value => ({text: count(value), sort: value});

    function pairsTable(run) {
        return table("Pairs of which one waited for the other. Waited: summed over ops. Cost: part of the time of the run.",
            [left("Waits"), left("For"), left("By"), left("Bytes"), right("Times"), right("Waited"), right("Cost"),
                left("What to do")],
            run.pairs.map(pair => [nameOf(run, pair.down), nameOf(run, pair.up), run.conflicts[pair.conflict] || "",
                run.short(pair.range || ""),
                numberCell(pair.count), nsCell(pair.wait_ns),
                    pair.path_ns === undefined ? {text: "", sort: -1} : nsCell(pair.path_ns),
                {node: el("span", null, codeIn(run.short(pair.fix || ""))), sort: pair.fix || ""}]), PAIRS_SHOWN);
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
        return table("Kernels and other ops, most time first.",
            [left("Name"), left("At"), right("Ops"), right("Total"), right("Mean"), right("Longest"), right("Waited"),
                right("Of the GPU")],
            run.kernels.map(row => [{node: el("button", {type: "button", class: "link", onclick: () => highlight(row[0])},
                nameOf(run, row[0])),
                sort: nameOf(run, row[0])}, placeOf(run, row[0]), numberCell(row[1]), nsCell(row[2]),
                    nsCell(row[2] / Math.max(1, row[1])), nsCell(row[3]),
            nsCell(row[4]), fills.has(row[0]) ? {text: percent(fills.get(row[0])), sort: fills.get(row[0])}
                : {text: "", sort: -1}]));
    }
    const WAITS = ["one op", "all ops", "room in the FIFO"];
    function waitsTable(run) {
        const groups = new Map();
        for (const wait of run.waits) {
            const key = wait[0] + "/" + wait[1] + "/" + wait[5];
            const row = groups.get(key) || {thread: wait[0], type: wait[1], label: wait[5], many: 0, ns: 0, longest: 0};
            row.many++;
            row.ns += wait[3] - wait[2];
            row.longest = Math.max(row.longest, wait[3] - wait[2]);
            groups.set(key, row);
        }
        return table("Waits of callers, longest first.",
            [left("Thread"), left("Waits for"), left("Behind"), left("At"), right("Times"), right("Total"),
                right("Longest")],
            [...groups.values()].sort((a, b) => b.ns - a.ns).map(row => [row.thread, WAITS[row.type] || "",
                row.label >= 0 ? nameOf(run, row.label) : "",
                row.label >= 0 ? placeOf(run, row.label) : "", numberCell(row.many), nsCell(row.ns), nsCell(row.longest)]),
                    WAITS_SHOWN);
    }
    function methodsTable(run) {
        return table("Ops by issue method.", [left("Method"), right("Ops"), right("Of them in bundles")],
            methodsOf(run).map(row => [row.name, numberCell(row.ops), numberCell(row.bundled)]));
    }
    function optionsTable(run) {
        return table("Options of the run.", [left("Option"), left("Value")],
            Object.entries(run.options).map(([name, value]) => [name, String(value)]));
    }
    function tables(run, highlight) {
        const part = (id, title, many, make) => many ? el("details", {id},
            el("summary", null, title + " (" + count(many) + ")"), make()) : null;
        return section("tables", "Tables", null,
            part("t-pairs", "Pairs that serialise", run.pairs.length, () => pairsTable(run)),
            part("t-kernels", "Kernels", run.kernels.length, () => kernelsTable(run, highlight)),
            part("t-waits", "Waits of callers", run.waits.length, () => waitsTable(run)),
            part("t-methods", "Issue methods", run.ops.length ? methodsOf(run).length : 0, () => methodsTable(run)),
            part("t-options", "Options", Object.keys(run.options).length, () => optionsTable(run)));
    }

    // ------------------------------------------------------------------------------------------------------- one report

    // All sections of a recording: {node, timeline}. `short`: without the headline, for a page that compares.
    function report(run, short) {
        const made = run.ops.length ? acs.timeline.timeline(run) : null;
        const toTimeline = act => {
            act();
            document.getElementById("timeline").scrollIntoView({block: "start"});
        };
        const show = places => toTimeline(() => made.show(places));
        const highlight = label => toTimeline(() => made.highlight(label));
        return {timeline: made, node: el("div", {class: "report"}, short ? null : headline(run), findings(run, show),
            section("timeline", "What ran when",
                "Above: how many ops ran, were ready, and stood in the window, and how full the GPU was. Below: each caller and each stream.",
                made ? made.node : none("No op was recorded.")),
            where(run, highlight), issued(run), whatIf(run), memory(run), tables(run, highlight))};
    }

    acs.sections = {report, section, codeIn, fillsOf, methodsOf};
})(window.acsReport = window.acsReport || {});
