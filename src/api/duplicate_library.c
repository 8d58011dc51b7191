/*
 * Finds a second copy of the library in the process, such as a plugin with its own libacs.a, or libacs.so beside
 * libacs.a. Each copy would silently order only its own ops. So every copy carries an ELF note, and acs_open, the only
 * caller, counts the loaded objects that have it. Keeps no state, so an unloaded copy does not count. Never sees
 * objects in other namespaces of the loader (dlmopen).
 */
#include "api/duplicate_library.h"

#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Room for one file name in an error text that has to hold two and a sentence. */
enum { PATH_ROOM = 96 };

/*
 * The note: sizes of owner and description, type, owner, description. In assembly, since sanitizers pad variables.
 * Without a symbol, so that the linker cannot replace one copy's note by another's.
 */
__asm__(".pushsection .note.acs,\"a\",%note\n"
        "    .balign 4\n"
        "    .long 4, 4, 1\n"
        "    .asciz \"ACS\"\n"
        "    .long 0\n"
        "    .popsection\n");

static const struct {
    uint32_t owner_bytes, description_bytes, type;
    char owner[4];
    uint32_t description;
} g_note = {4, 4, 1, "ACS", 0};

struct search {
    unsigned count;
    char path[2][PATH_ROOM];
};

/* Looks at every word instead of walking the notes: linkers differ in the padding between notes of mixed alignment. */
static bool segment_has_note(const char *at, size_t bytes)
{
    for (; bytes >= sizeof g_note; at += 4, bytes -= 4)
        if (memcmp(at, &g_note, sizeof g_note) == 0)
            return true;
    return false;
}

static bool object_has_note(const struct dl_phdr_info *object)
{
    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &object->dlpi_phdr[i];
        const char *at = (const char *)(uintptr_t)(object->dlpi_addr + header->p_vaddr);
        if (header->p_type == PT_NOTE && segment_has_note(at, header->p_filesz))
            return true;
    }
    return false;
}

/* Copy a path; of a long one keep the end, which says more than the beginning. */
static void path_keep(char *to, const char *path)
{
    size_t length = strlen(path);
    if (length < PATH_ROOM)
        memcpy(to, path, length + 1);
    else
        (void)snprintf(to, PATH_ROOM, "...%s", path + length - (PATH_ROOM - 4));
}

/* The loader does not name the program itself; the kernel does. */
static void program_path(char *to)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length > 0)
        path[length] = 0;
    path_keep(to, length > 0 ? path : "the program");
}

/* Count an object with the note. Nonzero ends the iteration: two copies are enough to refuse. */
static int visit(struct dl_phdr_info *object, size_t size, void *user)
{
    struct search *found = user;
    (void)size;
    if (!object_has_note(object))
        return 0;
    if (object->dlpi_name && *object->dlpi_name)
        path_keep(found->path[found->count], object->dlpi_name);
    else
        program_path(found->path[found->count]);
    return ++found->count == 2;
}

acs_status acs_copies_check(void)
{
    struct search found = {0};
    (void)dl_iterate_phdr(visit, &found);
    if (ACS_LIKELY(found.count < 2))
        return ACS_OK;
    return ACS_FAIL(ACS_ERR_STATE, 0,
                    "two copies of ACS are loaded, in '%s' and in '%s': ops of one would not wait for ops of the other; "
                    "link both with libacs.so",
                    found.path[0], found.path[1]);
}
