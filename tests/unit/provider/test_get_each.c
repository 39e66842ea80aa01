/* Several keys by one request, with a provider that can do that and with one that cannot. */
#include "provider/get_each.h"

#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

enum { ASKED_MAX = 4 };

static struct asked {
    provider_values_cb done;
    void *userdata;
} asked[ASKED_MAX];
static size_t asked_count;

static int get(struct provider *provider, const char *key, provider_values_cb done, void *userdata,
               struct baton_error *reterr)
{
    if (strcmp(key, "refused") == 0) {
        return BATON_EBUSY;
    }
    asked[asked_count++] = (struct asked){done, userdata};
    return BATON_OK;
}

static int get_each(struct provider *provider, const char *const *keys, size_t count,
                    provider_values_cb done, void *userdata, struct baton_error *reterr)
{
    done(userdata, BATON_OK, NULL, count);
    return BATON_OK;
}

static const struct provider_ops one_by_one = {.get = get};
static const struct provider_ops at_once = {.get = get, .get_each = get_each};

static struct {
    int calls, code;
    size_t count;
    char text[64];
} heard;

static void on_values(void *userdata, int code, const struct provider_value *values, size_t count)
{
    assert_ptr_equal(userdata, &heard);
    heard.calls++;
    heard.code = code;
    heard.count = count;
    for (size_t i = 0; values && i < count; i++) {
        size_t length = strlen(heard.text);

        (void)snprintf(heard.text + length, sizeof(heard.text) - length, "%s=%s ", values[i].key,
                       (const char *)values[i].data);
    }
}

static int set_up(void **state)
{
    memset(&heard, 0, sizeof(heard));
    asked_count = 0;
    return 0;
}

static int read_each(const struct provider_ops *ops, const char *const *keys, size_t count)
{
    struct provider provider = {.ops = ops};

    return provider_get_each(&provider, keys, count, on_values, &heard, NULL);
}

static void reply(size_t number, int code, const char *key, const char *data)
{
    const struct provider_value value = {
        .key = key, .data = data, .bytes = data ? strlen(data) : 0, .revision = data ? 1 : 0};

    asked[number].done(asked[number].userdata, code, &value, code == BATON_OK);
}

static void what_is_there_comes_when_all_have_been_read(void **state)
{
    static const char *const keys[] = {"a", "b", "c"};

    assert_int_equal(read_each(&one_by_one, keys, 3), BATON_OK);
    assert_int_equal(asked_count, 3);
    reply(2, BATON_OK, "c", "3");
    reply(0, BATON_OK, "a", "1");
    assert_int_equal(heard.calls, 0);
    reply(1, BATON_OK, "b", NULL);
    assert_int_equal(heard.calls, 1);
    assert_int_equal(heard.code, BATON_OK);
    assert_string_equal(heard.text, "c=3 a=1 ");
}

static void the_first_failure_is_that_of_all(void **state)
{
    static const char *const keys[] = {"a", "b", "refused", "c"};

    assert_int_equal(read_each(&one_by_one, keys, 4), BATON_OK);
    assert_int_equal(asked_count, 2);
    reply(0, BATON_OK, "a", "1");
    reply(1, BATON_ETIMEDOUT, NULL, NULL);
    assert_int_equal(heard.calls, 1);
    assert_int_equal(heard.code, BATON_EBUSY);
    assert_int_equal(heard.count, 0);
}

static void a_provider_that_reads_many_is_asked_once(void **state)
{
    static const char *const keys[] = {"a", "b"};

    assert_int_equal(read_each(&at_once, keys, 2), BATON_OK);
    assert_int_equal(asked_count, 0);
    assert_int_equal(heard.count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_is_there_comes_when_all_have_been_read, set_up),
        cmocka_unit_test_setup(the_first_failure_is_that_of_all, set_up),
        cmocka_unit_test_setup(a_provider_that_reads_many_is_asked_once, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
