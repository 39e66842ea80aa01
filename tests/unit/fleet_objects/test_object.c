#include "fleet/objects/object.h"

#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#define CANARY  "c4nary"
#define LONG_ID "0123456789012345678901234567890123456789012345678901234567890123456789"

static json_t *json_of(const char *text)
{
    json_t *json = json_loads(text, 0, NULL);

    assert_non_null(json);
    return json;
}

static int try_read(struct fleet_object **ret, enum fleet_kind kind, const char *id,
                    const char *text, struct baton_error *error)
{
    json_t *json = json_of(text);
    int code = fleet_object_read(ret, kind, id, json, error);

    json_decref(json);
    return code;
}

static struct fleet_object *read_one(enum fleet_kind kind, const char *id, const char *text)
{
    struct fleet_object *object = NULL;
    struct baton_error error = {0};

    if (try_read(&object, kind, id, text, &error) != BATON_OK) {
        fail_msg("%s: %s", text, error.message);
    }
    return object;
}

static const struct {
    enum fleet_kind kind;
    const char *text;
} examples[] = {
    {FLEET_MODEL, "{\"id\":101,\"name\":\"US-LPR\",\"url\":\"s3://models/us-lpr.mpta\"}"},
    {FLEET_CAMERA, "{\"id\":\"cam-1\",\"rtspUrl\":\"rtsp://u:p@h/s\",\"snapshotUrl\":"
                   "\"http://h/1\",\"snapshotInterval\":5000}"},
    {FLEET_CAMERA, "{\"id\":\"cam-2\",\"snapshotUrl\":\"http://h/1\"}"},
    {FLEET_DISPLAY, "{\"id\":\"display-1\",\"name\":\"Pump 4\"}"},
    {FLEET_DISPLAY, "{\"id\":\"a/b\"}"},
    {FLEET_SUBSCRIPTION, "{\"id\":\"d;c\",\"display\":\"d\",\"camera\":\"c\",\"model\":101,"
                         "\"cropX1\":0,\"cropY1\":1,\"cropX2\":1920,\"cropY2\":1080,"
                         "\"priority\":-5,\"needs\":\"gpu zone=a\",\"paused\":true}"},
};

static void what_is_read_is_printed_the_same(void **state)
{
    for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
        struct fleet_object *object = read_one(examples[i].kind, NULL, examples[i].text);
        json_t *json = fleet_object_json(object, false);
        char *text = json_dumps(json, JSON_COMPACT);
        assert_string_equal(text, examples[i].text);
        free(text);
        json_decref(json);
        fleet_object_unref(object);
    }
}

static void the_id_may_stand_in_the_path_alone(void **state)
{
    struct fleet_object *model =
        read_one(FLEET_MODEL, "101", "{\"name\":\"m\",\"url\":\"http://h/m\"}");
    struct fleet_object *pair = read_one(FLEET_SUBSCRIPTION, "d;c", "{\"model\":1}");
    struct fleet_object *other =
        read_one(FLEET_SUBSCRIPTION, NULL, "{\"display\":\"d\",\"camera\":\"c\",\"model\":1}");

    assert_int_equal(model->model.number, 101);
    assert_string_equal(pair->subscription.display, "d");
    assert_string_equal(pair->subscription.camera, "c");
    assert_string_equal(other->id, "d;c");
    assert_true(fleet_object_equal(pair, other));
    fleet_object_unref(model);
    fleet_object_unref(pair);
    fleet_object_unref(other);
}

