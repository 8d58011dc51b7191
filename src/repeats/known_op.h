/*
 * Known ops: copies of ops that the program queued in a repeat, with which its later calls are compared. A copy is one
 * block of memory and never changes. Used by the other files
 * of this folder; knows no context.
 */
#ifndef ACS_KNOWN_OP_H
#define ACS_KNOWN_OP_H

#include "window/record.h"

/*
 * Copy a filled record. NULL: no memory. Its argument bytes are those of the copied op; acs_known_op_matches does not
 * compare them.
 */
acs_record *acs_known_op_copy(const acs_record *op);
void acs_known_op_free(acs_record *op);
/*
 * A hash of what a search looks at first: function, and the first segment. Equal ops have equal tags.
 */
uint32_t acs_known_op_tag(const acs_record *op);
uint32_t acs_known_op_tag_of_launch(const acs_launch_params *params);
/* Whether an op is the known one but for its arguments and its grid's width: same kernel, block, call site, segments. */
bool acs_known_op_equals(const acs_record *known, const acs_record *op);
/* The same for a launch that has no record yet. The sizes of its arguments are as they were, too. */
bool acs_known_op_matches(const acs_record *known, const acs_launch_params *params);
/*
 * Copy the launch's, or an equal op's, arguments and grid into the record, a copy of the known op. Returns whether the
 * record had them already.
 */
bool acs_known_op_fill(acs_record *record, const acs_launch_params *params);
bool acs_known_op_take(acs_record *record, const acs_record *op);

#endif
