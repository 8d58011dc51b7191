/*
 * test_random: runs random programs through ACS and compares with serial execution. Without cmocka, so that it also
 * runs on a bare GPU machine. Owns the command line, the choice of configurations, and the report.
 */
#include "passing.h"
#include "program.h"
#include "shrink.h"
#include "simulator/sim.h"

#include <errno.h> /* program_invocation_short_name */
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct settings {
    uint64_t programs, seed;
    uint32_t ops;
    double seconds;
    unsigned hang;         /* seconds after which a program counts as hanging */
    int backend;
    int64_t workers, issuers, wait, faults, window, issue; /* -1: chosen by the seed */
    bool threads, serial, disable, check, footprints, dense, lazy, decide, shares, variants, by_time, verbose, trace, shrink;
    const char *drop;      /* steps left out: "3,7-9" */
    int64_t order;         /* seed of the order, instead of the program's */
    int64_t devices;    /* 0: the seed's choice */
    const char *fault_kinds;
    char replay[256];   /* flags that a replay needs */
} settings;

enum { HANG_SECONDS = 1800 /* default: however busy the machine is */, SKIPPED = 77 /* exit status */ };

static char g_current[1024]; /* for the signal handler: what runs now */

static void on_alarm(int signal_number)
{
    (void)signal_number;
    ssize_t ignored = write(2, g_current, strlen(g_current));
    (void)ignored;
    _exit(1);
}

