/* Each message there and back, and what is refused. */
#include "cmocka_all.h"
#include "work/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* JSON with ' in place of ". */
static char *json_of(const char *text)
{
    char *json = strdup(text);

    for (char *at = json; *at; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
    return json;
}

static int read_text(const char *text, struct work_message *ret, struct baton_error *error)
{
    char *json = json_of(text);
    int code = work_message_read(ret, json, strlen(json), error);

    free(json);
    return code;
}

/* All members, in the order in which they are written. */
static const char *const examples[] = {
    "{'type':'assign','leader':3,'number':4,'session':5,'ledger':6,'items':[{'epoch':7,'attempt':1,"
    "'item':{'id':'a.0','priority':-5,'weight':2,'retries':3,'gpus':1,'memory_mib':512,"
    "'backoff_ms':250,'timeout_ms':60000,'kind':'service','unique':true,'needs':['gpu','arm'],"
    "'together':'scene','keys':['ball','box'],'body':'run it'}},"
    "{'epoch':8,'attempt':2,'item':{'id':'b','body_base64':'AP8='}}]}",
    "{'type':'stop','leader':3,'number':4,'session':5,'ledger':6,'items':[{'id':'a','epoch':7},"
    "{'id':'b','epoch':8}]}",
    "{'type':'ack','leader':3,'number':4,'session':5,'ledger':6,'items':[{'id':'a','epoch':7}]}",
    "{'type':'ask','leader':3,'number':4,'ledger':6}",
    "{'type':'report','worker':'w-1','session':9,'ledger':6,'seen':{'leader':3,'number':4},"
    "'slots':8,'cpu_permille':333,'gpus':1,'memory_mib':2048,'labels':['gpu'],'leaving':true,"
    "'reply':true,'claims':[{'id':'a','epoch':7,'ended':true,'gone':true,"
    "'progress_permille':999,'keys':['ball'],'item':{'id':'a'}},{'id':'b','epoch':8}]}",
    "{'type':'report','worker':'w-1','session':9,'seen':{'leader':0,'number':0},'slots':0,"
    "'claims':[]}",
    "{'type':'done','worker':'w-1','session':9,'result':{'id':'a','epoch':7,'success':false,"
    "'code':-1,'began_unix_ms':1000,'ended_unix_ms':2000,'output':'it failed'}}",
    "{'type':'done','worker':'w-1','session':9,'result':{'id':'a','epoch':7,'success':true,"
    "'code':0,'began_unix_ms':1000,'ended_unix_ms':2000}}",
};

static void each_message_comes_back_as_it_was(void **state)
{
    for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
        char *json = json_of(examples[i]);
        struct work_message message;
        struct baton_error error;
        struct buffer again;

        if (work_message_read(&message, json, strlen(json), &error) != BATON_OK) {
            fail_msg("%s: %s", json, error.message);
        }
        buffer_init(&again, WORK_MESSAGE_MAX);
        work_message_write(&message, &again);
        assert_string_equal(buffer_text(&again), json);
        buffer_fini(&again);
        work_message_fini(&message);
        free(json);
    }
}

/* ---- Each member, one after the other -------------------------------------------------------- */

/* What may be left out, and may be null, of a message of any type. */
static bool is_optional(const char *path)
{
    static const char *const names[] = {
        "ledger",        "seen",        "cpu_permille", "gpus",          "memory_mib",
        "labels",        "leaving",     "reply",        "ended",         "gone",
        "keys",          "priority",    "weight",       "retries",       "backoff_ms",
        "timeout_ms",    "kind",        "unique",       "needs",         "together",
        "body",          "body_base64", "output",       "slots",         "progress_permille",
        "output_base64", "seen.leader", "seen.number",  "claims[0].item"};
    const char *dot = strrchr(path, '.'), *blank = strrchr(path, ' ');
    const char *last = blank ? blank + 1 : dot ? dot + 1 : path;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i], last) == 0 || strcmp(names[i], path) == 0) {
            return true;
        }
    }
    return false;
}

