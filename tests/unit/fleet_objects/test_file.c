#include "fleet/objects/file.h"

#include "cmocka_all.h"
#include "fleet/objects/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CANARY "c4nary"

static const char whole[] = "# a comment\n"
                            "subscriptions:\n"
                            "  - {display: d1, camera: 007, model: 1, needs: gpu zone=a}\n"
                            "  - id: d1;cam-2\n"
                            "    model: 1\n"
                            "    paused: yes\n"
                            "models:\n"
                            "  - {id: 1, name: 5, url: \"http://h/m\"}\n"
                            "cameras:\n"
                            "  - id: 007\n"
                            "    rtspUrl: rtsp://u:p@h/s\n"
                            "    snapshotUrl:\n"
                            "  - id: cam-2\n"
                            "    rtspUrl: rtsp://h/s#1\n"
                            "displays:\n"
                            "  - id: d1\n"
                            "workers:\n"
                            "  - ws://worker-1:8000\n";

static int load(struct fleet_file *file, const char *text, struct baton_error *error)
{
    return fleet_file_read(file, "fleet.yaml", text, strlen(text), error);
}

static void the_field_decides_the_type_of_a_value(void **state)
{
    struct fleet_file file = {0};
    struct baton_error error = {0};

    if (load(&file, whole, &error) != BATON_OK) {
        fail_msg("%s", error.message);
    }
    assert_int_equal(file.count, 6);
    assert_int_equal(file.objects[0]->kind, FLEET_MODEL);
    assert_string_equal(file.objects[0]->model.name, "5");
    assert_string_equal(file.objects[1]->id, "007");
    assert_null(file.objects[1]->camera.snapshot_url);
    assert_string_equal(file.objects[2]->camera.rtsp_url, "rtsp://h/s#1");
    assert_string_equal(file.objects[4]->id, "d1;007");
    assert_string_equal(file.objects[4]->subscription.needs, "gpu zone=a");
    assert_true(file.objects[5]->subscription.is_paused);
    assert_int_equal(file.worker_count, 1);
    assert_string_equal(file.workers[0], "ws://worker-1:8000");
    fleet_file_fini(&file);
    assert_int_equal(file.count, 0);
}

static void json_is_read_as_well(void **state)
{
    struct fleet_file file = {0};
    struct baton_error error = {0};

    if (load(&file,
             "{\"displays\":[{\"id\":\"d\\u00e9\",\"name\":\"\\\"Pump\\\"\"}],\n"
             " \"cameras\":[], \"workers\":null}\n",
             &error) != BATON_OK) {
        fail_msg("%s", error.message);
    }
    assert_int_equal(file.count, 1);
    assert_string_equal(file.objects[0]->id, "d\xc3\xa9");
    assert_string_equal(file.objects[0]->display.name, "\"Pump\"");
    fleet_file_fini(&file);
}