static void what_is_wrong_is_refused_by_its_field(void **state)
{
    static const struct {
        enum fleet_kind kind;
        const char *id, *text, *says;
    } bad[] = {
        {FLEET_MODEL, NULL, "{\"id\":\"101\",\"name\":\"m\",\"url\":\"http://h\"}",
         "id: is \"101\": must be a whole number"},
        {FLEET_MODEL, NULL, "{\"id\":1.5,\"name\":\"m\",\"url\":\"http://h\"}",
         "id: is a fraction"},
        {FLEET_MODEL, NULL, "{\"id\":-1,\"name\":\"m\",\"url\":\"http://h\"}",
         "id: is -1: must be 0 to 9007199254740992"},
        {FLEET_MODEL, "007", "{\"name\":\"m\",\"url\":\"http://h/m\"}", "id: is \"007\": must be"},
        {FLEET_MODEL, "7", "{\"id\":8,\"name\":\"m\",\"url\":\"http://h/m\"}",
         "id: is \"8\", but the path says \"7\""},
        {FLEET_MODEL, NULL, "{\"id\":1,\"url\":\"http://h/m\"}", "name: is missing"},
        {FLEET_MODEL, NULL, "{\"id\":1,\"name\":\"\",\"url\":\"http://h/m\"}", "name: is 0 bytes"},
        {FLEET_MODEL, NULL, "{\"id\":1,\"name\":\"a\\u0007\",\"url\":\"http://h/m\"}",
         "name: holds control"},
        {FLEET_CAMERA, NULL, "{\"id\":\"a;b\",\"rtspUrl\":\"rtsp://h\"}",
         "id: is \"a;b\": must be"},
        {FLEET_CAMERA, NULL, "{\"id\":\"..\",\"rtspUrl\":\"rtsp://h\"}", "id: is \"..\""},
        {FLEET_CAMERA, NULL, "{\"id\":\"a//b\",\"rtspUrl\":\"rtsp://h\"}", "id: is"},
        {FLEET_CAMERA, NULL, "{\"id\":\"/a\",\"rtspUrl\":\"rtsp://h\"}", "id: is"},
        {FLEET_CAMERA, NULL, "{\"id\":\"a\"}", "rtspUrl: is missing: a camera has"},
        {FLEET_CAMERA, NULL, "{\"id\":\"a\",\"rtspUrl\":\"\"}", "rtspUrl: is empty: leave"},
        {FLEET_CAMERA, NULL, "{\"id\":\"a\",\"rtspUrl\":5}", "rtspUrl: is an integer"},
        {FLEET_CAMERA, NULL, "{\"id\":\"a\",\"rtsp_url\":\"x\"}",
         "rtsp_url: no such field of a camera; rtspUrl is meant?"},
        {FLEET_CAMERA, NULL, "{\"id\":\"a\",\"colour\":\"x\"}",
         "colour: no such field of a camera; it has id, rtspUrl, snapshotUrl, snapshotInterval"},
        {FLEET_CAMERA, NULL, "{\"id\":\"a\",\"rtspUrl\":\"rtsp://h\",\"snapshotInterval\":0}",
         "snapshotInterval: is 0: must be 1 to 86400000"},
        {FLEET_DISPLAY, NULL, "{}", "id: is missing"},
        {FLEET_DISPLAY, NULL, "{\"id\":null}", "id: is missing"},
        {FLEET_DISPLAY, NULL, "[]", "id: a display is an object of JSON, and this is an array"},
        {FLEET_SUBSCRIPTION, NULL, "{\"display\":\"d\",\"model\":1}", "id: is missing"},
        {FLEET_SUBSCRIPTION, NULL, "{\"id\":\"dc\",\"model\":1}", "id: is \"dc\": must be DISPLAY"},
        {FLEET_SUBSCRIPTION, NULL, "{\"id\":\"d;/c\",\"model\":1}", "id: is \"d;/c\""},
        {FLEET_SUBSCRIPTION, NULL, "{\"id\":\"d;c\",\"display\":\"e\",\"model\":1}",
         "display: is \"e\", but the id is \"d;c\""},
        {FLEET_SUBSCRIPTION, NULL, "{\"id\":\"d;c\",\"camera\":\"e\",\"model\":1}",
         "camera: is \"e\", but the id is \"d;c\""},
        {FLEET_SUBSCRIPTION, NULL, "{\"display\":\"a;b\",\"camera\":\"e\",\"model\":1}",
         "display: is \"a;b\""},
        {FLEET_SUBSCRIPTION, NULL, "{\"id\":\"d;c\"}", "model: is missing"},
        {FLEET_SUBSCRIPTION, NULL, "{\"id\":\"d;c\",\"model\":1,\"cropX1\":5,\"cropX2\":5}",
         "cropX2: is 5: must be larger than cropX1, which is 5"},
        {FLEET_SUBSCRIPTION, NULL, "{\"id\":\"d;c\",\"model\":1,\"cropY2\":65536}",
         "cropY2: is 65536: must be 0 to 65535"},
        {FLEET_SUBSCRIPTION, NULL, "{\"id\":\"d;c\",\"model\":1,\"needs\":\"a  b\"}",
         "needs: is \"a  b\": must be labels"},
        {FLEET_SUBSCRIPTION, NULL, "{\"id\":\"d;c\",\"model\":1,\"needs\":\"a \"}", "needs: is"},
        {FLEET_SUBSCRIPTION, NULL, "{\"id\":\"d;c\",\"model\":1,\"needs\":[\"gpu\"]}",
         "needs: is an array: must be a string"},
        {FLEET_SUBSCRIPTION, NULL, "{\"id\":\"d;c\",\"model\":1,\"paused\":\"yes\"}",
         "paused: is \"yes\": must be true or false"},
        {FLEET_SUBSCRIPTION, NULL, "{\"id\":\"d;c\",\"model\":1,\"priority\":1000001}",
         "priority: is 1000001"},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct fleet_object *object = NULL;
        struct baton_error error = {0};
        assert_int_equal(try_read(&object, bad[i].kind, bad[i].id, bad[i].text, &error),
                         BATON_EINVAL);
        assert_null(object);
        if (strncmp(error.message, bad[i].says, strlen(bad[i].says)) != 0) {
            fail_msg("%zu: %s", i, error.message);
        }
    }
}

