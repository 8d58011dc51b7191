// Curves over time, made of the times of the ops: exact in any span that is shown. Draws nothing.
(function (acs) {
    "use strict";
    const {C, partOfGpu, ran} = acs.model;

    // First place in a sorted array whose value is above.
    function above(sorted, value) {
        let low = 0, high = sorted.length;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (sorted[middle] <= value)
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }

    // The sum of what ops add from one time to another, as steps {t, values}: `spans` are [from, to, weight].
    function sumOf(spans) {
        const ends = [...spans].sort((a, b) => a[1] - b[1]), t = new Float64Array(2 * spans.length),
            values = new Float64Array(2 * spans.length);
        spans.sort((a, b) => a[0] - b[0]);
        let sum = 0, first = 0, last = 0;
        for (let at = 0; at < t.length; at++) {
            const ended = first === spans.length || ends[last][1] <= spans[first][0];
            t[at] = ended ? ends[last][1] : spans[first][0];
            sum += ended ? -ends[last++][2] : spans[first++][2];
            values[at] = Math.max(0, sum);
        }
        return {t, values};
    }
    // Curves of a run: how many ops ran, were ready, and were in the window; which part of the GPUs' threads was taken.
    function curvesOf(run) {
        const timed = run.ops.filter(ran), devices = Math.max(1, run.devices.length);
        const between = (from, to) => sumOf(timed.filter(op => op[from] > 0 && op[to] > op[from])
            .map(op => [op[from], op[to], 1]));
        const gpu = sumOf(timed.filter(op => partOfGpu(run, op) > 0)
            .map(op => [op[C.began], op[C.ended], partOfGpu(run, op) / devices]));
        gpu.values.forEach((value, at) => {
            gpu.values[at] = Math.min(1, value);
        });
        return {running: between(C.began, C.ended), ready: between(C.ready, C.began), window: between(C.inserted,
            C.ended),
            gpu, gpuMost: gpu.values.reduce((a, b) => Math.max(a, b), 0)};
    }

    // Mean and most of a stepped curve in each pixel of [from, to).
    function perPixel(t, values, from, to, pixels) {
        const mean = new Float64Array(pixels), most = new Float64Array(pixels);
        const step = (to - from) / pixels;
        let at = Math.max(0, above(t, from) - 1);
        for (let pixel = 0; pixel < pixels; pixel++) {
            const begin = from + pixel * step, end = begin + step;
            let sum = 0;
            while (at < t.length && t[at] < end) {
                const last = at + 1 < t.length ? t[at + 1] : Infinity;
                const part = Math.min(last, end) - Math.max(t[at], begin);
                if (part > 0) {
                    sum += part * values[at];
                    most[pixel] = Math.max(most[pixel], values[at]);
                }
                if (last > end)
                    break;
                at++;
            }
            mean[pixel] = sum / step;
        }
        return {mean, most};
    }

    acs.curves = {above, curvesOf, sumOf, perPixel};
})(window.acsReport = window.acsReport || {});