/* What a person may get wrong: the line, the wrong value, and the way out. */
static const struct {
    const char *text, *says;
} bad[] = {
    {"", "fleet.yaml:1: the file is empty: for no objects at all write \"subscriptions: []\""},
    {"# nothing\n", "fleet.yaml:1: the file is empty"},
    {"cameras\n", "fleet.yaml:1: must be a mapping of lists"},
    {"- id: a\n", "fleet.yaml:1: must be a mapping of lists"},
    {"displays: []\ncamera: []\n", "fleet.yaml:2: camera: no such list; cameras is meant?"},
    {"fridges: []\n", "fleet.yaml:1: fridges: no such list; there are models, cameras"},
    {"cameras: []\n\ncameras: []\n", "fleet.yaml:3: cameras: stands on line 1 already"},
    {"cameras:\n  cam-1:\n    rtspUrl: rtsp://h\n",
     "fleet.yaml:2: cameras: must be a list: begin each camera with \"- id: …\""},
    {"cameras: cam-1\n", "fleet.yaml:1: cameras: must be a list"},
    {"workers:\n  a: ws://h:1\n", "fleet.yaml:2: workers: must be a list of URLs: begin each line"},
    {"cameras:\n  - cam-1\n", "fleet.yaml:2: cameras[0]: must have fields, like \"- id: …\""},
    {"cameras:\n  - id:cam-1\n", "cameras[0]: must have fields, like \"- id: …\"; a colon needs a"},
    {"cameras:\n  - - id: a\n", "fleet.yaml:2: cameras[0]: is a list in the list"},
    {"displays:\n  - id: a\n  - id: b\n    colour: red\n",
     "fleet.yaml:4: displays[1].colour: no such field of a display"},
    {"cameras:\n  - id: a\n    rtsp-url: x\n",
     "fleet.yaml:3: cameras[0].rtsp-url: no such field of a camera; rtspUrl is meant?"},
    {"cameras:\n  - id: a\n    rtspUrl: rtsp://h\n    rtspUrl: rtsp://i\n",
     "fleet.yaml:4: cameras[0].rtspUrl: stands on line 3 already: keep one"},
    {"cameras:\n  - id: a\n    rtspUrl: http://h\n",
     "fleet.yaml:3: cameras[0].rtspUrl: begins with http://: must be rtsp:// or rtsps://"},
    {"cameras:\n  - rtspUrl: rtsp://h\n", "fleet.yaml:2: cameras[0].id: is missing"},
    {"cameras:\n  - id: a\n    rtspUrl: rtsp://h\n    snapshotInterval: 5s\n",
     "fleet.yaml:4: cameras[0].snapshotInterval: \"5s\" must be in milliseconds, without a unit: "
     "5000"},
    {"cameras:\n  - id: a\n    rtspUrl: rtsp://h\n    snapshotInterval: 0\n",
     "fleet.yaml:4: cameras[0].snapshotInterval: is 0: must be 1 to 86400000"},
    {"models:\n  - {id: lpr, name: a, url: http://h}\n",
     "fleet.yaml:2: models[0].id: \"lpr\" must be a whole number, the number that workers report"},
    {"models:\n  - {id: 010, name: a, url: http://h}\n", "models[0].id: \"010\" must be a whole"},
    {"models:\n  - {id: 99999999999999999999, name: a, url: http://h}\n", "must be a whole number"},
    {"models:\n  - {id: 1, name: a, url: http://h/m}\n  - id: 1\n    name: b\n    url: "
     "http://h/m\n",
     "fleet.yaml:3: models[1].id: \"1\" stands on line 2 already: keep one of them"},
    {"displays:\n  - id: [a]\n", "fleet.yaml:2: displays[0].id: takes one value, not a list"},
    {"displays:\n  - id: {a: b}\n", "displays[0].id: takes one value, not a mapping"},
    {"displays:\n  - id: *a\n", "fleet.yaml:2: displays[0].id: aliases (*) are not supported"},
    {"displays:\n  - id: &a b\n", "displays[0].id: anchors and tags are not supported"},
    {"displays:\n  - &a\n    id: b\n", "displays[0]: anchors and tags are not supported"},
    {"displays: &a []\n", "displays: anchors and tags are not supported"},
    {"displays:\n  - id: !!str a\n", "anchors and tags"},
    {"displays:\n  - <<: {id: a}\n", "displays[0].<<: no such field of a display"},
    {"displays: []\n---\ncameras: []\n", "a second document"},
    {"displays:\n\t- id: a\n", "fleet.yaml:2: has a tab; indent with spaces"},
    {"displays: []\n%YAML 1.2\n", "fleet.yaml:2: YAML directives"},
    {"displays:\n  - id: \xff\n", "fleet.yaml:2: not UTF-8"},
    {"displays:\n  - id: \"a\n", "no valid YAML here or in the lines below"},
    {"displays:\n  - id: a: b\n", "no valid YAML here or in the lines below"},
    {"displays:\n  - id: a\n   name: b\n", "no valid YAML here or in the lines below"},
    {"subscriptions:\n  - {display: d, camera: c, model: 1}\n",
     "fleet.yaml:2: subscriptions[0].display: \"d\" is none of the file's displays; add it"},
    {"displays: [{id: display-1}]\nsubscriptions:\n  - camera: c\n    model: 1\n    "
     "display: display_2\n",
     "fleet.yaml:5: subscriptions[0].display: \"display_2\" is none of the file's displays; "
     "\"display-1\" is meant?"},
    {"displays: [{id: d}]\ncameras: [{id: c, rtspUrl: \"rtsp://h\"}]\nsubscriptions:\n"
     "  - display: d\n    camera: c\n    model: lpr\n",
     "fleet.yaml:6: subscriptions[0].model: \"lpr\" must be a whole number, id of a model"},
    {"displays: [{id: d}]\ncameras: [{id: c, rtspUrl: \"rtsp://h\"}]\nsubscriptions:\n"
     "  - display: d\n    camera: c\n    model: 5\n",
     "fleet.yaml:6: subscriptions[0].model: \"5\" is none of the file's models; add it to them"},
    {"subscriptions:\n  - display: d\n    needs: [gpu]\n",
     "fleet.yaml:3: subscriptions[0].needs: labels stand in one value, a blank between two"},
    {"subscriptions:\n  - display: d\n    paused: perhaps\n",
     "fleet.yaml:3: subscriptions[0].paused: \"perhaps\" must be true or false"},
    {"workers:\n  - http://h:1\n", "fleet.yaml:2: workers[0]: begins with http://: must be ws://"},
    {"workers:\n  - url: ws://h:1\n", "fleet.yaml:2: workers[0]: must be one URL, like ws://"},
    {"workers:\n  - ws://h:1\n  - ws://h:1\n",
     "fleet.yaml:3: workers[1]: stands there already, as workers[0]"},
};