static int read_root(const json_t *root, struct baton_error *error)
{
    char *text = json_dumps(root, JSON_COMPACT);
    struct work_message message = {.count = 7};
    int code;

    *error = (struct baton_error){0};
    code = work_message_read(&message, text, strlen(text), error);
    if (code == BATON_OK) {
        work_message_fini(&message);
    } else {
        assert_int_equal(code, error->code);
        assert_int_equal(message.count, 7); /* as it was */
    }
    free(text);
    return code;
}

static void assert_refused(const json_t *root, const char *path, const char *what)
{
    struct baton_error error;

    if (read_root(root, &error) != BATON_EPROTO ||
        strncmp(error.message, path, strlen(path)) != 0) {
        fail_msg("%s %s: %s", path, what, error.message);
    }
}

static void assert_taken(const json_t *root, const char *path, const char *what)
{
    struct baton_error error;

    if (read_root(root, &error) != BATON_OK) {
        fail_msg("%s %s: %s", path, what, error.message);
    }
}

/* Whether the member may as well be what `other` is: of its type, and in its range. */
static bool is_possible(const json_t *value, const json_t *other, const char *path)
{
    bool is_bytes = strstr(path, "body") || strstr(path, "output");
    bool is_signed = strstr(path, "code") || strstr(path, "unix_ms") || strstr(path, "priority");

    switch (json_typeof(other)) {
    case JSON_STRING:
        return json_is_string(value) && is_bytes;
    case JSON_INTEGER:
        return json_is_integer(value) && is_signed;
    case JSON_TRUE:
        return json_is_boolean(value);
    default:
        return json_typeof(value) == json_typeof(other);
    }
}

/* The member as every other type of JSON, as null, and missing. */
static void try_member(const json_t *root, json_t *object, const char *key, const char *path)
{
    static const char *const others[] = {"{}", "[]", "\"\"", "\"\\u0001\"", "7.5", "true", "-9"};
    json_t *value = json_incref(json_object_get(object, key));

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        json_t *other = json_loads(others[i], JSON_DECODE_ANY, NULL);

        (void)json_object_set_new(object, key, other);
        if (!is_possible(value, other, path)) {
            assert_refused(root, path, others[i]);
        }
    }
    (void)json_object_set_new(object, key, json_null());
    (is_optional(path) ? assert_taken : assert_refused)(root, path, "null");
    (void)json_object_del(object, key);
    (is_optional(path) ? assert_taken : assert_refused)(root, path, "missing");
    (void)json_object_set_new(object, key, value);
}

static void try_all(const json_t *root, json_t *object, const char *path)
{
    json_t *members = json_copy(object), *value, *element;
    const char *key;
    size_t i;

    json_object_foreach(members, key, value)
    {
        char here[128], below[136];

        (void)snprintf(here, sizeof(here), "%s%s", path, key);
        try_member(root, object, key, here);
        if (json_is_object(value)) {
            (void)snprintf(below, sizeof(below), "%s%s", here,
                           strcmp(key, "item") == 0 ? ": " : ".");
            try_all(root, value, below);
        }
        json_array_foreach(value, i, element)
        {
            (void)snprintf(below, sizeof(below), "%s[%zu].", here, i);
            if (json_is_object(element)) {
                try_all(root, element, below);
            }
        }
    }
    json_decref(members);
}

static void each_member_of_a_wrong_type_or_missing_is_named(void **state)
{
    for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
        char *json = json_of(examples[i]);
        json_t *root = json_loads(json, 0, NULL);

        assert_non_null(root);
        try_all(root, root, "");
        assert_taken(root, "", "as it was");
        (void)json_object_set_new(root, "later", json_object());
        assert_taken(root, "", "with a member of a later version");
        json_decref(root);
        free(json);
    }
}

/* ---- Ranges and the rest --------------------------------------------------------------------- */

