/* Rules of who may take part, against processes of users that nobody has to be. */
#include "agent/access.h"
#include "cmocka_all.h"

#include <string.h>

enum { ALICE = 70001, BOB = 70002, STAFF = 80001 };

static const struct local_peer root = {.uid = 0, .gid = 0};
static const struct local_peer alice = {.uid = ALICE, .gid = ALICE};
static const struct local_peer bob = {.uid = BOB, .gid = STAFF};

/* Groups beyond a process's own are asked of the connection, which is none here: its descriptor
 * would be asked for, so no rule below names a group that one of them lacks. */
static bool may(const struct access *access, const struct local_peer *peer, const char *election)
{
    return access_allows(access, election, NULL, peer);
}

static struct access *rules(const char *const *texts)
{
    struct access *access = NULL;
    struct baton_error error;

    for (; *texts; texts++) {
        assert_int_equal(access_add(&access, *texts, &error), BATON_OK);
    }
    return access;
}

static void without_a_rule_everybody_may(void **state)
{
    assert_true(may(NULL, &alice, "report"));
}

static void users_and_groups_are_told_apart(void **state)
{
    struct access *access = rules((const char *const[]){"report=70001,@80001", NULL});
    struct access *user = rules((const char *const[]){"report=80001", NULL});

    assert_true(may(access, &alice, "report"));
    assert_true(may(access, &bob, "report"));
    assert_false(may(user, &bob, "report"));
    assert_true(may(user, &root, "report"));
    assert_true(may(user, &bob, "another"));
    access_free(access);
    access_free(user);
}

static void the_first_rule_that_fits_decides(void **state)
{
    struct access *access =
        rules((const char *const[]){"db-main=70001", "db-*=70002", "a=b=70001", "*=", NULL});

    assert_true(may(access, &alice, "db-main"));
    assert_false(may(access, &bob, "db-main"));
    assert_false(may(access, &alice, "db-1"));
    assert_true(may(access, &bob, "db-1"));
    assert_true(may(access, &alice, "a=b"));
    assert_false(may(access, &bob, "report"));
    assert_true(may(access, &root, "report"));
    access_free(access);
}

static void what_is_no_rule_is_refused_and_changes_nothing(void **state)
{
    static const char *const wrong[] = {"",
                                        "report",
                                        "=70001",
                                        "report=no-such-user-anywhere",
                                        "report=@no-such-group-anywhere",
                                        "report=70001,-1",
                                        "report=@",
                                        "report=4294967295",
                                        "report=70001x"};
    struct access *access = rules((const char *const[]){"report=root", NULL});
    struct baton_error error;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(access_add(&access, wrong[i], &error), BATON_EINVAL);
        assert_non_null(strstr(error.message, wrong[i]));
    }
    assert_false(may(access, &alice, "report"));
    assert_true(may(access, &alice, "another"));
    access_free(access);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_rule_everybody_may),
        cmocka_unit_test(users_and_groups_are_told_apart),
        cmocka_unit_test(the_first_rule_that_fits_decides),
        cmocka_unit_test(what_is_no_rule_is_refused_and_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
