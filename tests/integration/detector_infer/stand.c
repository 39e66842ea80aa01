#include "integration/detector_infer/stand.h"

#include "cmocka_all.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int stand_model(const char *name)
{
    char path[512];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/%s", MODELS, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        fail_msg("%s: cannot be opened", path);
    }
    return fd;
}

static void apply(json_t *at, const struct change *change)
{
    char path[64];
    char *rest = path, *key;
    int code;

    (void)snprintf(path, sizeof(path), "%s", change->path);
    for (key = strsep(&rest, "."); rest; key = strsep(&rest, ".")) {
        at = json_is_array(at) ? json_array_get(at, strtoul(key, NULL, 10))
                               : json_object_get(at, key);
    }
    if (change->json) {
        code = json_object_set_new(at, key, json_loads(change->json, JSON_DECODE_ANY, NULL));
    } else {
        code = json_is_array(at) ? json_array_remove(at, strtoul(key, NULL, 10))
                                 : json_object_del(at, key);
    }
    if (code) {
        fail_msg("%s: cannot be changed", change->path);
    }
}

struct pipeline stand_pipeline(const struct change *changes)
{
    json_t *root = json_load_file(PIPELINE, 0, NULL);
    struct baton_error error = {0};
    struct pipeline pipeline;
    char *text;

    for (; changes->path; changes++) {
        apply(root, changes);
    }
    text = json_dumps(root, 0);
    if (pipeline_parse(&pipeline, text, strlen(text), &error) != 0) {
        fail_msg("%s", error.message);
    }
    free(text);
    json_decref(root);
    return pipeline;
}

struct engine *stand_engine(enum engine_kind kind)
{
    struct engine *engine = NULL;
    struct baton_error error;

    if (engine_start(&engine, &(struct engine_options){.library.kind = kind}, &error) != 0) {
        print_message("not tested: %s\n", error.message);
        return NULL;
    }
    return engine;
}

bool stand_is_onnxruntime(const struct engine *engine)
{
    return strncmp(engine_name(engine), "onnxruntime", 11) == 0;
}

struct engine *stand_started(const struct engine_options *options)
{
    struct engine *engine = NULL;
    struct baton_error error = {0};

    if (engine_start(&engine, options, &error) != 0) {
        fail_msg("%s", error.message);
    }
    return engine;
}

struct session *stand_opened(struct engine *engine, const char *model, const struct shape *largest)
{
    struct session *session = NULL;
    struct baton_error error = {0};
    int fd = stand_model(model);

    if (session_open(&session, engine, fd, largest, &error) != 0) {
        fail_msg("%s: %s: %s", engine_name(engine), model, error.message);
    }
    (void)close(fd);
    return session;
}

static bool is_box(const struct box *box, const struct drawn *drawn, float tolerance)
{
    return box->label == drawn->colour && fabsf(box->x - (float)drawn->x) <= tolerance &&
           fabsf(box->y - (float)drawn->y) <= tolerance &&
           fabsf(box->x + box->width - (float)(drawn->x + drawn->width)) <= tolerance &&
           fabsf(box->y + box->height - (float)(drawn->y + drawn->height)) <= tolerance;
}

void stand_assert_boxes(const struct box *boxes, int box_count, const struct drawn *drawn,
                        int drawn_count, float tolerance)
{
    for (int i = 0; i < drawn_count; i++) {
        int found = 0;
        for (int k = 0; k < box_count; k++) {
            found += is_box(&boxes[k], &drawn[i], tolerance);
        }
        if (found != 1) {
            for (int k = 0; k < box_count; k++) {
                print_message("box: %d at %.2f,%.2f, %.2fx%.2f\n", boxes[k].label, boxes[k].x,
                              boxes[k].y, boxes[k].width, boxes[k].height);
            }
            fail_msg("%d boxes for what is drawn at %d,%d", found, drawn[i].x, drawn[i].y);
        }
    }
    assert_int_equal(box_count, drawn_count);
}
