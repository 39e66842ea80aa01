#include "detector/service_question.h"

#include "base/error.h"

#include <jansson.h>
#include <string.h>

#define IMAGE_SUFFIX  "/image"
#define STREAM_SUFFIX "/stream"

static bool is_utf8(const char *text)
{
    json_t *string = json_string(text); /* refuses overlong forms and surrogates, too */
    json_decref(string);
    return string != NULL;
}

static bool ends_with(const char *text, const char *end)
{
    size_t bytes = strlen(text);
    size_t end_bytes = strlen(end);

    return bytes >= end_bytes && strcmp(text + bytes - end_bytes, end) == 0;
}

static int read_path(struct camera_question *ret, const char *path, struct baton_error *reterr)
{
    size_t prefix = strlen(QUESTION_PREFIX);
    const char *suffix = ends_with(path, STREAM_SUFFIX) ? STREAM_SUFFIX : IMAGE_SUFFIX;
    size_t bytes = strlen(path);

    if (!ends_with(path, suffix)) {
        return error_set(reterr, BATON_ENOENT,
                         "no such page: /camera/{display;camera}/image or /stream");
    }
    /* Recognizes a malformed name, such as /camera/../x/image after a server has resolved it. */
    if (strncmp(path, QUESTION_PREFIX, prefix) != 0 || bytes < prefix + strlen(suffix)) {
        return error_set(reterr, BATON_EINVAL,
                         "a camera's page is /camera/{display;camera}/image or /stream, and its "
                         "name has no . or .. between slashes");
    }
    ret->is_stream = suffix[1] == 's';
    bytes -= prefix + strlen(suffix);
    if (bytes > PROTOCOL_IDENTIFIER_MAX) {
        return error_set(reterr, BATON_EINVAL, "the camera's name is too long: at most %d bytes",
                         PROTOCOL_IDENTIFIER_MAX);
    }
    memcpy(ret->identifier, path + prefix, bytes);
    ret->identifier[bytes] = '\0';
    if (!is_utf8(ret->identifier) || !identifier_is_valid(ret->identifier)) {
        return error_set(reterr, BATON_EINVAL,
                         "a camera is named displayIdentifier;cameraIdentifier");
    }
    return 0;
}

struct part {
    const char *name, *value; /* not terminated */
    size_t name_bytes, value_bytes;
};

static bool is_named(const struct part *part, const char *name)
{
    return part->name_bytes == strlen(name) && memcmp(part->name, name, part->name_bytes) == 0;
}

static int read_flag(const struct part *part, bool *ret, struct baton_error *reterr)
{
    if (part->value_bytes != 1 || (part->value[0] != '0' && part->value[0] != '1')) {
        return error_set(reterr, BATON_EINVAL, "%.*s must be 0 or 1", (int)part->name_bytes,
                         part->name);
    }
    *ret = part->value[0] == '1';
    return 0;
}

/* Reads a few digits, without a sign or a blank, so that nothing overflows. */
static int read_width(const struct part *part, int *ret, struct baton_error *reterr)
{
    int width = 0;

    for (size_t i = 0; i < part->value_bytes; i++) {
        if (part->value[i] < '0' || part->value[i] > '9' || width > IMAGE_PIXELS_MAX) {
            width = 0;
            break;
        }
        width = width * 10 + (part->value[i] - '0');
    }
    if (width < QUESTION_WIDTH_MIN || width > IMAGE_PIXELS_MAX) {
        return error_set(reterr, BATON_EINVAL, "width must be %d to %d pixels", QUESTION_WIDTH_MIN,
                         IMAGE_PIXELS_MAX);
    }
    *ret = width;
    return 0;
}

static int read_source(const struct part *part, enum image_source *ret, struct baton_error *reterr)
{
    static const char *const names[IMAGE_SOURCES] = {"stream", "snapshot"};

    for (enum image_source source = 0; source < IMAGE_SOURCES; source++) {
        if (part->value_bytes == strlen(names[source]) &&
            memcmp(part->value, names[source], part->value_bytes) == 0) {
            *ret = source;
            return 0;
        }
    }
    return error_set(reterr, BATON_EINVAL, "source must be stream or snapshot");
}

static int read_part(struct camera_question *ret, const struct part *part,
                     struct baton_error *reterr)
{
    if (is_named(part, "crop")) {
        return read_flag(part, &ret->is_cropped, reterr);
    }
    if (is_named(part, "boxes")) {
        return read_flag(part, &ret->has_boxes, reterr);
    }
    if (is_named(part, "source")) {
        return read_source(part, &ret->source, reterr);
    }
    if (is_named(part, "width")) {
        return read_width(part, &ret->width, reterr);
    }
    return 0;
}

bool camera_question_is_one(const char *path)
{
    return strncmp(path, QUESTION_PREFIX, strlen(QUESTION_PREFIX)) == 0 ||
           ends_with(path, IMAGE_SUFFIX) || ends_with(path, STREAM_SUFFIX);
}

int camera_question_parse(struct camera_question *ret, const char *path, const char *query,
                          struct baton_error *reterr)
{
    struct camera_question question = {.source = IMAGE_SHOWN};
    int rc = read_path(&question, path, reterr);

    while (rc == 0 && *query != '\0') {
        size_t bytes = strcspn(query, "&");
        size_t name_bytes = strcspn(query, "=&");
        size_t gap = name_bytes < bytes; /* the equals sign */
        struct part part = {query, query + name_bytes + gap, name_bytes, bytes - name_bytes - gap};
        rc = read_part(&question, &part, reterr);
        query += bytes + (query[bytes] == '&');
    }
    if (rc == 0) {
        *ret = question;
    }
    return rc;
}

bool question_has_tag(const char *if_none_match, const char *tag)
{
    const char *at = if_none_match + strspn(if_none_match, " \t");

    return strcmp(at, "*") == 0 || strstr(at, tag) != NULL; /* no other tag has ours in it */
}
