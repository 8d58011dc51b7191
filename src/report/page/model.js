// The recording: columns of an op, checks of what came, numbers as text. Draws nothing and knows no document.
(function (acs) {
    "use strict";

    // Columns of a row of `ops`.
    const COLUMNS = ["seq", "label", "kind", "thread", "entered", "inserted", "ready", "issued", "began", "ended",
        "device",
        "slot", "lane", "method", "bundle", "level", "blocks", "threads", "bytes", "waitedFor", "conflict", "pair",
            "reason",
        "reasonNs", "critical", "status"];
    const C = Object.freeze(Object.fromEntries(COLUMNS.map((name, place) => [name, place])));
    const FORMAT = 1;

    const list = value => Array.isArray(value) ? value : [];
    const number = value => Number.isFinite(value) ? value : 0;

    // One recording with every part present, or an Error that says what is wrong with it.
    function complete(data) {
        if (!data || typeof data !== "object" || Array.isArray(data))
            throw new Error("This page has no recording. acs-report makes a page from a trace, ACS_REPORT makes " +
                "one from a run.");
        if (data.format !== FORMAT)
            throw new Error("This recording has format " + data.format + "; the page reads format " + FORMAT + ".");
        const run = Object.assign({}, data);
        for (const name of ["devices", "kinds", "methods", "reasons", "conflicts", "labels", "ops", "bundles", "deps",
            "waits", "memory", "kernels", "pairs", "findings", "what_if", "path_reasons", "path_ns", "path"])
            run[name] = list(data[name]);
        run.options = data.options || {};
        run.summary = Object.assign({ops: run.ops.length, kernels: 0, work_ns: 0, busy_ns: 0, critical_ns: 0, levels: 0,
            width_possible: 0, width_achieved: 0, span_ns: 0, reasons_ns: [], host_wait_ns: 0}, data.summary);
        // The run goes from the call of the first op to the last end, and shares are parts of it. `span`: the recording.
        run.span = Math.max(number(run.summary.span_ns), number(data.span_ns), 1);
        run.took = number(run.summary.span_ns) || run.span;
        run.began = run.ops.length ? run.ops.reduce((least, op) => Math.min(least, op[C.entered]), Infinity) : 0;
        run.program = String(data.program || "program");
        const folder = commonFolder(run.labels.map(label => label[1]).concat(run.memory.map(event => event[6])));
        // Words without the folder that all files are in.
        run.short = text => folder ? String(text).split(folder).join("") : String(text);
        return run;
    }
    // "/home/a/" of "/home/a/x.c" and "/home/a/b/y.c"; empty where files share none.
    function commonFolder(files) {
        const known = [...new Set(files)].filter(file => typeof file === "string" && file.includes("/"));
        if (!known.length)
            return "";
        let common = known[0].slice(0, known[0].lastIndexOf("/") + 1);
        for (const file of known)
            while (!file.startsWith(common))
                common = common.slice(0, common.lastIndexOf("/", common.length - 2) + 1);
        return common.length > 1 && /^[\w.+\-\/ ]+$/.test(common) ? common : "";
    }

    // Recordings of the page: one, or two that are compared.
    function parse(text) {
        if (!text.trim() || text.trim().startsWith("/*"))
            return [complete(null)];
        const data = JSON.parse(text);
        return (Array.isArray(data) ? data : [data]).map(complete);
    }

    const labelOf = (run, label) => run.labels[label] || ["not named", "", 0];
    const nameOf = (run, label) => String(labelOf(run, label)[0] || "not named");
    function placeOf(run, label) {
        const [, file, line] = labelOf(run, label);
        return file ? run.short(file) + ":" + line : "";
    }
    const opName = (run, op) => nameOf(run, op[C.label]) + " #" + op[C.seq];

    // "12.3 ms", with three digits.
    function time(ns) {
        const size = Math.abs(ns);
        for (const [unit, name] of [[1e9, "s"], [1e6, "ms"], [1e3, "\u00b5s"]])
            if (size >= unit * 0.9995)
                return digits(ns / unit) + " " + name;
        return Math.round(ns) + (ns ? " ns" : "");
    }
    // A time on an axis whose ticks are `step` apart, with the digits that tell ticks apart.
    function timeAt(ns, step) {
        const [unit, name] = [[1e9, "s"], [1e6, "ms"], [1e3, "\u00b5s"], [1, "ns"]].find(([size]) => ns >= size) ||
            [1, ""];
        const places = Math.max(0, -Math.floor(Math.log10(Math.max(step, 1) / unit) + 1e-9));
        return ns ? (ns / unit).toFixed(places) + " " + name : "0";
    }
    // Three digits that count, without an exponent.
    function digits(value) {
        const size = Math.abs(value);
        return size >= 99.95 ? Math.round(value).toLocaleString("en") : size >= 9.995 ? value.toFixed(1)
            : value.toFixed(2);
    }
    const width = value => value >= 9.95 ? Math.round(value).toLocaleString("en") : value.toFixed(value < 0.95 ? 2 : 1);
    const count = value => Math.round(number(value)).toLocaleString("en");
    const share = (part, whole) => whole > 0 ? part / whole : 0;
    function percent(fraction) {
        const value = 100 * fraction;
        return (value >= 10 || value === 0 ? Math.round(value).toLocaleString("en") : value >= 0.1 ? value.toFixed(1)
            : "< 0.1") + " %";
    }
    function bytes(value) {
        for (const [unit, name] of [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]])
            if (value >= unit)
                return digits(value / unit).replace(/\.0+$/, "") + " " + name;
        return count(value) + " bytes";
    }
    const plural = (many, word) => count(many) + " " + word + (many === 1 ? "" : "s");

    // Part of the GPU's threads that the blocks of an op take, at most 1; 0: not known.
    function partOfGpu(run, op) {
        const device = run.devices[op[C.device]] || run.devices[0] || {},
            room = number(device.sms) * number(device.threads);
        return room ? Math.min(1, op[C.blocks] * op[C.threads] / room) : 0;
    }

    // Why an op waited, as a part of the path has it: "result", "overwrite", "memory", "no footprint", ...
    const CONFLICT_REASONS = {RAW: "result", WAR: "overwrite", WAW: "overwrite", "all memory": "no footprint",
        order: "memory"};
    const dependenceOf = (run, op) => CONFLICT_REASONS[run.conflicts[op[C.conflict]]] || "result";
    function reasonOf(run, op) {
        const name = run.reasons[op[C.reason]] || "none";
        return name === "dependence" ? dependenceOf(run, op) : name;
    }

    // Phases of an op that took time: {name, reason, from, to, ran}. Unknown times (0) join the phase to the next
    // known one.
    function phases(run, op) {
        const behind = run.reasons[op[C.reason]] === "stream";
        const steps = [
            ["in the FIFO", "window", C.entered, C.inserted],
            ["waited for " + (op[C.waitedFor] >= 0 ? opWaitedFor(run, op) : "other ops"), dependenceOf(run, op),
                C.inserted,
                C.ready],
            ["ready, not issued", "issue", C.ready, C.issued],
            behind ? ["issued, behind others in its stream", "stream", C.issued, C.began]
                : ["issued, not begun", "start", C.issued, C.began],
            ["ran", "", C.began, C.ended],
        ];
        const found = [];
        let from = op[C.entered];
        for (const [name, reason, start, end] of steps) {
            if (op[start] > 0)
                from = Math.max(from, op[start]);
            if (op[end] > 0 && op[end] > from && (from > 0 || start === C.entered))
                found.push({name, reason, from, to: op[end], ran: end === C.ended});
        }
        return found;
    }
    function opWaitedFor(run, op) {
        const upstream = run.ops[op[C.waitedFor]];
        return upstream ? opName(run, upstream) : "an op that is not recorded";
    }

    // Why an op had to wait for the one before it: "WAR on bytes 0 to 64 KiB of ...".
    function conflictOf(run, op) {
        const name = run.conflicts[op[C.conflict]] || "";
        const pair = run.pairs[op[C.pair]];
        return name && name !== "none" ? name + (pair && pair.range ? " on " + run.short(pair.range) : "") : "";
    }

    // Places of the ops that an op waited for, one behind the other, the nearest first.
    function chain(run, place, most) {
        const found = [];
        for (let at = place; found.length < most && run.ops[at] && run.ops[at][C.waitedFor] >= 0; found.push(at)) {
            at = run.ops[at][C.waitedFor];
            if (!run.ops[at] || found.includes(at))
                break;
        }
        return found;
    }

    // When an op can first be seen, and last.
    const opStart = op => op[C.entered] || op[C.inserted] || op[C.ready] || op[C.issued] || op[C.began] || op[C.ended];
    const opEnd = op => Math.max(op[C.ended], op[C.began], op[C.issued], op[C.ready], op[C.inserted], op[C.entered]);
    const ran = op => op[C.ended] > 0 && op[C.began] > 0 && op[C.ended] >= op[C.began];

    // Spans of the run in which no op ran: [[from, to], ...].
    function idleSpans(run) {
        const times = run.ops.filter(ran).map(op => [op[C.began], op[C.ended]]).sort((a, b) => a[0] - b[0]);
        const idle = [];
        let end = run.began;
        for (const [from, to] of times) {
            if (from > end)
                idle.push([end, from]);
            end = Math.max(end, to);
        }
        return idle;
    }

    // The time of these spans that lies within the run.
    function inRun(run, spans) {
        return spans.reduce((sum, [from, to]) => sum + Math.max(0, Math.min(to, run.began + run.took) -
            Math.max(from, run.began)), 0);
    }

    const sentence = text => String(text).replace(/\.?$/, ".");

    acs.model = {C, parse, complete, labelOf, nameOf, placeOf, opName, time, timeAt, digits, width, count, share,
        percent,
        bytes, plural, partOfGpu, reasonOf, phases, conflictOf, chain, opStart, opEnd, ran, idleSpans, inRun,
        sentence};
})(window.acsReport = window.acsReport || {});
