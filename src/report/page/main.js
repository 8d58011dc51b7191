// Reads the recording of the page, and shows it. <html data-ready> says that the page is drawn, data-error that it
// failed.
(function (acs) {
    "use strict";
    const {el} = acs.draw;
    const root = document.documentElement;

    function complain(error) {
        root.setAttribute("data-error", String(error && error.message || error));
        document.getElementById("page").prepend(el("p", {class: "warn", role: "alert"}, "This page cannot be shown: " +
            (error && error.message || error)));
    }

    // Show recordings: one, or two that are compared.
    function show(runs) {
        const page = document.getElementById("page");
        document.title = "ACS report: " + runs.map(run => run.program).join(" and ");
        const made = runs.length > 1 ? acs.compare.compare(runs[0], runs[1]) : acs.sections.report(runs[0], false);
        page.replaceChildren(made.node);
        acs.shown = {runs, timeline: () => typeof made.timeline === "function" ? made.timeline() : made.timeline};
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => acs.shown.timeline() &&
            acs.shown.timeline().draw());
        // Two frames: the timeline draws in the first.
        requestAnimationFrame(() => requestAnimationFrame(() => root.setAttribute("data-ready",
            String(Math.round(performance.now())))));
    }

    window.addEventListener("error", event => complain(event.error || event.message));
    try {
        show(acs.model.parse(document.getElementById("acs-data").textContent));
    } catch (error) {
        complain(error);
    }
})(window.acsReport = window.acsReport || {});
