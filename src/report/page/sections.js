// The sections of one recording: headline, findings, timeline, where the time went, what if.
(function (acs) {
    "use strict";
    const {C, nameOf, placeOf, time, width, count, share, percent, plural, inRun} = acs.model;
    const {pathWords, pathColour, KIND_WORDS, isGpuEmpty, verdict, needsOf, simulatorWords, costOf} = acs.words;
    const {el, section, bars, stacked, codeIn, kernelColours} = acs.draw;
    const {tables, fillsOf, methodsOf, glossary, linkWords, METHOD_WORDS} = acs.tables;

    const FINDINGS_SHOWN = 6, FULL = 0.95, KERNELS_SHOWN = 12;
    const none = words => el("p", {class: "note"}, words);

    // -------------------------------------------------------------------------------------------------------- headline

    function headline(run, curves) {
        const s = run.summary, [could, rest] = verdict(run, curves.gpuMost);
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
                tile("Time", time(run.took), "first op to last end",
                    "From the entry of the first op to the end of the last"),
                el("div", {class: "tile wide",
                    title: "The time that all ops take, each alone, divided by the critical path " +
                    "and by the time of the run. Ops that run at once can be slower than alone, so it can be below 1"},
                el("dt", null, "Ops at once, on average"), el("dd", null, widthBars(s))),
                tile("Critical path", time(s.critical_ns), percent(share(s.critical_ns, s.span_ns)) + " of the time, " +
                    plural(s.levels, "op"), "The longest chain of ops that need each other, as their footprints say. " +
                    "Each op counts as long as it takes alone"),
                tile("Nothing ran", s.busy_ns > 0 ? percent(idle) : "not known",
                    s.busy_ns > 0 ? time(s.span_ns - s.busy_ns) + " in all" : "",
                    "Time in which no op ran")) : null,
            partly(run));
    }
    function subtitle(run) {
        const where = {cuda: "on a GPU", host: "on CPU threads",
            sim: "on the simulated GPU"}[run.backend] || run.backend || "";
        const many = run.devices.length > 1 ? "on " + run.devices.length + " GPUs" : where;
        const size = run.devices[0] && run.devices[0].sms
            ? ", " + run.devices[0].sms + " multiprocessors each".replace(run.devices.length > 1 ? "" : " each", "")
                : "";
        const told = {polls: " The times of ops are estimates: their ends were learnt by polls.",
            graphs: " The times of graphs and single ops are the GPU's own. Ops of a graph share its time, by levels."};
        return "Recorded " + many + size + (run.virtual_time ? ", in simulated time" : "") + "." + (told[run.times] || "");
    }
    function partly(run) {
        const seen = Number(run.ops_seen) || 0;
        if (run.sampled > 0 && run.sampled < 100)
            return el("p", {class: "warn"}, "The recording has " + run.sampled +
                " % of the ops. Numbers are those of this part.");
        return run.ops.length < 0.99 * seen && run.ops.length
            ? el("p", {class: "warn"}, "The recording has " + count(run.ops.length) + " of " + count(seen) +
                " ops: the newest, without those that did not run.") : null;
    }
    function widthBars(s) {
        const most = Math.max(s.width_possible, s.width_achieved, 1e-9);
        const bar = (name, value, colour) => el("span", {class: "width-row"}, el("span", {class: "width-name"}, name),
            el("span", {class: "width-track"}, el("span", {class: "width-bar", style: "width:" + 100 * value / most +
                "%;background:" + colour})),
            el("b", null, value > 0 ? width(value) : "?"));
        return [bar("by footprints", s.width_possible, "var(--aim)"),
            bar("as it ran", s.width_achieved, "var(--good)")];
    }

    // -------------------------------------------------------------------------------------------------------- findings

    function findings(run, show) {
        if (!run.findings.length)
            return section("findings", "What costs the most", null, none(run.ops.length
                ? "No slowness stands out." : "There is nothing to look at."));
        const cards = run.findings.map((finding, place) => card(run, finding, place, show));
        const rest = cards.slice(FINDINGS_SHOWN);
        return section("findings", "What costs the most",
            "The most costly first. Each bar is the cost, as a part of the run's time. Costs can overlap, so do " +
                "not add them.",
            el("ol", {class: "cards"}, cards.slice(0, FINDINGS_SHOWN)),
            rest.length ? el("details", null, el("summary", null, plural(rest.length, "smaller finding")),
                el("ol", {class: "cards", start: FINDINGS_SHOWN + 1}, rest)) : null);
    }
    function card(run, finding, place, show) {
        const part = costOf(run, finding), places = (finding.ops || []).filter(at => run.ops[at]);
        return el("li", {class: "card", "data-kind": finding.kind},
            el("div", {class: "card-head"}, el("span", {class: "rank"}, String(place + 1)),
                el("h3", null, run.short(finding.title)),
                el("span", {class: "kind"}, KIND_WORDS[finding.kind] || String(finding.kind || ""))),
            el("div", {class: "cost", title: "The cost, as a part of the run's time"},
                el("div", {class: "bar-track"}, el("div", {class: "bar", style: "width:" + Math.min(100, 100 * part) +
                    "%;background:var(--cost)"})),
                el("span", null, el("b", null, time(finding.ns || 0)), ", " + percent(part) + " of the time")),
            finding.how ? el("p", {class: "note how"}, "The cost: " + uncapital(run.short(finding.how))) : null,
            finding.text ? el("p", null, run.short(finding.text)) : null,
            finding.fix ? el("p", {class: "fix"}, el("b", null, "What to do: "), codeIn(run.short(finding.fix))) : null,
            places.length ? el("button", {type: "button", class: "tool", onclick: () => show(places, finding.kind)},
                "Show in the timeline") : null);
    }
    const uncapital = text => text.charAt(0).toLowerCase() + text.slice(1);

    // ----------------------------------------------------------------------------------------------- where the time
    // went

    // The whole time by what the end waited for: the parts of the path are the time.
    function pathBar(run) {
        const total = run.path_ns.reduce((sum, ns) => sum + ns, 0);
        const parts = run.path_reasons.map((name, at) => ({name: pathWords(name)[0],
            title: pathWords(name)[1], value: run.path_ns[at] || 0, colour: "var(--" + pathColour(name) + ")",
            words: percent(share(run.path_ns[at] || 0, total)) + ", " + time(run.path_ns[at] || 0)}))
            .filter(part => part.value > 0);
        return parts.length ? el("div", {class: "path"},
            el("p", null, "The path goes back from the op that ended last, each time to what was waited for. " +
                "Its parts are the whole time."),
            stacked(parts, "Time by what the end of the run waited for"),
            run.summary.host_wait_ns > 0 ? el("p", null, "Callers waited " +
                plural(run.waits.filter(wait => inRun(run, [wait.slice(2)]) > 0).length, "time") + ", " +
                time(run.summary.host_wait_ns) +
                    " summed over all waits. Only where the path has them did they cost time.")
                : null) : null;
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
        return rows.length ? [none("Summed over all ops, of which many run at once. Percentages are parts of " +
            "the time of all ops."),
            bars(rows), run.kernels.length > KERNELS_SHOWN
            ? none("The table of kernels has all " + run.kernels.length + ".") : null]
            : none("No kernel ran.");
    }
    function where(run, highlight) {
        return section("where", "Where the time went", null, pathBar(run), isPlain(run) ? el("p", null,
            plainWords(run)) : null,
            el("h3", null, "Time by kernel"), byKernel(run, highlight));
    }

    // --------------------------------------------------------------------------------------------------- how it was
    // issued

    // Whether all ops went one way, and none in bundles: then a sentence says it.
    const isPlain = run => run.ops.length > 0 && methodsOf(run).length === 1 && !run.bundles.length;
    function plainWords(run) {
        const name = methodsOf(run)[0].name, words = {launch: "Each op was issued by a launch of its own.",
            unknown: "How the ops were issued is not known."}[name];
        return (words || "All ops were issued by the method " + name + ": " + METHOD_WORDS[name] + ".") + " " +
            issueWait(run);
    }
    // How long ready ops waited to be issued.
    function issueWait(run) {
        const known = run.ops.filter(op => op[C.ready] > 0 && op[C.issued] >= op[C.ready]);
        const sum = known.reduce((total, op) => total + op[C.issued] - op[C.ready], 0);
        return sum > 0 ? "A ready op waited " + time(sum / known.length) + " on average until it was issued." : "";
    }
    function issued(run) {
        if (isPlain(run) || !run.ops.length)
            return null;
        const methods = methodsOf(run);
        const parts = methods.map((row, place) => ({name: row.name, value: row.ops, colour: ISSUE_COLOURS[place] ||
            "var(--aim)",
            words: percent(share(row.ops, run.ops.length)), title: METHOD_WORDS[row.name] || ""}));
        const handed = run.bundles.filter(one => one[3] > one[2] && one[2] > 0);
        const handing = handed.reduce((sum, one) => sum + one[3] - one[2], 0);
        const inBundles = run.ops.filter(op => op[C.bundle] >= 0).length;
        return section("issue", "How it was issued", null, stacked(parts, "Ops by issue method"),
            run.bundles.length ? el("p", null, plural(run.bundles.length, "bundle") + " had " + plural(inBundles,
                "op") +
                ", " + width(inBundles / run.bundles.length) + " each on average." + (handing
                ? " To hand over a bundle took " + time(handing / handed.length) + " on average." : ""))
                : el("p", null, "No op was part of a bundle."), el("p", null, issueWait(run)));
    }
    const ISSUE_COLOURS = ["var(--base)", "var(--base-other)", "var(--curve)"];

    // --------------------------------------------------------------------------------------------------------- what if

    function whatIf(run) {
        const rows = run.what_if.filter(row => row.ns > 0);
        if (!rows.length)
            return section("what-if", "What other settings would bring", null,
                none("This page has no simulated runs."));
        const base = rows[0].ns, best = Math.min(...rows.map(row => row.ns));
        const change = row => row === rows[0] ? "" : Math.abs(row.ns / base - 1) < 0.005 ? "no change"
            : row.ns < base ? percent(1 - row.ns / base) + " less" : percent(row.ns / base - 1) + " more";
        return section("what-if", "What other settings would bring",
            "The simulator played the recorded ops again, with other settings. Compare its times with its first bar. " +
            simulatorWords(run),
            bars(rows.map((row, at) => ({name: row.name, note: row.setting || null, value: row.ns,
                title: needsOf(row.setting || "")[0],
                strong: row.ns === best && best < base * 0.98,
                colour: at === 0 ? "var(--base)" : row.ns < base * 0.98 ? "var(--good)" : "var(--base-other)",
                words: [el("b", null, time(row.ns)), " " + change(row)]}))));
    }

    // ------------------------------------------------------------------------------------------------------- one
    // report

    // All sections of a recording: {node, timeline}. `short`: without the headline, for a page that compares.
    function report(run, short) {
        const made = run.ops.length ? acs.timeline.timeline(run) : null;
        const toTimeline = act => {
            act();
            document.getElementById("timeline").scrollIntoView({block: "start"});
        };
        const show = (places, kind) => toTimeline(() => made.show(places, kind));
        const highlight = label => toTimeline(() => made.highlight(label));
        const curves = made ? made.curves : {gpuMost: 0};
        const node = el("div", {class: "report"}, short ? null : headline(run, curves), findings(run, show),
            section("timeline", "What ran when",
                "Above: how many ops ran, were ready, and were in the window" + (curves.gpuMost &&
                    !isGpuEmpty(curves.gpuMost)
                    ? ", and which part of the GPU was taken" : "") +
                        ". Below: what the end of the run waited for, then each " +
                "caller and each stream.",
                made ? made.node : none("No op was recorded.")),
            where(run, highlight), issued(run), whatIf(run), acs.memory.memory(run), tables(run, highlight),
                glossary());
        linkWords(node);
        return {timeline: made, node, gpuMost: curves.gpuMost};
    }

    acs.sections = {report};
})(window.acsReport = window.acsReport || {});
