/* A provider's settings: one table reads them, and none is ignored. */
#include "provider/setting_rows.h"

#include "cmocka_all.h"

#include <string.h>

struct target {
    char name[8];
    char list[16];
    bool flag;
    span length;
    int32_t number;
    char order[8]; /* of those that are taken */
};

static int take_own(void *target, const char *key, const char *value, struct baton_error *reterr)
{
    strncat(((struct target *)target)->order, key, 1);
    return strcmp(value, "bad") == 0 ? error_set(reterr, BATON_ENOENT, "%s: is bad", key) : 0;
}

#define TARGET struct target

static const struct provider_setting table[] = {
    OWN("last", take_own),
    OWN("first", take_own),
    TEXT("name", name),
    LIST("lists", "list", list),
    FLAG("flag", flag),
    SPAN("length", length),
    NUMBER("number", number, -3, 3),
    END,
};

static struct target target;
static struct baton_error error;

static int take(const char *query)
{
    char url[256] = "some://host/?";
    struct provider_config config = {.url = url};

    strncat(url, query, sizeof(url) - strlen(url) - 1);
    target = (struct target){.name = "as-is"};
    return provider_settings_take(&target, table, &config, &error);
}

static void each_kind_is_read(void **state)
{
    assert_int_equal(take("name=a%26b&list=x&lists=y,z&list=w&flag&length=2m&number=-3"), BATON_OK);
    assert_string_equal(target.name, "a&b");
    assert_string_equal(target.list, "x,y,z,w");
    assert_true(target.flag);
    assert_int_equal(target.length.ns, SPAN_S(120).ns);
    assert_int_equal(target.number, -3);
    assert_int_equal(take("%6eame=0123456&flag=off&"), BATON_OK);
    assert_string_equal(target.name, "0123456");
    assert_false(target.flag);
    assert_int_equal(take(""), BATON_OK);
    assert_string_equal(target.name, "as-is");
}

static void they_are_taken_in_the_tables_order(void **state)
{
    assert_int_equal(take("first=1&last=1"), BATON_OK);
    assert_string_equal(target.order, "lf");
    assert_int_equal(take("first=1&last=bad"), BATON_ENOENT);
    assert_string_equal(target.order, "l");
}

static void whatever_is_none_is_refused_by_name(void **state)
{
    static const char *const rows[][2] = {
        {"nam=x", "\"nam\": some: has no such setting; is \"name\" meant?"},
        {"lenght=1s", "is \"length\" meant?"},
        {"other", "it has last, first, name, lists, flag, length, number"},
        {"=x", "\"\": some: has no such setting"},
        {"0123456789012345678901234567890123456789=x", "so long a name"},
        {"name=a&name=b", "name: is given twice"},
        {"flag=on&flag=off", "flag: is given twice"},
        {"name=", "name: is empty"},
        {"name", "name: is empty"},
        {"number", "number: is empty"},
        {"name=01234567", "name: is longer than 7 bytes"},
        {"list=0123456&list=01234567", "lists: is longer than 15 bytes"},
        {"list=0123456&list=", "lists: is empty"},
        {"name=a%00b", "name: has %00 in it"},
        {"number=4", "number: '4': must be a whole number from -3 to 3"},
        {"number=1e0", "number: '1e0'"},
        {"length=5", "length: '5'"},
        {"flag=perhaps", "flag: 'perhaps'"},
        {"name=a#&list=b", "%23"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int code = take(rows[i][0]);
        if (code != BATON_EINVAL || !strstr(error.message, rows[i][1])) {
            fail_msg("%s: %d %s", rows[i][0], code, error.message);
        }
    }
}

static void of_a_key_among_the_options_nothing_in_the_url_counts(void **state)
{
    const struct provider_option options[] = {
        {"list", "o%41"}, {"list", "p"}, {"flag", "no"}, {"last", "x"}};
    struct provider_config config = {.url = "some:?lists=u&list=v&flag&name=n",
                                     .options = options,
                                     .option_count = sizeof(options) / sizeof(options[0])};

    target = (struct target){.flag = true};
    assert_int_equal(provider_settings_take(&target, table, &config, &error), BATON_OK);
    assert_string_equal(target.list, "o%41,p"); /* it is no URL */
    assert_false(target.flag);
    assert_string_equal(target.name, "n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_is_read),
        cmocka_unit_test(they_are_taken_in_the_tables_order),
        cmocka_unit_test(whatever_is_none_is_refused_by_name),
        cmocka_unit_test(of_a_key_among_the_options_nothing_in_the_url_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