#define LEADERS "'leader':1,'number':1,'session':1,'items':["
#define REPORT  "'type':'report','worker':'w','session':1"
#define DONE(result)                                                                               \
    "{'type':'done','worker':'w','session':1,'result':{'id':'a','epoch':1,'success':true,"         \
    "'began_unix_ms':0,'ended_unix_ms':0," result "}}"

static const struct {
    const char *text, *error;
} wrong[] = {
    {"", "not valid JSON at line 1, column 0: it is empty"},
    {"[]", "it is an array: must be an object"},
    {"{'type':'ask','type':'ask'}", "not valid JSON at line 1, column 20: a key is there twice"},
    {"{'type':'hello'}", "type is \"hello\": must be assign, stop, ask, ack, report or done"},
    {"{'type':'ask','leader':0,'number':1}", "leader is 0: must be 1 to 9223372036854775807"},
    {"{'type':'ask','leader':1,'number':0}", "number is 0: must be 1 to 9223372036854775807"},
    {"{'type':'ask','leader':1,'number':-1}", "number is -1: must be 1"},
    {"{'type':'ask','leader':9223372036854775808,'number':1}", "not valid JSON at line 1"},
    {"{'type':'stop','leader':1,'number':1,'session':0,'items':[]}", "session is 0: must be 1"},
    {"{'type':'stop','leader':1,'number':1,'items':[]}", "session is missing: must be an integer"},
    {"{'type':'stop'," LEADERS "7]}", "items[0] is an integer: must be an object"},
    {"{'type':'ack'," LEADERS "{'id':'a','epoch':1},{'id':'b','epoch':0}]}",
     "items[1].epoch is 0: must be 1 to 9223372036854775807"},
    {"{'type':'ack'," LEADERS "{'id':'a b','epoch':1}]}", "items[0].id is \"a b\": must be"},
    {"{'type':'assign'," LEADERS "{'epoch':1,'attempt':0,'item':{'id':'a'}}]}",
     "items[0].attempt is 0: must be 1 to"},
    {"{'type':'assign'," LEADERS "{'epoch':1,'attempt':4294967296,'item':{'id':'a'}}]}",
     "items[0].attempt is 4294967296: must be 1 to 4294967295"},
    {"{'type':'assign'," LEADERS "{'epoch':1,'attempt':1,'item':{}}]}",
     "items[0].item: id is missing: must be a string"},
    {"{'type':'assign'," LEADERS "{'epoch':1,'attempt':1,'item':{'id':'a','weight':0}}]}",
     "items[0].item: weight is 0: must be 1 to 1000000"},
    {"{'type':'report','worker':'a worker','session':1,'claims':[]}",
     "worker is \"a worker\": must be letters, digits and"},
    {"{'type':'report','worker':'w','session':0,'claims':[]}", "session is 0: must be 1"},
    {"{" REPORT ",'seen':{'leader':-1,'number':1},'claims':[]}", "seen.leader is -1: must be 0"},
    {"{" REPORT ",'slots':1000001,'claims':[]}", "slots is 1000001: must be 0 to 1000000"},
    {"{" REPORT ",'cpu_permille':1001,'claims':[]}", "cpu_permille is 1001: must be 0 to 1000"},
    {"{" REPORT ",'gpus':1001,'claims':[]}", "gpus is 1001: must be 0 to 1000"},
    {"{" REPORT ",'memory_mib':-1,'claims':[]}", "memory_mib is -1: must be 0 to 1073741824"},
    {"{" REPORT ",'labels':['a b'],'claims':[]}", "labels[0] is \"a b\": must be 1 to 127"},
    {"{" REPORT ",'claims':[{'id':'a','epoch':1,'progress_permille':1001}]}",
     "claims[0].progress_permille is 1001: must be 0 to 1000"},
    {"{" REPORT ",'claims':[{'id':'a','epoch':1,'keys':['\\u007f']}]}",
     "claims[0].keys[0] is another text: must be 1 to 255 bytes"},
    {"{" REPORT ",'claims':[{'id':'a','epoch':1,'item':{'id':'b'}}]}",
     "claims[0].item.id is \"b\": must be \"a\""},
    {"{" REPORT ",'claims':[{'id':'a','epoch':1,'item':{'id':'a','keys':7}}]}",
     "claims[0].item: keys is an integer: must be an array"},
    {DONE("'code':2147483648"), "result.code is 2147483648: must be -2147483648 to 2147483647"},
    {DONE("'code':0,'output_base64':'?'"), "result.output_base64 is not base64"},
};