static void control_characters_of_two_bytes_are_refused_too(void **state)
{
    static const char *const bad[] = {"{\"id\":\"a\",\"name\":\"a\\u009b31m\"}",
                                      "{\"id\":\"a\\u0085b\"}"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct fleet_object *object = NULL;
        struct baton_error error = {0};
        assert_int_equal(try_read(&object, FLEET_DISPLAY, NULL, bad[i], &error), BATON_EINVAL);
        assert_non_null(strstr(error.message, "holds control"));
    }
}

static void display_and_camera_together_have_a_maximum(void **state)
{
    static const char fits[] =
        "{\"model\":1,\"display\":\"" LONG_ID LONG_ID "\",\"camera\":\"" LONG_ID "\"}";
    static const char not [] =
        "{\"model\":1,\"display\":\"" LONG_ID LONG_ID "\",\"camera\":\"" LONG_ID LONG_ID "\"}";
    struct fleet_object *object = read_one(FLEET_SUBSCRIPTION, NULL, fits);
    struct baton_error error = {0};

    fleet_object_unref(object);
    assert_int_equal(try_read(&object, FLEET_SUBSCRIPTION, NULL, not, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "256 bytes at most"));
}

static void a_stored_object_may_have_fields_of_a_newer_version(void **state)
{
    json_t *json = json_of("{\"id\":\"d\",\"colour\":\"blue\"}");
    struct fleet_object *object = NULL;
    struct baton_error error = {0};

    assert_int_equal(fleet_object_read(&object, FLEET_DISPLAY, "d", json, &error), BATON_EINVAL);
    assert_int_equal(fleet_object_read_stored(&object, FLEET_DISPLAY, "d", json, &error), BATON_OK);
    fleet_object_unref(object);
    json_decref(json);
}

