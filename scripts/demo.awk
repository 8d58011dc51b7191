# What ACS_STATS=1 reports, for somebody who sees it for the first time. Used by scripts/demo.
function number_after(text, words,    rest)
{
    rest = substr(text, index(text, words) + length(words))
    return rest + 0
}

/stats: [0-9]+ ops/ { printf "   ops                %d, of them %d kernels\n", $3, number_after($0, "(") }
/width possible/ {
    printf "   could run at once  up to %.1f on average: all ops, by the longest chain\n", number_after($0, "width possible ")
    printf "   longest chain      %d ops, each of which needs the one before: this much is serial\n", \
        number_after($0, "longest chain ")
}
/stats: (ran|could run) at once/ {
    printf "   ran at once        %.1f on average, %d at most; nothing ran in %.0f %% of %.3f s\n", \
        number_after($0, "on average "), number_after($0, "at most "), number_after($0, ", in "), number_after($0, "did; ")
}
/ x '.*waited for/ {
    if (!pairs++)
        print "   what waits most    times, launch, for which launch:"
    if (pairs <= 5) {
        line = $0
        sub(/^acs: stats: */, "", line)
        gsub(/\([^()]*\//, "(", line)
        print "                      " line
    }
}