static void what_is_out_of_range_is_refused_with_its_path(void **state)
{
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct work_message message;
        struct baton_error error = {0};
        int code = read_text(wrong[i].text, &message, &error);

        if (code != BATON_EPROTO || error.code != BATON_EPROTO ||
            strncmp(error.message, wrong[i].error, strlen(wrong[i].error)) != 0) {
            fail_msg("%s: %d, %s", wrong[i].text, code, error.message);
        }
    }
}

static void what_is_too_large_is_refused(void **state)
{
    struct work_message message = {.type = WORK_DONE,
                                   .session = 1,
                                   .worker = "w",
                                   .result = {.id = (char *)"a",
                                              .epoch = 1,
                                              .output = calloc(1, WORK_OUTPUT_MAX + 1),
                                              .output_bytes = WORK_OUTPUT_MAX}};
    struct work_message got;
    struct baton_error error;
    struct buffer bytes;
    char *large = calloc(1, WORK_MESSAGE_MAX + 1);

    buffer_init(&bytes, WORK_MESSAGE_MAX);
    work_message_write(&message, &bytes);
    assert_int_equal(work_message_read(&got, bytes.data, bytes.bytes, &error), BATON_OK);
    assert_int_equal(got.result.output_bytes, WORK_OUTPUT_MAX);
    work_message_fini(&got);
    message.result.output_bytes++;
    buffer_clear(&bytes);
    work_message_write(&message, &bytes);
    assert_int_equal(work_message_read(&got, bytes.data, bytes.bytes, &error), BATON_EPROTO);
    assert_string_equal(error.message,
                        "result.output_base64 has 16385 bytes: must be at most 16384");
    memset(large, ' ', WORK_MESSAGE_MAX + 1);
    memcpy(large, "{\"type\":\"ask\",\"leader\":1,\"number\":1}", 36);
    assert_int_equal(work_message_read(&got, large, WORK_MESSAGE_MAX, &error), BATON_OK);
    work_message_fini(&got);
    assert_int_equal(work_message_read(&got, large, WORK_MESSAGE_MAX + 1, &error), BATON_ETOOBIG);
    memset(large, '[', WORK_MESSAGE_MAX);
    assert_int_equal(work_message_read(&got, large, WORK_MESSAGE_MAX, &error), BATON_EPROTO);
    free(large);
    free(message.result.output);
    buffer_fini(&bytes);
}

