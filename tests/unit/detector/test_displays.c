#include "cmocka_all.h"
#include "detector/displays.h"

#include <stdio.h>
#include <string.h>

static struct displays displays;

static int tear_down(void **state)
{
    (void)state;
    displays_fini(&displays);
    return 0;
}

static int set_stage(const char *name, enum stage stage, bool *ret_is_other)
{
    struct baton_error error = {0};
    int rc = displays_set_stage(&displays, name, stage, ret_is_other, &error);

    assert_true(rc == 0 || strstr(error.message, name) != NULL);
    return rc;
}

static void what_it_is_in_already_is_no_other(void **state)
{
    const struct session_id session = {.is_set = true, .id = 7};
    struct baton_error error;
    bool is_other;

    (void)state;
    assert_int_equal(displays_set_session(&displays, "d", session, &is_other, &error), 0);
    assert_true(is_other);
    assert_int_equal(displays_set_session(&displays, "d", session, &is_other, &error), 0);
    assert_false(is_other);
    assert_int_equal(set_stage("d", STAGE_WELCOME, &is_other), 0);
    assert_true(is_other);
    assert_int_equal(set_stage("d", STAGE_WELCOME, &is_other), 0);
    assert_false(is_other);
    assert_int_equal(displays_of(&displays, "d;c")->session.id, 7);
    assert_int_equal(displays_of(&displays, "d;c")->stage, STAGE_WELCOME);
    assert_null(displays_of(&displays, "other;c"));
}

static void one_in_neither_takes_no_room(void **state)
{
    struct baton_error error;
    bool is_other;
    char name[16];

    (void)state;
    for (int i = 0; i < DISPLAYS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "d%d", i);
        assert_int_equal(set_stage(name, STAGE_WELCOME, &is_other), 0);
    }
    assert_int_equal(set_stage("one-more", STAGE_WELCOME, &is_other), BATON_ETOOBIG);
    assert_int_equal(displays_set_session(&displays, "d5", (struct session_id){.is_set = true},
                                          &is_other, &error),
                     0);
    assert_int_equal(set_stage("d5", STAGE_NONE, &is_other), 0);
    assert_int_equal(set_stage("one-more", STAGE_WELCOME, &is_other), BATON_ETOOBIG);
    assert_int_equal(set_stage("d6", STAGE_NONE, &is_other), 0);
    assert_null(displays_of(&displays, "d6;c"));
    assert_int_equal(set_stage("one-more", STAGE_WELCOME, &is_other), 0);
    assert_non_null(displays_of(&displays, "one-more;c"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(what_it_is_in_already_is_no_other, tear_down),
        cmocka_unit_test_teardown(one_in_neither_takes_no_room, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
