/* Items and submissions: what is read, what is refused and how the error names it. */
#include "ledger_tools.h"

/* JSON with ' in place of ". */
static int submission(const char *name, const char *text, struct work_item ***ret,
                      size_t *ret_count, struct baton_error *error)
{
    char *json = strdup(text);
    int code;

    for (char *at = json; *at; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
    code = work_submission_read(ret, ret_count, name, json, strlen(json), error);
    free(json);
    return code;
}

static void drop(struct work_item **items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        work_item_unref(items[i]);
    }
    free((void *)items);
}

static void an_item_that_says_nothing_has_its_defaults(void **state)
{
    struct work_item *item = make_item("{'id':'a','later':{'members':'are ignored'}}");

    assert_string_equal(item->id, "a");
    assert_int_equal(item->kind, WORK_JOB);
    assert_false(item->is_unique);
    assert_int_equal(item->priority, 0);
    assert_int_equal(item->weight, 1);
    assert_int_equal(item->retries, 0);
    assert_int_equal(item->gpus, 0);
    assert_int_equal(item->memory_mib, 0);
    assert_string_equal(item->needs, "");
    assert_null(item->together);
    assert_int_equal(item->backoff.ns, SPAN_MS(WORK_BACKOFF_MS).ns);
    assert_int_equal(item->timeout.ns, 0);
    assert_null(item->keys);
    assert_null(item->body);
    assert_int_equal(item->body_bytes, 0);
    work_item_unref(item);
}

static void each_member_is_read_and_written(void **state)
{
    static const char text[] =
        "{'id':'a/b','kind':'service','unique':true,'priority':-7,'weight':2,'retries':3,'gpus':1,"
        "'memory_mib':512,'needs':['gpu','arm'],'together':'scene-1','backoff_ms':20,"
        "'timeout_ms':3000,'keys':['ball','big box'],'body':'line 1\\nline 2'}";
    struct work_item *item = make_item(text), *again = NULL;
    json_t *json = work_item_json(item);

    assert_string_equal(item->id, "a/b");
    assert_int_equal(item->kind, WORK_SERVICE);
    assert_true(item->is_unique);
    assert_int_equal(item->priority, -7);
    assert_int_equal(item->weight, 2);
    assert_int_equal(item->retries, 3);
    assert_int_equal(item->gpus, 1);
    assert_int_equal(item->memory_mib, 512);
    assert_string_equal(item->needs, "gpu arm");
    assert_string_equal(item->together, "scene-1");
    assert_int_equal(item->backoff.ns, SPAN_MS(20).ns);
    assert_int_equal(item->timeout.ns, SPAN_S(3).ns);
    assert_string_equal(item->keys[1], "big box");
    assert_null(item->keys[2]);
    assert_int_equal(item->body_bytes, 13);
    assert_memory_equal(item->body, "line 1\nline 2", 13);
    assert_int_equal(work_item_read(&again, json, NULL, NULL), BATON_OK);
    assert_true(work_item_equal(item, again));
    json_decref(json);
    work_item_unref(item);
    work_item_unref(again);
}

static void items_differ_in_each_member(void **state)
{
    static const char *const others[] = {
        "{'id':'b'}",
        "{'id':'a','kind':'service'}",
        "{'id':'a','unique':true}",
        "{'id':'a','priority':1}",
        "{'id':'a','weight':2}",
        "{'id':'a','retries':1}",
        "{'id':'a','gpus':1}",
        "{'id':'a','memory_mib':1}",
        "{'id':'a','needs':['gpu']}",
        "{'id':'a','together':'x'}",
        "{'id':'a','backoff_ms':1}",
        "{'id':'a','timeout_ms':1}",
        "{'id':'a','keys':[]}",
        "{'id':'a','keys':['k']}",
        "{'id':'a','body':'x'}",
        "{'id':'a','body_base64':'AAE='}",
    };
    struct work_item *item = make_item("{'id':'a'}"), *same = make_item("{'id':'a'}");

    assert_true(work_item_equal(item, same));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        struct work_item *other = make_item(others[i]), *again = NULL;
        json_t *json = work_item_json(other);

        if (work_item_equal(item, other) || work_item_equal(other, item)) {
            fail_msg("%s is equal", others[i]);
        }
        assert_int_equal(work_item_read(&again, json, NULL, NULL), BATON_OK);
        assert_true(work_item_equal(other, again)); /* each member alone */
        json_decref(json);
        work_item_unref(other);
        work_item_unref(again);
    }
    work_item_unref(item);
    work_item_unref(same);
}

