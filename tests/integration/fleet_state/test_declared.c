/* The file of --config while memory is short. Linked with --wrap=engine_state, engine_is_ready,
 * json_array_append_new, json_object_set_new, and without an engine. */
#include "stand.h"

#include "fleet/program/declared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char before[] = "cameras: [{id: c1, rtspUrl: rtsp://10.0.0.1/1},"
                             " {id: c2, rtspUrl: rtsp://10.0.0.2/1}]\n";
static const char after[] = "cameras: [{id: c1, rtspUrl: rtsp://10.0.0.1/2}]\n";
static int
    failing; /* of the next lists of what the file has, the one that finds no memory for c1 */

struct fleet_state *__wrap_engine_state(const struct engine *engine);
bool __wrap_engine_is_ready(const struct engine *engine);
int __real_json_array_append_new(json_t *array, json_t *value);
int __wrap_json_array_append_new(json_t *array, json_t *value);
int __real_json_object_set_new(json_t *object, const char *key, json_t *value);
int __wrap_json_object_set_new(json_t *object, const char *key, json_t *value);

struct fleet_state *__wrap_engine_state(const struct engine *engine)
{
    return peers[0].state;
}

bool __wrap_engine_is_ready(const struct engine *engine)
{
    return true;
}

static bool is_short(const char *id, json_t *value)
{
    bool fails = id != NULL && strcmp(id, "c1") == 0 && failing > 0 && --failing == 0;

    if (fails) {
        json_decref(value);
    }
    return fails;
}

int __wrap_json_array_append_new(json_t *array, json_t *value)
{
    return is_short(json_string_value(value), value) ? -1
                                                     : __real_json_array_append_new(array, value);
}

int __wrap_json_object_set_new(json_t *object, const char *key, json_t *value)
{
    return is_short(key, value) ? -1 : __real_json_object_set_new(object, key, value);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static const struct fleet_object *camera(const char *id)
{
    return fleet_state_object(peers[0].state, FLEET_CAMERA, id, NULL);
}

static bool is_as_after(void)
{
    return camera("c1") != NULL && strstr(camera("c1")->camera.rtsp_url, "/2") != NULL &&
           camera("c2") == NULL;
}

static void a_file_that_is_read_while_memory_is_short_deletes_nothing_that_it_has(void **state)
{
    enum { LISTS = 3 }; /* what it has, the same to look things up, and what is noted of it */
    char path[] = "/tmp/baton-declared-XXXXXX";
    struct declared *declared;
    bool has_gone = false;

    assert_int_equal(close(mkstemp(path)), 0);
    stand_ready(0);
    write_file(path, before);
    ASSERT_OK(declared_open(&declared, NULL, path, NULL, failure));
    for (int list = 1; list <= LISTS && !has_gone; list++) {
        AWAIT(camera("c1") != NULL && camera("c2") != NULL);
        failing = list;
        write_file(path, after);
        AWAIT(camera("c1") == NULL || is_as_after());
        has_gone = camera("c1") == NULL;
        write_file(path, before);
    }
    declared_close(declared);
    (void)unlink(path);
    assert_false(has_gone);
    assert_int_equal(failing, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAND_TEST(a_file_that_is_read_while_memory_is_short_deletes_nothing_that_it_has)};

    (void)stand_choose("memory");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
