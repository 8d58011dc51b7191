/*
 * The image of a context's memory, as the checks of one launch see it: each block of acs_malloc, memory that the program
 * has registered, and what else the launch names as written; with copies of their bytes in memory of the process. All ops of
 * the context have ended while it is used, and no other thread queues one.
 */
#ifndef ACS_CHECK_IMAGE_H
#define ACS_CHECK_IMAGE_H

#include "api/context.h"
#include "checks/scramble.h"
#include "checks/spans.h"

/* Which copy of the bytes. */
typedef enum acs_copy {
    ACS_COPY_BEFORE, /* as they were before the launch */
    ACS_COPY_AFTER,  /* as the launch has left them */
    ACS_COPY_GIVEN,  /* as a trial finds them */
    ACS_COPY_TRIAL,  /* as it leaves them */
    ACS_COPIES
} acs_copy;

typedef enum acs_memory_origin { ACS_ORIGIN_BLOCK, ACS_ORIGIN_REGISTERED, ACS_ORIGIN_NAMED } acs_memory_origin;

typedef struct acs_memory_range {
    uint64_t first, end;
    acs_memory_origin origin;
    const acs_site *site;  /* call of acs_malloc; NULL: not known */
    bool shared;           /* what the op does not write, threads of the program may touch by themselves: ACS_MEMORY_HOST */
    acs_op copied;         /* the latest copy */
    unsigned char *copies[ACS_COPIES];
} acs_memory_range;

/* Memory that the program registered: acs_check_register. */
typedef struct acs_registered {
    uint64_t first, end;
} acs_registered;

typedef struct acs_image {
    acs_context *context;
    acs_memory_range *list; /* rising, apart */
    uint32_t count, room;
    unsigned char *bytes; /* all copies, so many bytes */
    size_t byte_count;
    bool no_memory;
} acs_image;

/* Find the ranges, with room for copies. False: no memory. */
bool acs_image_find(acs_image *image, acs_context *context, const acs_registered *registered, size_t registered_count,
                    const acs_spans *spans);
void acs_image_free(acs_image *image);
/* The range with that address, or NULL. */
const acs_memory_range *acs_image_at(const acs_image *image, uint64_t address);
/* Copy all memory to a copy, and wait for it. False: an op failed. */
bool acs_image_load(acs_image *image, acs_copy to);
/* The same back to the memory; of shared ranges what the op writes. */
bool acs_image_store(acs_image *image, const acs_spans *spans, acs_copy from);

/* Bytes that are scrambled: a set of these. */
#define ACS_SCRAMBLE_UNNAMED (1 << 0) /* those that the op does not name */
#define ACS_SCRAMBLE_OUT (1 << 1)     /* those that it names as written, not as read */
#define ACS_SCRAMBLE_READ (1 << 2)    /* those that it names as read */
static inline int acs_scramble_set_of(uint8_t access)
{
    return access & ACS_READ ? ACS_SCRAMBLE_READ : access & ACS_WRITE ? ACS_SCRAMBLE_OUT : ACS_SCRAMBLE_UNNAMED;
}
/* What to scramble: of the bytes from address `first` up to `end` those of the set. */
typedef struct acs_scrambled {
    int set;
    acs_scramble_level level;
    uint64_t first, end;
} acs_scrambled;
/*
 * Make what a trial is given: the bytes from before the launch, with others in the place of these. In shared ranges that is
 * so of the bytes that the op writes; others are as they are now.
 */
void acs_image_scramble(const acs_image *image, const acs_spans *spans, const acs_scrambled *which);

#endif