static void a_body_is_any_bytes(void **state)
{
    struct work_item *item = make_item("{'id':'a','body_base64':'AP8QIA=='}"), *again = NULL;
    json_t *json = work_item_json(item);

    assert_int_equal(item->body_bytes, 4);
    assert_memory_equal(item->body, "\0\xff\x10 ", 4);
    assert_null(json_object_get(json, "body"));
    assert_string_equal(json_string_value(json_object_get(json, "body_base64")), "AP8QIA==");
    assert_int_equal(work_item_read(&again, json, NULL, NULL), BATON_OK);
    assert_true(work_item_equal(item, again));
    json_decref(json);
    work_item_unref(again);
    work_item_unref(item);
}

static void items_of_a_submission_get_ids_from_its_name(void **state)
{
    struct work_item **items;
    size_t count;

    assert_int_equal(submission("batch-7", "{'unique':true,'items':[{},{'id':'own'},{'body':'x'}]}",
                                &items, &count, NULL),
                     BATON_OK);
    assert_int_equal(count, 3);
    assert_string_equal(items[0]->id, "batch-7.0");
    assert_true(items[0]->is_unique);
    assert_string_equal(items[1]->id, "own");
    assert_false(items[1]->is_unique); /* another submission may have named it before */
    assert_string_equal(items[2]->id, "batch-7.2");
    assert_true(items[2]->is_unique);
    drop(items, count);
    assert_int_equal(submission("s", "{'items':[{'unique':true}]}", &items, &count, NULL),
                     BATON_OK);
    assert_false(items[0]->is_unique); /* it is the submission that says so */
    drop(items, count);
}

/* What is wrong, and how the error begins. */
static const struct {
    const char *text, *error;
} wrong[] = {
    {"", "not valid JSON at line 1, column 0: it is empty"},
    {"[]", "it is an array: must be an object"},
    {"{}", "items is missing: must be an array"},
    {"{'items':{}}", "items is an object: must be an array"},
    {"{'items':[]}", "items has 0: must be 1 to 1000"},
    {"{'items':[{}],'unique':1}", "unique is an integer: must be a boolean"},
    {"{'items':[{}],'items':[{}]}", "not valid JSON at line 1, column 21: a key is there twice"},
    {"{'items':[{}]} x", "not valid JSON at line 1, column 16: something follows its end"},
    {"{'items':[1]}", "items[0]: it is an integer: must be an object"},
    {"{'items':[{},{'id':7}]}", "items[1]: id is an integer: must be a string"},
    {"{'items':[{'id':''}]}", "items[0]: id is 0 bytes long: must be 1 to 127"},
    {"{'items':[{'id':'a b'}]}", "items[0]: id is \"a b\": must be letters, digits and"},
    {"{'items':[{'id':'/a'}]}", "items[0]: id is \"/a\": must be"},
    {"{'items':[{'id':'a/'}]}", "items[0]: id is \"a/\": must be"},
    {"{'items':[{'id':'a//b'}]}", "items[0]: id is \"a//b\": must be"},
    {"{'items':[{'id':'\xc3\xa9'}]}", "items[0]: id is"},
    {"{'items':[{'id':'a','id':'b'}]}", "not valid JSON at line 1, column 24: a key is there"},
    {"{'items':[{'kind':'task'}]}", "items[0]: kind is \"task\": must be job or service"},
    {"{'items':[{'kind':1}]}", "items[0]: kind is an integer: must be a string"},
    {"{'items':[{'unique':'yes'}]}", "items[0]: unique is a string: must be a boolean"},
    {"{'items':[{'priority':1.5}]}", "items[0]: priority is a fraction: must be an integer"},
    {"{'items':[{'priority':2147483648}]}", "items[0]: priority is 2147483648: must be -21"},
    {"{'items':[{'weight':0}]}", "items[0]: weight is 0: must be 1 to 1000000"},
    {"{'items':[{'retries':-1}]}", "items[0]: retries is -1: must be 0 to 1000"},
    {"{'items':[{'retries':1001}]}", "items[0]: retries is 1001: must be 0 to 1000"},
    {"{'items':[{'gpus':1001}]}", "items[0]: gpus is 1001: must be 0 to 1000"},
    {"{'items':[{'memory_mib':1073741825}]}", "items[0]: memory_mib is 1073741825: must be"},
    {"{'items':[{'backoff_ms':-1}]}", "items[0]: backoff_ms is -1: must be 0 to 31622400000"},
    {"{'items':[{'timeout_ms':31622400001}]}", "items[0]: timeout_ms is 31622400001: must be"},
    {"{'items':[{'timeout_ms':'1s'}]}", "items[0]: timeout_ms is a string: must be an integer"},
    {"{'items':[{'needs':'gpu'}]}", "items[0]: needs is a string: must be an array"},
    {"{'items':[{'needs':['a',7]}]}", "items[0]: needs[1] is an integer: must be 1 to 127"},
    {"{'items':[{'needs':['a b']}]}", "items[0]: needs[0] is \"a b\": must be 1 to 127"},
    {"{'items':[{'needs':['']}]}", "items[0]: needs[0] is \"\": must be 1 to 127"},
    {"{'items':[{'together':'a b'}]}", "items[0]: together is \"a b\": must be letters"},
    {"{'items':[{'keys':'ball'}]}", "items[0]: keys is a string: must be an array"},
    {"{'items':[{'keys':[null]}]}", "items[0]: keys[0] is null: must be 1 to 255 bytes"},
    {"{'items':[{'keys':['']}]}", "items[0]: keys[0] is another text: must be 1 to 255 bytes"},
    {"{'items':[{'keys':['a\\nb']}]}", "items[0]: keys[0] is another text: must be 1 to 255"},
    {"{'items':[{'body':1}]}", "items[0]: body is an integer: must be a string"},
    {"{'items':[{'body_base64':'A'}]}", "items[0]: body_base64 is not base64"},
    {"{'items':[{'body_base64':'A==='}]}", "items[0]: body_base64 is not base64"},
    {"{'items':[{'body_base64':'AA A'}]}", "items[0]: body_base64 is not base64"},
    {"{'items':[{'body':'','body_base64':''}]}", "items[0]: body and body_base64: only one"},
};

