/* Smaller programs from one that fails. */
#ifndef RANDOM_SHRINK_H
#define RANDOM_SHRINK_H

#include "program.h"

/*
 * Leave steps out, and with them what makes no sense without: other steps on a block never allocated, waits for an op
 * never made.
 */
void program_drop(program *p, const unsigned char *dropped, uint32_t count);

/* Run the program of this configuration: does it pass? */
typedef bool (*try_fn)(void *user, const random_config *config);
/* config->drop (config->ops bytes) and config->options.seed become those of a small program that fails. */
void shrink(random_config *config, try_fn try, void *user);

#endif
