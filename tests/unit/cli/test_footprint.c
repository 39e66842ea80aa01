/* Unmapped pages come back with the same content. */
#include "cli/footprint.h"
#include "cmocka_all.h"

#include <link.h>
#include <stdio.h>
#include <string.h>

/* Addresses: the loader writes them, so their pages are not the file's. */
static const char *const relocated[] = {"one", "two", "three"};

static long resident_pages(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    long total = 0;
    long resident = 0;

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld %ld", &total, &resident), 2);
    fclose(file);
    return resident;
}

/* Reads a byte of each page of code and constants. */
static int touch(struct dl_phdr_info *object, size_t size, void *userdata)
{
    unsigned *sum = userdata;

    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        const volatile unsigned char *bytes =
            (const unsigned char *)(object->dlpi_addr + segment->p_vaddr);

        for (size_t at = 0; segment->p_type == PT_LOAD && segment->p_flags & PF_R &&
                            !(segment->p_flags & PF_W) && at < segment->p_filesz;
             at += 4096) {
            *sum = *sum * 31 + bytes[at];
        }
    }
    return 0;
}

static void pages_are_let_go_and_come_back(void **state)
{
    unsigned before = 0;
    unsigned after = 0;
    long resident;

    (void)dl_iterate_phdr(touch, &before);
    resident = resident_pages();
    footprint_shed();
    assert_true(resident_pages() < resident);
    (void)dl_iterate_phdr(touch, &after);
    assert_int_equal(before, after);
    assert_string_equal(relocated[2], "three");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_are_let_go_and_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