static int patch_of(struct fleet_object **ret, const struct fleet_object *object, const char *text,
                    struct baton_error *error)
{
    json_t *patch = json_of(text);
    int code = fleet_object_patch(ret, object, patch, error);

    json_decref(patch);
    return code;
}

static void a_patch_changes_what_it_names_and_null_takes_away(void **state)
{
    struct fleet_object *before = read_one(FLEET_CAMERA, NULL, examples[1].text), *after = NULL;
    struct baton_error error = {0};

    assert_int_equal(
        patch_of(&after, before, "{\"snapshotInterval\":7,\"snapshotUrl\":null}", &error),
        BATON_OK);
    assert_string_equal(after->camera.rtsp_url, "rtsp://u:p@h/s");
    assert_null(after->camera.snapshot_url);
    assert_int_equal(after->camera.snapshot_interval_ms, 7);
    assert_false(fleet_object_equal(before, after));
    fleet_object_unref(after);

    after = NULL;
    assert_int_equal(patch_of(&after, before, "{\"id\":\"other\"}", &error), BATON_EINVAL);
    assert_int_equal(patch_of(&after, before, "{\"rtspUrl\":{\"a\":1}}", &error), BATON_EINVAL);
    assert_int_equal(patch_of(&after, before, "[]", &error), BATON_EINVAL);
    assert_int_equal(patch_of(&after, before, "{\"rtspUrl\":null,\"snapshotUrl\":null}", &error),
                     BATON_EINVAL);
    assert_null(after);
    fleet_object_unref(before);
}

static void what_was_masked_is_no_url_to_write_back(void **state)
{
    struct fleet_object *camera =
        read_one(FLEET_CAMERA, NULL,
                 "{\"id\":\"a\",\"rtspUrl\":\"rtsp://u:" CANARY "@h/" CANARY
                 "\",\"snapshotUrl\":\"http://h/x?pwd=" CANARY "\"}");
    struct fleet_object *again = NULL;
    json_t *masked = fleet_object_json(camera, true);
    char *text = json_dumps(masked, 0);
    struct baton_error error = {0};

    assert_null(strstr(text, CANARY));
    assert_int_equal(fleet_object_read(&again, FLEET_CAMERA, "a", masked, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "rtspUrl: holds ***"));
    free(text);
    json_decref(masked);
    fleet_object_unref(camera);
}

static void any_field_that_differs_makes_another_object(void **state)
{
    static const char *const patches[] = {
        "{\"model\":2}",    "{\"cropX1\":3}",      "{\"cropY2\":null}", "{\"priority\":1}",
        "{\"needs\":null}", "{\"needs\":\"gpu\"}", "{\"paused\":false}"};
    struct fleet_object *before = read_one(FLEET_SUBSCRIPTION, NULL, examples[5].text), *after;
    struct baton_error error = {0};

    for (size_t i = 0; i < sizeof(patches) / sizeof(patches[0]); i++) {
        assert_int_equal(patch_of(&after, before, patches[i], &error), BATON_OK);
        assert_false(fleet_object_equal(before, after));
        fleet_object_unref(after);
    }
    assert_int_equal(patch_of(&after, before, "{}", &error), BATON_OK);
    assert_true(fleet_object_equal(before, after));
    fleet_object_unref(after);
    fleet_object_unref(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_is_printed_the_same),
        cmocka_unit_test(the_id_may_stand_in_the_path_alone),
        cmocka_unit_test(what_is_wrong_is_refused_by_its_field),
        cmocka_unit_test(control_characters_of_two_bytes_are_refused_too),
        cmocka_unit_test(display_and_camera_together_have_a_maximum),
        cmocka_unit_test(a_stored_object_may_have_fields_of_a_newer_version),
        cmocka_unit_test(a_patch_changes_what_it_names_and_null_takes_away),
        cmocka_unit_test(what_was_masked_is_no_url_to_write_back),
        cmocka_unit_test(any_field_that_differs_makes_another_object),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