static void what_a_person_gets_wrong_is_refused_with_line_value_and_way_out(void **state)
{
    struct fleet_file file = {0};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct baton_error error = {0};
        if (load(&file, bad[i].text, &error) != BATON_EINVAL ||
            strncmp(error.message, "fleet.yaml:", 11) != 0 || !strstr(error.message, bad[i].says)) {
            fail_msg("%zu: %s", i, error.message);
        }
        assert_null(file.objects);
    }
}

/* A password stands in each line that a mistake may be in. */
static void no_message_has_a_password(void **state)
{
    static const char *const mistakes[] = {
        "cameras:\n  - id: a\n    rtspUrl: http://u:%s@h\n",
        "cameras:\n  - id: a\n    rtspUrl: rtsp://u:%s @h\n",
        "cameras:\n  - id: a\n    rtspUrl: rtsp://u:x: %s@h\n",
        "cameras:\n  - id: a\n    rtspUrl: \"rtsp://u:%s@h\n",
        "cameras:\n  - id: a\n    rtspUrl: [rtsp://u:%s@h]\n",
        "cameras:\n  - id: a\n    rtspUrl: *%s\n",
        "cameras:\n  - id: a\n    rtspUrl: !%s x\n",
        "cameras:\n  - id: a\n    rtspUrl: rtsp://u:/%s@h\n",
        "cameras:\n  - id: a\n    rtspUrl: %s\n",
        "cameras:\n  - id:a\n    rtspUrl: rtsp://u:%s@h\n",
        "cameras:\n  - rtsp://u:%s@h\n",
        "models:\n  - {id: 1, name: a, url: \"ftp://h?X=%s\"}\n",
        "workers:\n  - ws://u:%s@h:1\n",
        "cameras:\n  - id: rtsp://u:%s@h\n    rtspUrl: a\n", /* in another line's place */
        "displays:\n  - id: d\n    rtsp://u:%s@h: x\n",
        "displays:\n  - id: http://h/x?pwd=%s\n",
        "rtsp://u:%s@h: x\n",
        "models:\n  - id: http://u:%s@h\n",
        "cameras:\n  - id: a\n    snapshotInterval: u:%s@h\n",
        "subscriptions:\n  - {display: \"rtsp://u:%s@h\", camera: c, model: 1}\n",
        "subscriptions:\n  - {id: \"rtsp://u:%s@h\", model: 1}\n",
        "subscriptions:\n  - {id: d;c, model: 1, paused: \"rtsp://u:%s@h\"}\n",
        "subscriptions:\n  - {id: d;c, model: 1, needs: \"rtsp://u:%s@h\"}\n",
    };
    struct fleet_file file = {0};
    char text[256];

    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        struct baton_error error = {0};
        char *at = strstr(mistakes[i], "%s");
        (void)snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - mistakes[i]), mistakes[i], CANARY,
                       at + 2);
        assert_int_equal(load(&file, text, &error), BATON_EINVAL);
        if (strstr(error.message, CANARY)) {
            fail_msg("%zu: %s", i, error.message);
        }
    }
}

/* ---- From the disk --------------------------------------------------------------------------- */

static void make_file(char path[static 64], const char *text, mode_t mode)
{
    FILE *file;

    (void)snprintf(path, 64, "/tmp/baton-fleet-file-%d", (int)getpid());
    file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void a_password_that_everybody_may_read_is_refused(void **state)
{
    struct fleet_file file = {0};
    struct baton_error error = {0};
    char path[64];

    make_file(path, whole, 0644);
    assert_int_equal(fleet_file_load(&file, path, &error), BATON_EAUTH);
    assert_non_null(strstr(error.message, "camera 007"));
    assert_non_null(strstr(error.message, "chmod o-r"));
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(fleet_file_load(&file, path, &error), BATON_OK);
    fleet_file_fini(&file);
    (void)unlink(path);
    assert_int_equal(fleet_file_load(&file, path, &error), BATON_ENOENT);
}

static void what_is_no_file_is_refused_at_once(void **state)
{
    struct fleet_file file = {0};
    struct baton_error error = {0};
    char path[64];

    make_file(path, whole, 0640);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0); /* nobody writes into it */
    for (size_t i = 0; i < 3; i++) {
        const char *const paths[] = {path, "/tmp", "/dev/zero"};

        assert_int_equal(fleet_file_load(&file, paths[i], &error), BATON_EINVAL);
        assert_non_null(strstr(error.message, "must be a file"));
    }
    assert_int_equal(unlink(path), 0);
}

