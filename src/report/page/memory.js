// The section of memory: bytes over time, and what the calls took.
(function (acs) {
    "use strict";
    const {time, share, percent, bytes, plural, inRun} = acs.model;
    const {el, svg, section} = acs.draw;

    const W = 1000, H = 160, ROOM = 14; // of the picture; room above the highest curve
    const TICKS_DRAWN = 5000, FEW_CALLS = 8, BEGIN = 0.05;

    // Whether a picture says something: not if all blocks were allocated at the begin, and kept.
    function isTold(run) {
        const late = run.memory.filter(event => event[2] || event[1] > run.began + BEGIN * run.took);
        return run.memory.length > 0 && (late.length > 0 || run.memory.length > FEW_CALLS);
    }
    // Bytes before the first event, as far as its size tells.
    function before(events, column) {
        const first = events[0];
        return column === 5 ? first[5] : Math.max(0, first[4] + (first[2] ? first[3] : -first[3]));
    }
    function calls(run, events) {
        const many = events.filter(event => !event[2]).length;
        const spent = inRun(run, events);
        return plural(many, "allocation") + " and " + plural(events.length - many, "free") + (spent > 0 ? " took " +
            time(spent) + " of the run, " + percent(share(spent, run.took)) + " of the time." : ".");
    }
    // Bytes over time as steps, with a tick for each call; null where there is nothing to see.
    function memory(run) {
        if (!isTold(run))
            return null;
        const events = [...run.memory].sort((a, b) => a[1] - b[1]);
        const most = Math.max(...events.map(event => Math.max(event[4], event[5])), 1);
        const x = at => (at / run.span * W).toFixed(1), y = value => (H - (H - ROOM) * value / most).toFixed(1);
        const steps = column => {
            let path = "M0," + y(before(events, column));
            for (const event of events)
                path += "H" + x(event[1]) + "V" + y(event[column]);
            return path + "H" + W;
        };
        const legend = (name, words) => el("span", null, el("span", {class: "key", style: "background:var(--" + name +
            ")"}),
            words);
        return section("memory", "Memory over time", calls(run, events) + " At most " +
            bytes(Math.max(...events.map(event => event[4]))) + " were allocated and not yet freed.",
        svg("svg", {viewBox: "0 0 " + W + " " + H, preserveAspectRatio: "none", class: "memory", role: "img",
            "aria-label": "Bytes allocated and reserved over time"},
        svg("path", {d: steps(5) + "V" + H + "H0Z", class: "reserved"}),
        svg("path", {d: steps(4) + "V" + H + "H0Z", class: "live"}),
        svg("path", {d: events.slice(0, TICKS_DRAWN).map(event => "M" + x(event[1]) + ",0V5").join(""),
            class: "calls"})),
        el("div", {class: "memory-axis"}, el("span", null, "0"), el("span", null, "highest: " + bytes(most)),
            el("span", null, time(run.span))),
        el("p", {class: "note marks"}, legend("live", "allocated and not yet freed"),
            legend("reserved", "kept in pools, to make blocks of"), legend("text", "a call, above the curves")));
    }

    acs.memory = {memory};
})(window.acsReport = window.acsReport || {});