/* A crash is the program's that ran: its first line says which. Then the signal does what it always does. */
static void on_crash(int signal_number)
{
    ssize_t ignored = write(2, "FAILED: a crash\n  ", 18);
    ignored = write(2, g_current, strcspn(g_current, "\n"));
    ignored = write(2, "\n", 1);
    (void)ignored;
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

/* Not where a sanitizer handles it: that says more. */
static void note_crashes(int signal_number)
{
    struct sigaction now;
    if (sigaction(signal_number, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
        signal(signal_number, on_crash);
}

/* --------------------------------------------------------------------------------------------------- configurations */

#define PICK(dice, ...) \
    (((const int64_t[]){__VA_ARGS__})[dice_below((dice), sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))])

static void choose_threads(random_config *c, const settings *s, dice *d)
{
    bool many = (s->threads || dice_percent(d, 35)) && !s->footprints; /* memory that other threads write by hand counts */
    c->threads = many ? 2 + dice_below(d, 4) : 1;
    c->baton = many && dice_percent(d, 40);
}

static void add_kind(char *list, size_t bytes, const char *name)
{
    size_t used = strlen(list);
    snprintf(list + used, bytes - used, "%s%s", used ? "," : "", name);
}

/*
 * Those of the command line; "any": some of all kinds. What came later has dice of its own: seeds keep their meaning.
 */
static void choose_faults(random_config *c, const settings *s, dice *d)
{
    dice later = {c->seed ^ 0x7e41c1e5a3d20b97u};
    static const char *const names[ACS_FAULT_KINDS] = {
#define NAME(name, text) text,
        ACS_FAULT_TABLE(NAME)
#undef NAME
    };
    char *list = c->options.fault_kinds;
    if (s->fault_kinds && strcmp(s->fault_kinds, "any") != 0)
        snprintf(list, sizeof c->options.fault_kinds, "%s", s->fault_kinds);
    if (s->fault_kinds && strcmp(s->fault_kinds, "any") == 0) {
        *list = 0;
        for (int kind = 0; kind < ACS_FAULT_KINDS; kind++)
            if (dice_percent(kind == ACS_FAULT_METHOD ? &later : d, kind < ACS_FAULT_EVENT ? 70 : 25))
                add_kind(list, sizeof c->options.fault_kinds, names[kind]);
    }
    c->options.watchdog_s = dice_percent(d, 50);
    c->may_lose = strstr(list, "event") || strstr(list, "lost") || strstr(list, "endless");
}

static void choose_modes(random_config *c, const settings *s, dice *d)
{
    c->options.serial = s->serial;
    c->options.disable = s->disable;
    c->options.check = s->check || dice_percent(d, 12) ? ACS_CHECK_OVERLAP : ACS_CHECK_OFF;
    c->options.check = s->footprints ? ACS_CHECK_ALL : c->options.check;
    c->failing = dice_percent(d, 40);
    dice later = {c->seed ^ 0x9d3f1c6b7a250e8fu}; /* of its own: seeds keep their meaning */
    c->shares = s->shares || dice_percent(&later, 15);
    c->variants = s->variants || dice_percent(&later, 10);
    if (s->backend == ACS_BACKEND_SIM || c->gpu)
        c->options.faults = s->faults >= 0 ? s->faults : 0;
    if (s->backend == ACS_BACKEND_SIM && c->options.faults)
        choose_faults(c, s, d);
    if (c->gpu) /* a double of the driver knows two kinds: refusals of all work for streams, and this */
        c->may_lose = s->fault_kinds && strcmp(s->fault_kinds, "lost") == 0;
    /* The checker judges the ordinary scheduler: the modes that run one op at a time send nothing. */
    bool checked = dice_percent(d, 25);
    c->checker = checked && !s->trace && !c->gpu && !s->serial && !s->disable && !s->footprints;
}

/* Failures of blocks that move are not those of blocks that stay: test_memory_lives knows them. */
static void choose_devices(random_config *c, const settings *s)
{
    dice d = {c->seed ^ 0x3c79ac492ba7b653u};
    c->options.devices = s->devices ? s->devices : PICK(&d, 2, 2, 3, 4, 5, 8);
    if (s->devices == 0 && s->backend == ACS_BACKEND_CUDA)
        c->options.devices_per_gpu = 8;
    c->options.policy = (int32_t)dice_below(&d, ACS_POLICY_COUNT);
    c->options.pool = ACS_POOL_ON;
    c->relocatable = !c->failing && !c->options.faults && dice_percent(&d, 75);
    c->checker = c->checker && !c->relocatable; /* which knows the program's ops alone */
}

/* Blocks that move need their contents: of all faults those remain after which an op is done all the same. */
static void choose_lazy(random_config *c)
{
    static const char *const harmful[] = {"launch", "copy", "memory", "event", "lost", "endless"};
    dice d = {c->seed ^ 0x94d049bb133111ebu};
    for (size_t i = 0; i < sizeof harmful / sizeof *harmful && c->options.faults; i++)
        if (strstr(c->options.fault_kinds, harmful[i]))
            c->options.faults = 0;
    c->lazy = c->relocatable = true;
    c->failing = c->may_lose = c->checker = false;
    c->options.pool = ACS_POOL_ON;
    c->options.rename = c->options.devices == 1 ? PICK(&d, 0, -1, 10000) : 0;
    c->tight = dice_percent(&d, 50);
}

static void choose_config(random_config *c, const settings *s, uint64_t seed)
{
    dice d = {seed ^ 0x51ed270b0a1f39c1u};
    memset(c, 0, sizeof *c);
    acs_options_init(&c->options, sizeof c->options);
    c->seed = seed;
    c->verbose = s->verbose;
    c->gpu = s->backend == ACS_BACKEND_CUDA;
    c->options.backend = s->backend;
    c->options.sim_order = s->by_time ? ACS_SIM_ORDER_TIME : c->options.sim_order;
    c->options.window = s->window >= 0 ? s->window : PICK(&d, 1, 2, 3, 8, 32, 256, 4096);
    c->options.fifo = PICK(&d, 2, 4, 16, 64, 1024);
    c->options.streams = PICK(&d, 1, 2, 3, 4, 8, 8, 16, 64);
    c->options.batch = PICK(&d, 1, 2, 7, 16, 16, 64);
    c->options.workers = s->workers >= 0 ? s->workers : PICK(&d, 0, 0, 1, 1, 2, 3, 5, 8);
    c->options.executors = PICK(&d, 1, 2, 3, 4);
    c->options.issuers = s->issuers >= 0 ? s->issuers : (int64_t)(seed % 7) - 3; /* the other choices stay as they were */
    c->options.issuers = c->options.issuers < 0 ? 0 : c->options.issuers;
    c->options.wait = s->wait >= 0 ? (int32_t)s->wait : (int32_t)PICK(&d, ACS_WAIT_GPU, ACS_WAIT_GPU, ACS_WAIT_HOST);
    c->options.spin_us = PICK(&d, 0, 0, 5, 50);
    c->options.seed = (int64_t)(seed & 0x7fffffff);
    if (s->order >= 0)
        c->options.seed = s->order;
    c->trace = s->trace;
    if (!s->trace)
        c->options.log = ACS_LOG_OFF;
    choose_threads(c, s, &d);
    choose_modes(c, s, &d);
    c->ops = 1 + dice_below(&d, dice_percent(&d, 70) ? 60 : s->ops);
    if (c->ops > s->ops)
        c->ops = s->ops;
    c->slots_first = 1 + dice_below(&d, (uint32_t)c->options.streams);
    c->slots_deep = (uint32_t)PICK(&d, 1, 12);
    c->slots_eager = dice_percent(&d, 50);
    if (dice_percent(&d, 25)) {
        c->joins = 8 + dice_below(&d, 40);
        c->edges = 64 + dice_below(&d, 200);
        c->marks = 1u << dice_below(&d, 4);
    }
    c->crowded = dice_percent(&d, 15);
    if (c->crowded && s->window < 0)
        c->options.window = PICK(&d, 16, 64, 256, 4096);
    dice later = {seed ^ 0x1b873593cc9e2d51u}; /* seeds keep their meaning without it */
    c->dense = s->dense || dice_percent(&later, 20);
    c->decides = s->decide;
    if (c->dense) {
        c->options.window = s->window >= 0 ? s->window : PICK(&later, 32, 128, 1024);
        c->options.fifo = PICK(&later, 16, 64, 1024);
        c->ahead = (uint32_t)PICK(&later, 0, 8, 50, 200);
    }
    c->options.issue = (int32_t)PICK(&d, ACS_ISSUE_AUTO, ACS_ISSUE_AUTO, ACS_ISSUE_AUTO, ACS_ISSUE_LAUNCH,
                                     ACS_ISSUE_REPLAY, ACS_ISSUE_REPLAY, ACS_ISSUE_RESIDENT);
    if (s->issue >= 0)
        c->options.issue = (int32_t)s->issue;
    c->options.graph_nodes = PICK(&d, 64, 200, 1000, 16384);
    c->options.pool = (int32_t)PICK(&later, ACS_POOL_OFF, ACS_POOL_ON, ACS_POOL_ON);
    c->options.memory_slack = PICK(&later, 0, 0, 1000, 10000, 1 << 20);
    c->options.repeats = passing_automatic(c) ? ACS_REPEATS_AUTO : ACS_REPEATS_NAMED;
    if (s->devices != 1)
        choose_devices(c, s);
    if (s->lazy)
        choose_lazy(c);
}

static const char *const issue_names[ACS_ISSUE_COUNT] = {"auto", "launch", "replay", "resident"};

static void describe(char *text, size_t bytes, const random_config *c)
{
    const acs_options *o = &c->options;
    snprintf(text, bytes,
             "seed %" PRIu64 ": %u steps, %u threads%s%s%s%s%s, backend %d, window %" PRId64 ", fifo %" PRId64
             ", streams %" PRId64 " (first %u, deep %u%s), joins %u, edges %u, marks %u (0: as usual), batch %" PRId64
             ", workers %" PRId64 ", issuers %" PRId64 ", executors %" PRId64 ", wait %s, spin %" PRId64
             ", serial %d, disable %d, check %d, faults %" PRId64 " of %s, watchdog %" PRId64
             ", issue %s, kept nodes %" PRId64 ", pool %d, slack %" PRId64 ", %" PRId64 " devices%s%s"
             ", policy %d, rename %" PRId64,
             c->seed, c->ops, c->threads, c->baton ? " with a baton" : "", c->failing ? ", failing" : "",
             c->crowded ? ", crowded" : "", c->dense ? ", dense" : "", c->checker ? ", checked" : "", o->backend,
             o->window, o->fifo, o->streams, c->slots_first, c->slots_deep, c->slots_eager ? ", eager" : "", c->joins,
             c->edges, c->marks, o->batch, o->workers, o->issuers, o->executors, o->wait == ACS_WAIT_HOST ? "host" : "gpu",
             o->spin_us, o->serial, o->disable, o->check, o->faults, o->fault_kinds, o->watchdog_s,
             issue_names[o->issue], o->graph_nodes, o->pool, o->memory_slack, o->devices,
             c->lazy          ? ", lazy"
             : c->relocatable ? ", relocatable"
                              : "",
             c->tight ? ", tight" : "", o->policy, o->rename);
}

/* ----------------------------------------------------------------------------------------------------- the programs */

/* Generate, run and judge. */
static bool run_config(const random_config *config, verdict *v, random_totals *totals, bool dump)
{
    program *p = program_generate(config);
    if (config->drop)
        program_drop(p, config->drop, config->ops);
    program_run(p, v, totals);
    if (!v->failed && p->lost.status != ACS_OK)
        program_verify_lost(p, v);
    else if (!v->failed)
        program_verify(p, v, totals);
    if (v->failed && dump)
        program_dump(p);
    program_free(p);
    return !v->failed;
}

static bool try_config(void *user, const random_config *config)
{
    random_totals ignored = {0};
    verdict v = {0};
    (void)user;
    return run_config(config, &v, &ignored, false);
}

/* "3,7-9" of bytes; false: it is no such list of steps. */
static bool parse_steps(const char *list, unsigned char *set, uint32_t count)
{
    for (char *end; *list; list = end) {
        unsigned long first = strtoul(list, &end, 10), last = first;
        if (end == list)
            return false;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        for (unsigned long i = first; i <= last && i < count; i++)
            set[i] = 1;
        if (*end && *end++ != ',')
            return false;
    }
    return true;
}

static void print_steps(const unsigned char *set, uint32_t count)
{
    const char *comma = "";
    for (uint32_t i = 0; i < count; i++) {
        uint32_t last = i;
        if (!set[i])
            continue;
        while (last + 1 < count && set[last + 1])
            last++;
        fprintf(stderr, last > i ? "%s%u-%u" : "%s%u", comma, i, last);
        comma = ",";
        i = last;
    }
}

/* A failure was found: make the program small, show it, and how to run it again. */
static void shrink_and_show(const settings *s, random_config *config)
{
    random_totals ignored = {0};
    verdict v = {0};
    if (!config->drop)
        config->drop = calloc(config->ops, 1);
    if (!config->drop)
        return;
    shrink(config, try_config, NULL);
    fprintf(stderr, "smallest that fails:\n");
    (void)run_config(config, &v, &ignored, true);
    fprintf(stderr, "%s\n  replay: %s --programs 1 --seed %" PRIu64 "%s --order %" PRId64 " --drop ", v.text,
            program_invocation_short_name, config->seed, s->replay, config->options.seed);
    print_steps(config->drop, config->ops);
    fputc('\n', stderr);
}

static bool run_one(const settings *s, uint64_t seed, random_totals *totals)
{
    random_config config;
    verdict v = {0};
    choose_config(&config, s, seed);
    config.drop = s->drop ? calloc(config.ops, 1) : NULL;
    if (s->drop && config.drop && !parse_steps(s->drop, config.drop, config.ops)) {
        fprintf(stderr, "test_random: --drop: '%s' is not a list of steps such as 3,7-9\n", s->drop);
        exit(2);
    }
    describe(g_current, sizeof g_current - 100, &config);
    if (s->verbose || s->trace)
        fprintf(stderr, "%s\n", g_current);
    strcat(g_current, "\nno end after the time limit: a hang\n");
    alarm(s->hang);
    run_config(&config, &v, totals, s->verbose);
    alarm(0);
    if (v.failed) {
        describe(g_current, sizeof g_current, &config);
        fprintf(stderr, "FAILED: %s\n  %s\n  replay: %s --programs 1 --seed %" PRIu64 "%s\n", v.text, g_current,
                program_invocation_short_name, seed, s->replay);
        if (s->shrink)
            shrink_and_show(s, &config);
    }
    free(config.drop);
    return !v.failed;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void report(const random_totals *t, double seconds)
{
    printf("%" PRIu64 " programs, %" PRIu64 " ops in %.1f s: %" PRIu64 " failed, %" PRIu64 " skipped, %" PRIu64
           " ranges read; edges %" PRIu64 ", joins %" PRIu64 ", same slot %" PRIu64 ", waits sent %" PRIu64
           ", implied %" PRIu64
           ", complete %" PRIu64 ", callers waited %" PRIu64 ", barriers %" PRIu64 "; checked %" PRIu64 " runs, %" PRIu64
           " pairs, %" PRIu64 " waits needed, of them %" PRIu64 " on late marks, %" PRIu64 " stale; %" PRIu64
           " programs on more than 4 slots, %" PRIu64 " copies between devices, %" PRIu64 " bytes spilled\n",
           t->programs, t->ops, seconds, t->failed, t->skipped, t->ranges, t->edges, t->joins, t->same_slot, t->waits_sent,
           t->waits_implied, t->waits_complete, t->caller_waits, t->barriers, t->checked, t->checked_pairs,
           t->checked_waits, t->late_marks, t->stale_waits, t->many_slots, t->transfers, t->spilled);
    if (t->bundles + t->bundles_refused)
        printf("bundles: %" PRIu64 ", refused %" PRIu64 "; kernels by launch %" PRIu64 " replay %" PRIu64
               " resident %" PRIu64 "\n", t->bundles, t->bundles_refused,
               t->issued_by[ACS_ISSUE_LAUNCH], t->issued_by[ACS_ISSUE_REPLAY], t->issued_by[ACS_ISSUE_RESIDENT]);
    if (t->replays)
        printf("repeats: %" PRIu64 " kernels in %" PRIu64 " replays\n", t->replayed, t->replays);
    if (t->variants + t->trials)
        printf("variants: %" PRIu64 " kernels had a version picked, %" PRIu64 " were timed\n", t->variants, t->trials);
    if (t->shares + t->shares_ignored)
        printf("shares: %" PRIu64 " kernels on a part of the GPU, %" PRIu64 " had all of it\n", t->shares,
               t->shares_ignored);
    if (t->not_run)
        printf("decided: %" PRIu64 " ops did not run\n", t->not_run);
    if (t->copies_as_kernels)
        printf("copies and fills as kernels: %" PRIu64 ", library calls: %" PRIu64 "\n", t->copies_as_kernels,
               t->calls_as_kernels);
    uint64_t injected = 0;
    for (int kind = 0; kind < ACS_FAULT_KINDS; kind++)
        injected += t->faults[kind];
    if (t->lost)
        printf("%" PRIu64 " programs lost their device\n", t->lost);
    if (!injected)
        return;
#define COUNT(name, text) printf(" %s %" PRIu64, text, t->faults[ACS_FAULT_##name]);
    printf("faults injected:");
    ACS_FAULT_TABLE(COUNT)
#undef COUNT
    printf("\n");
}

/* ------------------------------------------------------------------------------------------------- the command line */

static int usage(const char *bad)
{
    fprintf(stderr,
            "test_random: bad argument '%s'\n"
            "  --programs N   how many (default 200)\n"
            "  --time S       or for how many seconds\n"
            "  --hang S       a program that takes longer hangs (default 1800)\n"
            "  --seed S       the first program's seed; the next have S + 1, S + 2, ...\n"
            "  --backend B    host, sim or cuda (default host)\n"
            "  --ops N        most steps of a program (default 300)\n"
            "  --threads      always several producing threads\n"
            "  --workers N, --issuers N, --window N, --wait gpu|host   instead of the seed's choice\n"
            "  --issue I      auto, launch, replay, layers, gpu or resident, instead of the seed's choice\n"
            "  --devices N    so many, 2 to 8 by the seed if 0 (default 1); cuda: with 0 on as many GPUs as there are\n"
            "  --faults N     sim, and cuda without a GPU: per mille of calls that fail\n"
            "  --fault-kinds LIST   sim: as ACS_FAULT_KINDS, or any (default launch,copy,bounce); cuda without a GPU: lost\n"
            "  --trace        each step of the runs, as they happen (with ACS_LOG=debug the simulated GPU's too)\n"
            "  --shrink       of a program that fails find a small one that does\n"
            "  --drop LIST    without these steps, such as 3,7-9; --order S: sim: another order of the same program\n"
            "  --lazy         blocks move, some are addresses alone, and memory may be short\n"
            "  --dense        all programs have mostly kernels, which recur, and callers that run ahead\n"
            "  --decide       all programs have ops which words in memory switch off\n"
            "  --shares       all programs have launches that may take a part of the GPU only\n"
            "  --variants     all programs have kernels of several versions\n"
            "  --serial, --disable, --check   with these options on\n"
            "  --footprints   with ACS_CHECK=all, which should find nothing\n"
            "  --by-time      sim: with ACS_SIM_ORDER=time\n"
            "  --verbose      one line per program, and all steps of one that failed\n",
            bad);
    return 2;
}

static int parse_backend(const char *name)
{
    if (name && strcmp(name, "sim") == 0)
        return ACS_BACKEND_SIM;
    if (name && strcmp(name, "cuda") == 0)
        return ACS_BACKEND_CUDA;
    return name && strcmp(name, "host") == 0 ? ACS_BACKEND_HOST : -1;
}

/* -1: none of the names. */
static int64_t parse_issue(const char *name)
{
    for (int i = 0; i < ACS_ISSUE_COUNT; i++)
        if (strcmp(name, issue_names[i]) == 0)
            return i;
    return -1;
}

static bool parse_flag(settings *s, const char *name)
{
    static const struct {
        const char *name;
        size_t field;
    } flags[] = {{"--threads", offsetof(settings, threads)}, {"--serial", offsetof(settings, serial)},
                 {"--disable", offsetof(settings, disable)}, {"--check", offsetof(settings, check)},
                 {"--footprints", offsetof(settings, footprints)},
                 {"--verbose", offsetof(settings, verbose)}, {"--trace", offsetof(settings, trace)},
                 {"--shrink", offsetof(settings, shrink)},   {"--dense", offsetof(settings, dense)},
                 {"--decide", offsetof(settings, decide)},   {"--shares", offsetof(settings, shares)},
                 {"--variants", offsetof(settings, variants)}, {"--by-time", offsetof(settings, by_time)},
                 {"--lazy", offsetof(settings, lazy)}};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (strcmp(name, flags[i].name) == 0)
            return *(bool *)((char *)s + flags[i].field) = true;
    return false;
}

static bool parse_value(settings *s, const char *name, const char *value)
{
    char *end = NULL;
    double number = value ? strtod(value, &end) : 0;
    bool is_number = value && *value && !*end && number >= 0;
    if (strcmp(name, "--backend") == 0)
        return (s->backend = parse_backend(value)) >= 0;
    if (strcmp(name, "--wait") == 0 && value) {
        s->wait = strcmp(value, "host") == 0 ? ACS_WAIT_HOST : ACS_WAIT_GPU;
        return strcmp(value, "host") == 0 || strcmp(value, "gpu") == 0;
    }
    if (strcmp(name, "--issue") == 0 && value)
        return (s->issue = parse_issue(value)) >= 0;
    if (strcmp(name, "--fault-kinds") == 0 && value)
        return (s->fault_kinds = value) != NULL;
    if (strcmp(name, "--drop") == 0 && value)
        return (s->drop = value) != NULL;
    if (!is_number)
        return false;
    if (strcmp(name, "--order") == 0)
        return (s->order = (int64_t)number) >= 0;
    if (strcmp(name, "--programs") == 0)
        s->programs = (uint64_t)number;
    else if (strcmp(name, "--seed") == 0)
        s->seed = strtoull(value, NULL, 10);
    else if (strcmp(name, "--ops") == 0)
        s->ops = number < 1 ? 1 : (uint32_t)number;
    else if (strcmp(name, "--time") == 0)
        s->seconds = number;
    else if (strcmp(name, "--hang") == 0)
        s->hang = number < 1 ? 1 : (unsigned)number;
    else if (strcmp(name, "--workers") == 0)
        s->workers = (int64_t)number;
    else if (strcmp(name, "--issuers") == 0)
        s->issuers = (int64_t)number;
    else if (strcmp(name, "--window") == 0)
        s->window = (int64_t)number;
    else if (strcmp(name, "--devices") == 0)
        s->devices = (int64_t)number;
    else if (strcmp(name, "--faults") == 0)
        s->faults = (int64_t)number;
    else
        return false;
    return true;
}

/* What a replay must repeat: everything but the number of programs, the time and the first seed. */
static void keep_for_replay(settings *s, const char *name, const char *value)
{
    if (strcmp(name, "--programs") == 0 || strcmp(name, "--seed") == 0 || strcmp(name, "--time") == 0 ||
        strcmp(name, "--hang") == 0 || strcmp(name, "--trace") == 0 ||
        strcmp(name, "--shrink") == 0 || strcmp(name, "--verbose") == 0)
        return;
    size_t used = strlen(s->replay);
    snprintf(s->replay + used, sizeof s->replay - used, " %s%s%s", name, value ? " " : "", value ? value : "");
}

/* Whether the backend is there at all. */
static bool backend_opens(int backend)
{
    acs_options options;
    acs_context *context = NULL;
    acs_options_init(&options, sizeof options);
    options.backend = backend;
    if (acs_open(&options, &context) != ACS_OK)
        return false;
    acs_close(context);
    return true;
}

int main(int argc, char **argv); /* acs-sim compiles it under another name, which wants a declaration */

int main(int argc, char **argv)
{
    settings s = {.programs = 200, .seed = 1, .ops = 300, .backend = ACS_BACKEND_HOST,
                  .workers = -1, .issuers = -1, .wait = -1,
                  .faults = -1, .window = -1, .issue = -1, .order = -1, .devices = 1, .hang = HANG_SECONDS};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (parse_flag(&s, argv[i]))
            keep_for_replay(&s, argv[i], NULL);
        else if (parse_value(&s, argv[i], value))
            keep_for_replay(&s, argv[i++], value);
        else
            return usage(argv[i]);
    }
    if (s.backend == ACS_BACKEND_CUDA && !backend_opens(s.backend)) {
        printf("skipped: no CUDA device answers\n");
        return SKIPPED;
    }
    /* Programs are short and alike: memory stays in the process from one to the next. */
    mallopt(M_MMAP_THRESHOLD, 64 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    random_totals totals = {0};
    double start = now();
    signal(SIGALRM, on_alarm);
    note_crashes(SIGSEGV);
    note_crashes(SIGABRT);
    for (uint64_t i = 0; s.seconds > 0 ? now() - start < s.seconds : i < s.programs; i++)
        if (!run_one(&s, s.seed + i, &totals))
            return 1;
    report(&totals, now() - start);
    return 0;
}
