/* Whom a group without a leader lacks, also while its members change. */
#include "cmocka_all.h"
#include "provider/raft/node.h"

#include <string.h>

/* d comes, b and c go: until that is settled, each half needs a quorum of its own. */
static struct raft_member members[] = {
    {.id = 1, .name = "a", .address = "h:1", .weight = 1, .old_weight = 1},
    {.id = 2, .name = "b", .address = "h:2", .old_weight = 1, .is_leaving = true},
    {.id = 3, .name = "c", .address = "h:3", .old_weight = 1, .is_leaving = true},
    {.id = 4, .name = "d", .address = "h:4", .weight = 1},
};
static char text[256];

/* `userdata`: the names of those that are here. */
static bool is_here(const void *userdata, raft_id id)
{
    return strchr(userdata, "abcd"[id - 1]) != NULL;
}

static bool lacks(const char *here, size_t count, bool is_joint)
{
    const struct raft_configuration now = {
        .members = members, .count = count, .is_joint = is_joint};

    text[0] = '\0';
    return muster_lacks(text, sizeof(text), &now, is_here, here);
}

static void a_group_names_the_voters_that_do_not_answer(void **state)
{
    members[1].weight = members[2].weight = 1;
    assert_false(lacks("ab", 3, false));
    assert_true(lacks("a", 3, false));
    assert_string_equal(text, "1 of 3 votes is here, and 2 are needed; no answer from b at h:2, c "
                              "at h:3");
    members[1].weight = members[2].weight = 0;
}

static void a_change_of_the_members_needs_both_halves(void **state)
{
    assert_false(lacks("abd", 4, true));
    assert_true(lacks("ad", 4, true));
    assert_string_equal(text, "1 of 3 votes from before a change of the members is here, and 2 are "
                              "needed; no answer from b at h:2, c at h:3");
    assert_true(lacks("abc", 4, true));
    assert_string_equal(text, "1 of 2 votes from after a change of the members is here, and 2 are "
                              "needed; no answer from d at h:4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_names_the_voters_that_do_not_answer),
        cmocka_unit_test(a_change_of_the_members_needs_both_halves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