static void a_file_has_the_hash_of_its_text(void **state)
{
    struct fleet_file file = {0};
    struct baton_error error = {0};

    assert_int_equal(load(&file, "displays: []\n", &error), BATON_OK);
    assert_string_equal(file.hash, /* printf 'displays: []\n' | sha256sum */
                        "2f4e7497332e3e97dd1a9e8fa99b58e6cbb4390a452f687ea4c3b1547295bcd2");
    fleet_file_fini(&file);
}

static void the_example_is_a_whole_fleet(void **state)
{
    struct fleet_file file = {0};
    struct baton_error error = {0};
    size_t counts[FLEET_KINDS] = {0};

    if (fleet_file_load(&file, BATON_SOURCE "/examples/fleet.yaml", &error) != BATON_OK) {
        fail_msg("%s", error.message);
    }
    for (size_t i = 0; i < file.count; i++) {
        counts[file.objects[i]->kind]++;
    }
    for (int kind = 0; kind < FLEET_KINDS; kind++) {
        assert_true(counts[kind] >= 2);
    }
    assert_true(file.worker_count >= 2);
    fleet_file_fini(&file);
}

/* Each field of each kind has its row, with its range. */
static void the_page_has_every_field_with_its_range(void **state)
{
    static char page[64 * 1024];
    char begin[64], range[64];
    FILE *file = fopen(BATON_SOURCE "/docs/fleet.md", "re");
    size_t bytes;

    assert_non_null(file);
    bytes = fread(page, 1, sizeof(page) - 1, file);
    assert_true(bytes > 0 && bytes < sizeof(page) - 1);
    assert_int_equal(fclose(file), 0);
    for (int kind = 0; kind < FLEET_KINDS; kind++) {
        const char *part;
        (void)snprintf(begin, sizeof(begin), "### %s\n", fleet_kind_plural((enum fleet_kind)kind));
        part = strstr(page, begin);
        assert_non_null(part);
        for (const struct fleet_field *field = fleet_fields((enum fleet_kind)kind); field->name;
             field++) {
            const char *row, *found;
            (void)snprintf(begin, sizeof(begin), "\n| `%s` | ", field->name);
            (void)snprintf(range, sizeof(range), "%lld to %lld", (long long)field->low,
                           (long long)field->high);
            row = strstr(part, begin);
            found = row ? strstr(row, field->type == FLEET_BOOLEAN ? "`true` or `false`" : range)
                        : NULL;
            if (!found || found > strchr(row + 1, '\n')) {
                fail_msg("%s.%s: %s", fleet_kind_name((enum fleet_kind)kind), field->name, range);
            }
        }
    }
}

/* The first example of the page, as it stands there. */
static void the_example_of_the_page_is_right(void **state)
{
    static char page[64 * 1024];
    FILE *file = fopen(BATON_SOURCE "/docs/fleet.md", "re");
    struct fleet_file read = {0};
    struct baton_error error = {0};
    char *text, *end;

    assert_non_null(file);
    assert_true(fread(page, 1, sizeof(page) - 1, file) > 0);
    assert_int_equal(fclose(file), 0);
    text = strstr(page, "```yaml\n");
    assert_non_null(text);
    text += strlen("```yaml\n");
    end = strstr(text, "```");
    assert_non_null(end);
    *end = '\0';
    if (load(&read, text, &error) != BATON_OK) {
        fail_msg("%s", error.message);
    }
    assert_int_equal(read.count, 4);
    fleet_file_fini(&read);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_field_decides_the_type_of_a_value),
        cmocka_unit_test(json_is_read_as_well),
        cmocka_unit_test(what_a_person_gets_wrong_is_refused_with_line_value_and_way_out),
        cmocka_unit_test(no_message_has_a_password),
        cmocka_unit_test(a_password_that_everybody_may_read_is_refused),
        cmocka_unit_test(what_is_no_file_is_refused_at_once),
        cmocka_unit_test(a_file_has_the_hash_of_its_text),
        cmocka_unit_test(the_example_is_a_whole_fleet),
        cmocka_unit_test(the_page_has_every_field_with_its_range),
        cmocka_unit_test(the_example_of_the_page_is_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
