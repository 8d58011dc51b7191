/*
 * What a change would bring: the recorded ops, played by the library's own core on a simulated GPU, as they were and
 * with one thing changed. Each op takes the time that ops of its label take alone. Of the program's dependences the
 * direct ones are played. So leaving some out gives a bound of what is to be gained.
 */
#ifndef ACS_WHAT_IF_H
#define ACS_WHAT_IF_H

#include "report/analysis.h"

/* What is known of the context beside its ops. */
typedef struct acs_surroundings {
    const acs_options *options;
    uint64_t sms, sm_threads; /* of a device; 0: not known, or the ops ran on CPU threads */
    uint32_t devices;
    bool on_cpu, in_order; /* CPU threads ran the ops; ACS_SERIAL or ACS_DISABLE ran one after another */
} acs_surroundings;

typedef struct acs_play acs_play;

/* What is changed. All zero: nothing. */
typedef struct acs_play_change {
    int64_t window, streams, devices; /* 0: as they are */
    bool renamed;                     /* no op waits because it overwrites bytes (WAR, WAW) */
    bool no_waits;                    /* callers do not wait behind ops of the label `wait` */
    bool no_pair;                     /* ops of `down` do not depend on those of `up` by this conflict */
    uint32_t wait, up, down;
    uint8_t conflict; /* acs_conflict */
} acs_play_change;

/* What a user may set. */
typedef enum acs_play_setting {
    ACS_PLAY_AS_IT_IS,
    ACS_PLAY_WINDOW,
    ACS_PLAY_STREAMS,
    ACS_PLAY_RENAME,
    ACS_PLAY_DEVICES
} acs_play_setting;

/* A setting, and what it brought. Of a larger window, or more streams: the least with about all that there is to gain. */
typedef struct acs_played {
    acs_play_setting which;
    int64_t value;
    const char *name; /* "as it is" */
    char setting[64]; /* "ACS_WINDOW=1024"; "" */
    uint64_t ns;      /* simulated time of all played ops */
} acs_played;
enum { ACS_PLAYED_MOST = 8 };

/* The newest TUNE_REPORT_PLAYED ops are played. NULL: no memory. The analysis and the surroundings outlive it. */
acs_play *acs_play_create(const acs_analysis *analysis, const acs_surroundings *around);
void acs_play_destroy(acs_play *play);
/* The simulated time; 0: the ops could not be played. */
uint64_t acs_play_run(acs_play *play, const acs_play_change *change);
/* Play the settings that a user may change in this run. Returns the number of results; 0: the ops could not be played. */
uint32_t acs_play_settings(acs_play *play, acs_played played[ACS_PLAYED_MOST]);

#endif
