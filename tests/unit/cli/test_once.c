/* For whom the node that has run CMD of `baton once` waits before it ends. */
#include "cli/once.c" /* NOLINT(bugprone-suspicious-include) */
#include "cmocka_all.h"

static struct once once;

static int set_up(void **state)
{
    once = (struct once){.linger_ms = LINGER_MS};
    return 0;
}

static bool has(const char *name, bool is_alive)
{
    struct baton_member member = {.is_alive = is_alive};

    (void)snprintf(member.name, sizeof(member.name), "%s", name);
    return has_seen(&once, &member);
}

static void it_waits_for_a_member_until_that_has_seen_the_result(void **state)
{
    assert_false(has("b", true));
    note_seen(&once, "b");
    assert_true(has("b", true));
    assert_false(has("c", true));
    once.linger_ms = 0;
    assert_false(has("c", true));
    assert_true(has_seen(&once, &(struct baton_member){.name = "a", .is_self = true}));
}

static void it_waits_for_a_silent_member_for_a_while(void **state)
{
    assert_false(has("b", false));
    once.linger_ms = LINGER_MS - ABSENT_MS + LOOK_MS;
    assert_false(has("b", false));
    once.linger_ms -= LOOK_MS;
    assert_true(has("b", false));
    assert_false(has("b", true)); /* it is there again, and has not seen it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(it_waits_for_a_member_until_that_has_seen_the_result, set_up),
        cmocka_unit_test_setup(it_waits_for_a_silent_member_for_a_while, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