static void what_is_wrong_is_refused_with_its_path(void **state)
{
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct work_item **items = NULL;
        struct baton_error error = {0};
        size_t count = 7;
        int code = submission("s", wrong[i].text, &items, &count, &error);

        if (code != BATON_EINVAL || error.code != BATON_EINVAL ||
            strncmp(error.message, wrong[i].error, strlen(wrong[i].error)) != 0) {
            fail_msg("%s: %d, %s", wrong[i].text, code, error.message);
        }
        assert_null(items);
        assert_int_equal(count, 7);
    }
}

/* `count` times `part`, separated by commas, between both ends. */
static char *repeated(const char *begin, const char *part, size_t count, const char *end)
{
    struct buffer buffer;

    buffer_init(&buffer, 16 << 20);
    buffer_put_text(&buffer, begin);
    for (size_t i = 0; i < count; i++) {
        buffer_put_text(&buffer, i > 0 ? "," : "");
        buffer_put_text(&buffer, part);
    }
    buffer_put_text(&buffer, end);
    assert_non_null(buffer_text(&buffer));
    return (char *)buffer.data;
}

static void assert_size(const char *begin, const char *part, size_t most, const char *end,
                        int code_above)
{
    struct work_item **items;
    size_t count;
    char *text = repeated(begin, part, most, end);

    assert_int_equal(submission("s", text, &items, &count, NULL), BATON_OK);
    drop(items, count);
    free(text);
    text = repeated(begin, part, most + 1, end);
    assert_int_equal(submission("s", text, &items, &count, NULL), code_above);
    free(text);
}

static void each_maximum_is_held(void **state)
{
    char *body = repeated("", "", WORK_BODY_MAX - 1, ""); /* commas */

    assert_size("{'items':[", "{}", WORK_SUBMITTED_MAX, "]}", BATON_EINVAL);
    assert_size("{'items':[{'keys':[", "'k'", WORK_KEYS_MAX, "]}]}", BATON_EINVAL);
    assert_size("{'items':[{'body':'", body, 1, "'}]}", BATON_EINVAL);
    assert_size("{'items':[{'needs':[", "'g'", WORK_NEEDS_MAX / 2, "]}]}", BATON_EINVAL);
    free(body);
}

static void a_submission_that_is_too_long_is_refused(void **state)
{
    struct work_item **items;
    struct baton_error error;
    size_t count;
    char *text = calloc(1, WORK_SUBMISSION_MAX + 1);

    memset(text, ' ', WORK_SUBMISSION_MAX + 1);
    memcpy(text, "{\"items\":[{}]}", 14);
    assert_int_equal(work_submission_read(&items, &count, "s", text, WORK_SUBMISSION_MAX, &error),
                     BATON_OK);
    drop(items, count);
    assert_int_equal(
        work_submission_read(&items, &count, "s", text, WORK_SUBMISSION_MAX + 1, &error),
        BATON_ETOOBIG);
    free(text);
}