static void more_claims_than_are_read_are_refused(void **state)
{
    struct work_message got;
    struct baton_error error;
    struct buffer text;

    buffer_init(&text, WORK_MESSAGE_MAX);
    buffer_put_text(&text, "{\"type\":\"report\",\"worker\":\"w\",\"session\":1,\"claims\":[{}");
    for (int i = 0; i < WORK_CLAIMS_MAX; i++) {
        buffer_put_text(&text, ",{}");
    }
    buffer_put_text(&text, "]}");
    assert_int_equal(work_message_read(&got, text.data, text.bytes, &error), BATON_EPROTO);
    assert_string_equal(error.message, "claims has 65537: at most 65536 are read");
    buffer_fini(&text);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static bool is_written(const struct work_message *message, size_t max_bytes)
{
    struct buffer bytes;
    bool is_whole;

    buffer_init(&bytes, max_bytes);
    work_message_write(message, &bytes);
    is_whole = !bytes.failed;
    buffer_fini(&bytes);
    return is_whole;
}

static void what_no_reader_takes_is_not_written(void **state)
{
    struct work_message ask = {.type = WORK_ASK, .number = {1, WORK_NUMBER_MAX}};

    assert_true(is_written(&ask, WORK_MESSAGE_MAX));
    assert_false(is_written(&ask, 40)); /* longer than the buffer */
    ask.number.count++;
    assert_false(is_written(&ask, WORK_MESSAGE_MAX));
    ask.number.count = 1;
    ask.ledger = UINT64_MAX;
    assert_false(is_written(&ask, WORK_MESSAGE_MAX));
}

static void a_stored_result_comes_back(void **state)
{
    const struct work_result result = {.id = (char *)"a",
                                       .epoch = 5,
                                       .is_success = true,
                                       .code = 3,
                                       .began_unix_ms = -1,
                                       .ended_unix_ms = 2,
                                       .output = (uint8_t *)"o\n",
                                       .output_bytes = 2};
    struct work_result got, copy;
    struct baton_error error;
    struct buffer bytes;

    buffer_init(&bytes, WORK_MESSAGE_MAX);
    work_result_write(&result, "w", 4, &bytes);
    assert_string_equal(buffer_text(&bytes),
                        "{\"id\":\"a\",\"epoch\":5,\"success\":true,\"code\":3,"
                        "\"began_unix_ms\":-1,\"ended_unix_ms\":2,\"output\":\"o\\n\","
                        "\"worker\":\"w\",\"attempt\":4}");
    assert_int_equal(work_result_read(&got, bytes.data, bytes.bytes, &error), BATON_OK);
    assert_int_equal(work_result_copy(&copy, &got), BATON_OK);
    work_result_fini(&got);
    assert_string_equal(copy.id, "a");
    assert_int_equal(copy.epoch, 5);
    assert_true(copy.is_success);
    assert_int_equal(copy.code, 3);
    assert_int_equal(copy.began_unix_ms, -1);
    assert_int_equal(copy.ended_unix_ms, 2);
    assert_int_equal(copy.output_bytes, 2);
    assert_memory_equal(copy.output, "o\n", 2);
    work_result_fini(&copy);
    assert_int_equal(work_result_read(&got, "{}", 2, &error), BATON_EPROTO);
    assert_string_equal(error.message, "id is missing: must be a string");
    buffer_fini(&bytes);
}

static void a_copied_result_has_the_tail_of_a_long_output(void **state)
{
    struct work_result result = {.id = (char *)"a", .output_bytes = WORK_OUTPUT_MAX + 5}, copy;

    result.output = calloc(1, result.output_bytes);
    memcpy(result.output + WORK_OUTPUT_MAX, "the end", 5);
    result.output[5] = 'b';
    assert_int_equal(work_result_copy(&copy, &result), BATON_OK);
    assert_int_equal(copy.output_bytes, WORK_OUTPUT_MAX);
    assert_int_equal(copy.output[0], 'b');
    assert_memory_equal(copy.output + WORK_OUTPUT_MAX - 5, "the e", 5);
    work_result_fini(&copy);
    free(result.output);
}

static void numbers_of_messages_are_ordered_by_leader_first(void **state)
{
    assert_true(work_number_before((struct work_number){1, 9}, (struct work_number){2, 1}));
    assert_true(work_number_before((struct work_number){2, 1}, (struct work_number){2, 2}));
    assert_false(work_number_before((struct work_number){2, 2}, (struct work_number){2, 2}));
    assert_false(work_number_before((struct work_number){2, 1}, (struct work_number){1, 9}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_message_comes_back_as_it_was),
        cmocka_unit_test(each_member_of_a_wrong_type_or_missing_is_named),
        cmocka_unit_test(what_is_out_of_range_is_refused_with_its_path),
        cmocka_unit_test(what_is_too_large_is_refused),
        cmocka_unit_test(more_claims_than_are_read_are_refused),
        cmocka_unit_test(what_no_reader_takes_is_not_written),
        cmocka_unit_test(a_stored_result_comes_back),
        cmocka_unit_test(a_copied_result_has_the_tail_of_a_long_output),
        cmocka_unit_test(numbers_of_messages_are_ordered_by_leader_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
