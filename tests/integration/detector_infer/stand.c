#include "integration/detector_infer/stand.h"

#include "cmocka_all.h"

#include <fcntl.h>
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

bool stand_is_onnxruntime(const struct engine *engine)
{
    return strncmp(engine_name(engine), "onnxruntime", 11) == 0;
}
