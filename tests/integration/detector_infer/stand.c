#include "integration/detector_infer/stand.h"

#include "cmocka_all.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ARCHIVE_BYTES = 1 << 20 };

struct zip_part stand_model(const char *name)
{
    struct stat status;
    char path[512];
    void *bytes;
    int fd;

    (void)snprintf(path, sizeof(path), "%s/%s", MODELS, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0) {
        fail_msg("%s: cannot be opened", path);
    }
    bytes = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    assert_ptr_not_equal(bytes, MAP_FAILED);
    (void)close(fd);
    return (struct zip_part){.name = name, .text = bytes, .bytes = (size_t)status.st_size};
}

int stand_archive(const char *text, const struct zip_part *models, size_t count)
{
    struct zip_part parts[1 + PIPELINE_MODELS_MAX] = {{.name = PIPELINE_FILE, .text = text}};
    struct buffer bytes;
    int fd;

    memcpy(parts + 1, models, count * sizeof(*models));
    buffer_init(&bytes, ARCHIVE_BYTES);
    zip_make(&bytes, parts, 1 + count, NULL);
    fd = zip_file_of(bytes.data, bytes.bytes);
    buffer_fini(&bytes);
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

char *stand_text(const struct change *changes)
{
    json_t *root = json_load_file(PIPELINE, 0, NULL);
    char *text;

    for (; changes->path; changes++) {
        apply(root, changes);
    }
    text = json_dumps(root, 0);
    json_decref(root);
    return text;
}

struct pipeline stand_pipeline(const struct change *changes)
{
    char *text = stand_text(changes);
    struct baton_error error = {0};
    struct pipeline pipeline;

    if (pipeline_parse(&pipeline, text, strlen(text), &error) != 0) {
        fail_msg("%s", error.message);
    }
    free(text);
    return pipeline;
}

bool stand_is_onnxruntime(const struct engine *engine)
{
    return strncmp(engine_name(engine), "onnxruntime", 11) == 0;
}
