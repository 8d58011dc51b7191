/*
 * Owns the options that all benchmark programs have. Called by their mains before anything is measured.
 */
#include "contest.h"

#include <cstdio>

namespace bench {

bool measuring::take(arguments &a)
{
    if (a.is("--backend")) {
        const std::string name = a.text();
        if (name != "cuda" && name != "host")
            a.refuse("'" + name + "' is neither cuda nor host");
        if (name == "cuda" && !gpu_answers())
            a.refuse("no GPU answers");
        gpu = name == "cuda";
    } else if (a.is("--reps")) {
        repetitions = static_cast<int>(a.number(1, 10000));
    } else if (a.is("--cpu")) {
        first_cpu = static_cast<int>(a.number(0, 1023));
        if (first_cpu + 1 >= cpu_count())
            a.refuse("runners need CPUs behind it; this machine has " + std::to_string(cpu_count()));
    } else if (a.is("--json")) {
        json = a.text();
    } else if (!a.is("--go-on")) { /* result_file reads that */
        return false;
    }
    return true;
}

bool contest::take(arguments &a)
{
    if (!a.is("--runner"))
        return measuring::take(a);
    runners = a.list();
    return true;
}

std::vector<contestant> contest::enter(const arguments &a) const
{
    const machine m = where();
    std::string unknown;

    pin_thread(m, 0);
    std::vector<contestant> made = make_contestants(m, runners, &unknown);
    if (!unknown.empty())
        a.refuse_for("--runner", "there is no runner '" + unknown + "' on this machine");
    return made;
}

std::string contest::help()
{
    std::string text =
        "  --backend cuda|host      where the kernels run                        (cuda where a GPU answers, else host)\n"
        "  --runner R[,R]|all       who issues, see below\n"
        "  --reps N                 timed repetitions of each runner                                             (5)\n"
        "  --cpu N                  pin the program's thread to CPU N and the runners' to those behind   (not pinned)\n"
        "  --json FILE              write all figures for bench/report\n"
        "  --go-on                  skip what FILE has: the same command wrote it and was interrupted\n"
        "runners:\n";
    for (const runner_kind &k : runner_kinds()) {
        char line[200];
        snprintf(line, sizeof line, "  %-14s %s%s\n", k.name, k.about,
                 k.gpu && k.host ? "" : (k.gpu ? " (cuda only)" : " (host only)"));
        text += line;
    }
    return text;
}

} // namespace bench
