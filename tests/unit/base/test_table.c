/* What all hash tables of Baton rely upon: cmake/Warnings.cmake. */
#include "cmocka_all.h"

#include <stdlib.h>

static int allocations;

static void *allocate(size_t bytes)
{
    return allocations-- > 0 ? malloc(bytes) : NULL;
}

#define uthash_malloc(bytes) allocate(bytes)
#include <uthash.h>

struct element {
    int number;
    UT_hash_handle hh;
};

static void without_memory_an_element_has_no_table_and_the_process_goes_on(void **state)
{
    struct element *all = NULL, one = {.number = 1};

    for (int i = 0; i < 2; i++) { /* a table and its buckets */
        allocations = i;
        HASH_ADD_INT(all, number, &one);
        assert_null(one.hh.tbl);
        assert_null(all);
    }
    allocations = 2;
    HASH_ADD_INT(all, number, &one);
    assert_non_null(one.hh.tbl);
    HASH_CLEAR(hh, all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_an_element_has_no_table_and_the_process_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
