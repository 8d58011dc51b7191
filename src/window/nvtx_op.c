/*
 * Ranges of single ops (nvtx_op.h): their names, categories and payloads. Called by the core and the backends around
 * the issue of an op, and by calls that find the FIFO full, while a tool takes ranges. Keeps nothing: base/nvtx.c has
 * the messages.
 */
#include "window/nvtx_op.h"

#include <stdio.h>
#include <string.h>

/* What a message is made of. The call site is in static storage; the name need not be. */
typedef struct op_text {
    const char *before, *name;
    const acs_site *site; /* or NULL */
} op_text;

/* Write "name (file.c:42)". */
static void write_op(const void *contents, char *text)
{
    const op_text *op = contents;
    const char *file = op->site ? op->site->file : NULL, *slash = file ? strrchr(file, '/') : NULL;
    if (!file)
        (void)snprintf(text, ACS_NVTX_TEXT_BYTES, "%s%s", op->before, op->name);
    else
        (void)snprintf(text, ACS_NVTX_TEXT_BYTES, "%s%s (%s:%d)", op->before, op->name, slash ? slash + 1 : file,
                       op->site->line);
}

static uint64_t key_of(const op_text *op)
{
    const uint64_t key = acs_nvtx_key_text(acs_nvtx_key_text(0, op->before), op->name);
    return acs_nvtx_key(key, (uint64_t)(uintptr_t)op->site);
}

/* The category of an op, by what the program asked for. 0: it has no range. */
static uint32_t range_kind(const acs_record *op)
{
    static const uint8_t kinds[ACS_KIND_COUNT] = {
        [ACS_KIND_KERNEL] = ACS_NVTX_KERNEL, [ACS_KIND_MEMCPY] = ACS_NVTX_COPY, [ACS_KIND_MEMSET] = ACS_NVTX_FILL,
        [ACS_KIND_HOST] = ACS_NVTX_HOST,     [ACS_KIND_CALL] = ACS_NVTX_CALL,   [ACS_KIND_FREE] = ACS_NVTX_FREE,
        [ACS_KIND_CALLBACK] = ACS_NVTX_HOST};
    return kinds[op->kind == ACS_KIND_KERNEL ? op->asked : op->kind];
}

bool acs_nvtx_op_push(const acs_record *op, int slot)
{
    const uint32_t kind = range_kind(op);
    const op_text text = {"", acs_record_name(op), op->site};
    acs_nvtx_range range = {.kind = (acs_nvtx_kind)kind, .key = key_of(&text), .write = write_op, .contents = &text};
    if (!kind)
        return false;
    range.payload.launch = (acs_nvtx_launch){.op = op->seq, .slot = slot, .device = op->device};
    if (op->kind == ACS_KIND_KERNEL) {
        range.payload.launch.grid = op->grid;
        range.payload.launch.block = op->u.launch.block;
        range.payload.launch.shared_bytes = op->u.launch.shared_bytes;
    }
    acs_nvtx_push(&range);
    return true;
}

void acs_nvtx_op_push_full(acs_label label, acs_op op)
{
    const op_text text = {"full FIFO: ", acs_label_name(label), label.site};
    const acs_nvtx_range range = {
        .kind = ACS_NVTX_WAIT, .key = key_of(&text), .write = write_op, .contents = &text, .payload.op = op};
    acs_nvtx_push(&range);
}
