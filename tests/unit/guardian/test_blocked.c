/* A search that meets a process whose memory cannot be read for as long as it lives. No other test
 * may run meanwhile: its search would meet that process, too.
 */
#include "cmocka_all.h"
#include "guardian/victims.h"
#include "hider.h"
#include "lib/process.h"

#include <unistd.h>

static void a_stranger_that_blocks_its_readers_makes_nothing_certain(void **state)
{
    struct victims nobody = {.marker = "BATON_TEST_MARK=nobody's"};
    pid_t stranger = hider_start(&(struct hider){.how = "block", .before = 1});

    if (stranger == 0) {
        skip(); /* a file system of its own needs root here */
    }
    assert_false(victims_hunt(&nobody, 0));
    process_end(stranger);
    assert_true(victims_hunt(&nobody, PATIENCE_MS));
}

int main(int count, char *arguments[])
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stranger_that_blocks_its_readers_makes_nothing_certain),
    };

    if (hider_is_meant(count, arguments)) {
        return hider_main(arguments);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
