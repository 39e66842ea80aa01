/* Members: checks, copies, and the bytes in which the log holds them. */
#include "cmocka_all.h"
#include "raft/raft.h"

#include <stdlib.h>
#include <string.h>

static struct raft_member members[4];

static struct raft_configuration three(void)
{
    memset(members, 0, sizeof(members));
    for (int i = 0; i < 3; i++) {
        members[i].id = (raft_id)(3 - i);
        members[i].weight = 1;
        members[i].name[0] = (char)('a' + i);
    }
    return (struct raft_configuration){.members = members, .count = 3};
}

static void normalising_sorts_by_id(void **state)
{
    struct raft_configuration configuration = three();
    assert_int_equal(raft_configuration_normalise(&configuration, NULL), 0);
    assert_true(members[0].id == 1 && members[2].id == 3);
    assert_string_equal(raft_configuration_find(&configuration, 3)->name, "a");
    assert_null(raft_configuration_find(&configuration, 9));
}

static void what_cannot_be_a_group_is_refused_by_name(void **state)
{
    struct baton_error error;
    struct raft_configuration configuration = three();

    members[1].id = 3;
    assert_int_equal(raft_configuration_normalise(&configuration, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "one id"));
    configuration = three();
    strcpy(members[1].name, "a");
    assert_int_equal(raft_configuration_normalise(&configuration, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "\"a\" is listed twice"));
    configuration = three();
    members[0].kind = RAFT_LEARNER;
    assert_int_equal(raft_configuration_normalise(&configuration, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "learner"));
    configuration = three();
    members[0].id = 0;
    assert_int_equal(raft_configuration_normalise(&configuration, &error), BATON_EINVAL);
    configuration = three();
    members[0].weight = members[1].weight = members[2].weight = 0;
    assert_int_equal(raft_configuration_normalise(&configuration, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "nobody votes"));
    configuration = three();
    memset(members[0].name, 'x', sizeof(members[0].name));
    assert_int_equal(raft_configuration_normalise(&configuration, &error), BATON_EINVAL);
    configuration = three();
    memset(members[0].address, 'x', sizeof(members[0].address));
    assert_int_equal(raft_configuration_normalise(&configuration, &error), BATON_EINVAL);
    configuration = three();
    configuration.count = RAFT_MEMBERS_MAX + 1;
    assert_int_equal(raft_configuration_normalise(&configuration, &error), BATON_EINVAL);
}

static void a_member_that_leaves_may_have_the_name_of_its_successor(void **state)
{
    struct raft_configuration configuration = three();

    configuration.is_joint = true;
    strcpy(members[1].name, "a");
    members[1].is_leaving = true;
    assert_int_equal(raft_configuration_normalise(&configuration, NULL), 0);
}

static void decoding_gives_back_what_was_encoded(void **state)
{
    struct raft_configuration configuration = three();
    struct raft_configuration back;
    void *data;
    size_t bytes;

    members[0].priority = -5;
    members[0].weight = 0;
    members[0].old_weight = 7;
    members[0].is_leaving = true;
    members[1].kind = RAFT_WITNESS;
    strcpy(members[2].address, "[::1]:7001");
    members[1].birth = 0x123456789abcdef0;
    configuration.group = 0xfedcba9876543210;
    configuration.is_joint = true;
    assert_int_equal(raft_configuration_normalise(&configuration, NULL), 0);
    assert_int_equal(raft_configuration_encode(&configuration, &data, &bytes), 0);
    assert_int_equal(raft_configuration_decode(&back, data, bytes), 0);
    assert_int_equal(back.count, 3);
    assert_true(back.is_joint);
    assert_true(back.group == configuration.group);
    assert_memory_equal(back.members, members, 3 * sizeof(members[0]));
    raft_configuration_fini(&back);

    /* cut anywhere, or one byte more: refused whole */
    for (size_t i = 0; i < bytes; i++) {
        assert_int_equal(raft_configuration_decode(&back, data, i), BATON_ECORRUPT);
    }
    data = realloc(data, bytes + 1);
    ((uint8_t *)data)[bytes] = 0;
    assert_int_equal(raft_configuration_decode(&back, data, bytes + 1), BATON_ECORRUPT);
    free(data);
}

static void bytes_that_encoding_never_writes_are_refused(void **state)
{
    struct raft_configuration configuration = three();
    struct raft_configuration back;
    uint8_t *data;
    size_t bytes;
    static const struct {
        size_t at;
        uint8_t value;
    } rows[] = {
        {0, 1},        /* version */
        {1, 2},        /* flags */
        {3, 0xff},     /* count over the maximum */
        {12 + 16, 3},  /* kind */
        {12 + 17, 2},  /* member's flags */
        {12, 9},       /* ids out of order */
        {12 + 30, 64}, /* a name longer than a name may be */
    };

    assert_int_equal(raft_configuration_normalise(&configuration, NULL), 0);
    assert_int_equal(raft_configuration_encode(&configuration, (void **)&data, &bytes), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t was = data[rows[i].at];
        data[rows[i].at] = rows[i].value;
        assert_int_equal(raft_configuration_decode(&back, data, bytes), BATON_ECORRUPT);
        data[rows[i].at] = was;
    }
    assert_int_equal(raft_configuration_decode(&back, data, bytes), 0);
    raft_configuration_fini(&back);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normalising_sorts_by_id),
        cmocka_unit_test(what_cannot_be_a_group_is_refused_by_name),
        cmocka_unit_test(a_member_that_leaves_may_have_the_name_of_its_successor),
        cmocka_unit_test(decoding_gives_back_what_was_encoded),
        cmocka_unit_test(bytes_that_encoding_never_writes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