static void a_submissions_name_leaves_room_for_numbers(void **state)
{
    char name[WORK_ID_MAX];
    struct work_item **items;
    size_t count;

    (void)snprintf(name, sizeof(name), "%0120d", 0);
    assert_int_equal(submission(name, "{'items':[{}]}", &items, &count, NULL), BATON_OK);
    drop(items, count);
    (void)snprintf(name, sizeof(name), "%0121d", 0);
    assert_int_equal(submission(name, "{'items':[{}]}", &items, &count, NULL), BATON_EINVAL);
    assert_int_equal(submission("", "{'items':[{}]}", &items, &count, NULL), BATON_EINVAL);
    assert_int_equal(submission("a b", "{'items':[{}]}", &items, &count, NULL), BATON_EINVAL);
}

static void ids_are_letters_digits_and_some_more(void **state)
{
    char longest[WORK_ID_MAX + 1];

    (void)snprintf(longest, sizeof(longest), "%0127d", 0);
    assert_true(work_id_is_valid(longest));
    (void)snprintf(longest, sizeof(longest), "%0128d", 0);
    assert_false(work_id_is_valid(longest));
    assert_true(work_id_is_valid("aZ09-_.:/{};@+=,x"));
    for (int c = 1; c < 256; c++) {
        const char id[] = {'a', (char)c, 'b', '\0'};
        bool is_plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');

        assert_true(work_id_is_valid(id) == (is_plain || strchr("-_.:/{};@+=,", c)));
    }
}

static void keys_are_compared_one_by_one(void **state)
{
    char *const ab[] = {"a", "b", NULL}, *const a[] = {"a", NULL}, *const ac[] = {"a", "c", NULL};

    assert_true(work_keys_equal(NULL, NULL));
    assert_false(work_keys_equal(NULL, a));
    assert_false(work_keys_equal(a, ab));
    assert_false(work_keys_equal(ab, a));
    assert_false(work_keys_equal(ab, ac));
    assert_true(work_keys_equal(ab, ab));
}

static void keys_that_no_reader_takes_are_not_copied(void **state)
{
    static const char *const keys[] = {"a", "big box", NULL}, *const none[] = {NULL};
    static const char *const empty[] = {"a", "", NULL}, *const control[] = {"a\n", NULL};
    static const char *const wide[] = {"a\xc2\x9b", NULL}; /* moves a terminal's cursor, too */
    const char *many[WORK_KEYS_MAX + 2];
    char longest[WORK_KEY_MAX + 1];
    const char *const one[] = {longest, NULL};
    char **copy = NULL;

    assert_int_equal(work_keys_copy(&copy, keys), BATON_OK);
    assert_string_equal(copy[1], "big box");
    assert_null(copy[2]);
    work_keys_free(copy);
    assert_int_equal(work_keys_copy(&copy, none), BATON_OK);
    assert_null(copy[0]);
    work_keys_free(copy);
    assert_int_equal(work_keys_copy(&copy, empty), BATON_EINVAL);
    assert_int_equal(work_keys_copy(&copy, control), BATON_EINVAL);
    assert_int_equal(work_keys_copy(&copy, wide), BATON_EINVAL);
    (void)snprintf(longest, sizeof(longest), "%0255d", 0);
    assert_int_equal(work_keys_copy(&copy, one), BATON_OK);
    work_keys_free(copy);
    (void)snprintf(longest, sizeof(longest), "%0256d", 0);
    assert_int_equal(work_keys_copy(&copy, one), BATON_EINVAL);
    for (int i = 0; i <= WORK_KEYS_MAX; i++) {
        many[i] = "k";
    }
    many[WORK_KEYS_MAX + 1] = NULL;
    assert_int_equal(work_keys_copy(&copy, many), BATON_EINVAL);
    assert_int_equal(work_keys_copy(&copy, many + 1), BATON_OK);
    work_keys_free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_item_that_says_nothing_has_its_defaults),
        cmocka_unit_test(each_member_is_read_and_written),
        cmocka_unit_test(items_differ_in_each_member),
        cmocka_unit_test(a_body_is_any_bytes),
        cmocka_unit_test(items_of_a_submission_get_ids_from_its_name),
        cmocka_unit_test(what_is_wrong_is_refused_with_its_path),
        cmocka_unit_test(each_maximum_is_held),
        cmocka_unit_test(a_submission_that_is_too_long_is_refused),
        cmocka_unit_test(a_submissions_name_leaves_room_for_numbers),
        cmocka_unit_test(ids_are_letters_digits_and_some_more),
        cmocka_unit_test(keys_are_compared_one_by_one),
        cmocka_unit_test(keys_that_no_reader_takes_are_not_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
