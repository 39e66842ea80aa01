#include "cli/print.h"

#include "cmocka_all.h"

#include <stdlib.h>

static void columns_fit_their_widest_cell_and_nothing_forges_a_line(void **state)
{
    static const char *const cells[] = {"NODE", "ROLE",      NULL,   "é",  "leader",
                                        NULL,   "long-name", "x\ny", NULL, NULL};
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    (void)state;
    print_table(file, cells);
    fclose(file);
    assert_string_equal(text, "NODE       ROLE\né          leader\nlong-name  x?y\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_fit_their_widest_cell_and_nothing_forges_a_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
