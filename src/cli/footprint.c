#include "cli/footprint.h"

#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static void *address(const struct dl_phdr_info *object, ElfW(Addr) offset)
{
    return (void *)(object->dlpi_addr + offset); /* NOLINT(performance-no-int-to-ptr) */
}

/* Whether the loader changed the object's code: then its pages differ from the file. */
static bool has_text_relocations(const struct dl_phdr_info *object)
{
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];

        if (segment->p_type != PT_DYNAMIC) {
            continue;
        }
        for (const ElfW(Dyn) *entry = address(object, segment->p_vaddr); entry->d_tag != DT_NULL;
             entry++) {
            if (entry->d_tag == DT_TEXTREL ||
                (entry->d_tag == DT_FLAGS && entry->d_un.d_val & DF_TEXTREL)) {
                return true;
            }
        }
    }
    return false;
}

/* Drops whole pages of segments that were never writable: the file has the same content. Segments
 * with relocations are writable ones, even if the loader has made them read-only since. */
static int shed_object(struct dl_phdr_info *object, size_t size, void *userdata)
{
    uintptr_t page = *(const uintptr_t *)userdata;
    bool is_safe = !has_text_relocations(object);
    (void)size;

    for (int i = 0; is_safe && i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        uintptr_t begin = (object->dlpi_addr + segment->p_vaddr + page - 1) & ~(page - 1);
        uintptr_t end = (object->dlpi_addr + segment->p_vaddr + segment->p_filesz) & ~(page - 1);

        if (segment->p_type == PT_LOAD && !(segment->p_flags & PF_W) && begin < end) {
            /* The kernel's own object (vDSO) refuses this; ignored. */
            (void)madvise(address(object, begin - object->dlpi_addr), end - begin, MADV_DONTNEED);
        }
    }
    return 0;
}

void footprint_shed(void)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

    (void)dl_iterate_phdr(shed_object, &page);
}
