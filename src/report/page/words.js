// Words of the page: causes, options, the glossary, and the sentences of the headline. Draws nothing.
(function (acs) {
    "use strict";
    const {time, width, share, percent, plural, sentence} = acs.model;

    // What a part of the path was for, and what an op waited for: [name, what happened, what an op waited for].
    const PATH_WORDS = {
        run: ["The last op", "The op that ended last ran."],
        result: ["Needed results", "An op ran whose result the next op reads (RAW).", "a result of another op (RAW)"],
        overwrite: ["Overwritten bytes", "An op ran that used bytes which the next op overwrites (WAR, WAW).",
            "another op that used the bytes which it overwrites (WAR, WAW)"],
        memory: ["Freed memory", "An op ran that used memory which was freed and handed out again.",
            "another op that used memory which was handed out again"],
        "no footprint": ["No footprint",
            "An op ran. It or the next op has no footprint, so they may touch the same bytes.",
            "another op, since one of the two has no footprint"],
        dependence: ["Dependence", "An op ran that the next op depends on.", "another op that it depends on"],
        stream: ["Stream", "An op ran that was before the next op in its stream. The next op did not need it.",
            "another op that was before it in its stream"],
        window: ["Window", "An op ran. Its end made room in the window or the FIFO for the next op.",
            "room in the window"],
        "host wait": ["The caller waited", "An op ran that a caller waited for before it launched the next op."],
        issue: ["Issue", "The next op was ready. The library had not issued it yet.", "the library to issue it"],
        start: ["Start", "The next op was issued and could run. It had not begun yet."],
        caller: ["The caller was late", "The program had not launched the next op yet."],
    };
    const pathWords = name => PATH_WORDS[name] || [name, ""];
    const pathColour = name => "p-" + String(name).replace(/[^a-z]/g, "-");
    const waitWords = name => pathWords(name)[2] || String(name);

    const CONFLICTS = {RAW: "Read after write: the op needs bytes that the other one writes.",
        WAR: "Write after read: the op overwrites bytes that the other one reads.",
        WAW: "Write after write: both ops write the same bytes.",
        "all memory": "One of the two ops has no footprint, so it may touch anything.",
        order: "Memory was freed and handed out again. Its next user waits for the ops that used it before."};

    const KIND_WORDS = {war: "buffer used again", waw: "bytes written twice", "false dependence": "footprint too large",
        "no footprint": "no footprint", "host wait": "the caller waits", window: "window too small",
        streams: "too few streams", fills: "a kernel fills the GPU", allocation: "memory", chain: "a chain",
        issue: "issue takes long", caller: "the caller is late"};

    // What the options of the data mean.
    const OPTIONS = {window: "most ops in the window", streams: "most streams of a device",
        workers: "threads that issue ops, for each device", devices: "devices that ops are spread over",
        batch: "most ops that a worker hands over in one call",
        rename: "most memory for renaming, in bytes; 0: none; -1: as much as blocks take",
        repeats: "which parts that recur are replayed; named: those that the program marks; auto: all",
        issue: "how kernels are issued; launch: each by a call of its own; auto: the cheapest way",
        serial: "1: one op at a time, in program order", disable: "1: one stream, no threads, in program order",
        fifo: "most ops that wait in front of the window",
        memory_limit: "most device memory that blocks take, in bytes; 0: as much as there is",
        memory_slack: "freed memory, in bytes, that may lie idle until its ops have ended"};

    // [word, a pattern of its first use in a sentence, what it means], by the alphabet.
    const GLOSSARY = [
        ["all memory", null, CONFLICTS["all memory"]],
        ["batch", null, "The ops that a worker hands over in one call. ACS_BATCH is its most."],
        ["block", null, "Memory that one call of acs_malloc returned."],
        ["bundle", /\bbundles?\b/, "Several kernels that are handed to the GPU in one call."],
        ["caller", /\b[Cc]allers?\b/, "A thread of the program that launches ops."],
        ["critical path", /\b[Cc]ritical path\b/,
            "The longest chain of ops that need each other, as footprints say. Each op counts as long as it " +
                "takes alone."],
        ["dependence", /\bdepend(s|ence)?\b/,
            "An op depends on an earlier op if both touch the same bytes and one writes."],
        ["FIFO", /\bFIFO\b/, "The queue in which launched ops stand until the window has room."],
        ["footprint", /\b[Ff]ootprints?\b/, "The bytes that an op says it reads and writes. ACS orders ops by them."],
        ["issue", /\bissued?\b/, "To hand a ready op to the GPU's driver. A worker does it."],
        ["op", /\b[Oo]ps?\b/,
            "A kernel launch, a copy, a fill, or a function on the host, that the program gave to ACS."],
        ["order", null, CONFLICTS.order],
        ["path", /\b[Tt]he path\b/, "It goes back from the op that ended last, each time to what was waited for."],
        ["pool", /\bpools?\b/, "Memory that ACS keeps, to make blocks of it."],
        ["RAW", /\bRAW\b/, CONFLICTS.RAW],
        ["ready", /\bready\b/, "An op is ready when all ops that it depends on have ended."],
        ["renaming", /\b(renaming|ACS_RENAME)\b/,
            "An op that overwrites a whole block gets other memory for it, so it need not wait for ops that use " +
                "the old one. " +
            "ACS_RENAME switches it on. Blocks must be allocated ACS_RELOCATABLE, and named with ACS_OUT."],
        ["repeats", null, "Parts of the program that recur. ACS can replay them."],
        ["simulator", /\bsimulator\b/, "It plays the recorded ops again on a model of the GPU, with other settings."],
        ["stream", /\bstreams?\b/, "A queue of the GPU. Ops of one stream run one after another."],
        ["WAR", /\bWAR\b/, CONFLICTS.WAR],
        ["WAW", /\bWAW\b/, CONFLICTS.WAW],
        ["window", /\bwindow\b/, "The ops among which ACS looks for dependences. ACS_WINDOW is its size."],
        ["worker", null, "A thread of the library that issues ops."],
    ];

    // ------------------------------------------------------------------------------------------------- the headline

    const LARGE = 0.1, SMALL_GPU = 0.05;
    const costOf = (run, finding) => share(finding.ns || 0, run.took);

    // Whether so little of the GPU was ever taken that a curve of it shows nothing.
    const isGpuEmpty = most => most > 0 && most < SMALL_GPU;

    // Whether the context ran one op after another, whatever footprints say.
    const isInOrder = run => run.options.serial || run.options.disable;
    const IN_ORDER = "The context ran one op after another (ACS_SERIAL, ACS_DISABLE).";

    // [how wide the run could be and was, more sentences]. `gpuMost`: the largest part of the GPU that was taken.
    function verdict(run, gpuMost) {
        const s = run.summary, first = run.findings[0];
        if (!run.ops.length)
            return ["No op was recorded.", "Nothing can be said of this run."];
        if (!(s.busy_ns > 0))
            return ["The times of the " + plural(run.ops.length, "op") + " are not known.", ""];
        const said = [], idle = share(s.span_ns - s.busy_ns, s.span_ns);
        if (first && first.title)
            said.push("Most costly: " + sentence(run.short(first.title)));
        if ((!first || costOf(run, first) < LARGE) && !isInOrder(run))
            said.push(...goodWords(s));
        if (idle >= LARGE)
            said.push("In " + percent(idle) + " of the time nothing ran.");
        if (isGpuEmpty(gpuMost))
            said.push("The kernels are small: at most " + percent(gpuMost) + " of the GPU was in use.");
        said.push(...gainWords(run));
        return [isInOrder(run) ? IN_ORDER : "As its footprints say, about " + width(s.width_possible) +
            " ops could run at once, on average; it ran " +
            width(s.width_achieved) + ".", said.join(" ")];
    }
    function goodWords(s) {
        if (s.width_possible < 1.5)
            return ["As its footprints say, nearly every op needs the one before it."];
        return s.width_achieved >= 0.8 * s.width_possible ? ["It used nearly all that its footprints allow."] : [];
    }
    // What the simulator says of the setting that the first finding advises.
    function gainWords(run) {
        const rows = run.what_if.filter(row => row.ns > 0), gain = gainOf(run, rows);
        if (!gain)
            return [];
        const off = simulatorOff(run);
        return ["In the simulator, " + gain.setting + " takes " + percent(gain.part) + " less time" +
            (off ? " than the simulator's run as it is, which takes " + off + " than the recording." : "."),
            ...needsOf(gain.setting)];
    }
    // The best setting of those whose option the first finding's advice names: {setting, part}, or null.
    function gainOf(run, rows) {
        const fix = String(run.findings.length ? run.findings[0].fix || "" : "");
        const own = rows.filter(row => row.setting && fix.includes(row.setting.split("=")[0]));
        const best = own.reduce((a, b) => a && a.ns <= b.ns ? a : b, null);
        const part = best ? 1 - best.ns / rows[0].ns : 0;
        return part >= LARGE ? {setting: best.setting, part} : null;
    }
    const needsOf = setting => setting.startsWith("ACS_RENAME")
        ? ["Renaming needs blocks that are allocated ACS_RELOCATABLE, and named with ACS_OUT by ops that " +
            "overwrite all of them."]
        : [];
    // "27 % more time" where the simulator's own run differs from the recording by more than a tenth; else "".
    function simulatorOff(run) {
        const base = run.what_if.filter(row => row.ns > 0)[0], recorded = run.took;
        const by = base ? base.ns / recorded - 1 : 0;
        return Math.abs(by) > LARGE ? percent(Math.abs(by)) + (by > 0 ? " more time" : " less time") : "";
    }
    // How the simulator's run as it is compares with the recording.
    function simulatorWords(run) {
        const base = run.what_if.filter(row => row.ns > 0)[0], off = simulatorOff(run);
        return "The recording took " + time(run.took) + ", the simulator's run as it is " +
            time(base.ns) + (off ? ": " + off + ", so the simulator fits this run badly." : ".");
    }

    acs.words = {pathWords, pathColour, waitWords, CONFLICTS, KIND_WORDS, OPTIONS, GLOSSARY, isGpuEmpty, verdict,
        needsOf,
        simulatorWords, costOf};
})(window.acsReport = window.acsReport || {});
