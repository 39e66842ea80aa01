#include "detector/service_question.h"

#include "base/error.h"
#include "base/url.h"
#include "base/value.h"

#include <stdio.h>
#include <string.h>

#define PREFIX "/camera/"

static int read_path(struct camera_question *ret, const char *path, struct baton_error *reterr)
{
    const char *end = strrchr(path, '/');
    ptrdiff_t bytes; /* of the name; of "/camera/image" it would be -1 */

    if (strncmp(path, PREFIX, strlen(PREFIX)) != 0 ||
        (strcmp(end, "/image") != 0 && strcmp(end, "/stream") != 0)) {
        return error_set(reterr, BATON_ENOENT,
                         "no such page: there are /camera/{display;camera}/image and /stream, "
                         "/status, /metrics, /healthz and /readyz");
    }
    bytes = end - path - (ptrdiff_t)strlen(PREFIX);
    if (bytes > PROTOCOL_IDENTIFIER_MAX) {
        return error_set(reterr, BATON_EINVAL, "the camera's name is too long: at most %d bytes",
                         PROTOCOL_IDENTIFIER_MAX);
    }
    (void)snprintf(ret->identifier, sizeof(ret->identifier), "%.*s", bytes > 0 ? (int)bytes : 0,
                   path + strlen(PREFIX));
    ret->is_stream = strcmp(end, "/stream") == 0;
    return identifier_is_valid(ret->identifier)
               ? 0
               : error_set(reterr, BATON_EINVAL,
                           "a camera is named displayIdentifier;cameraIdentifier");
}

/* Errors do not quote the value, which is a stranger's. */
static int read_pair(struct camera_question *ret, const char *name, const char *value,
                     struct baton_error *reterr)
{
    bool is_crop = strcmp(name, "crop") == 0;
    int64_t number;

    if (is_crop || strcmp(name, "boxes") == 0) {
        if (value_number(value, 0, 1, &number, NULL) != 0) {
            return error_set(reterr, BATON_EINVAL, "%s must be 0 or 1", name);
        }
        *(is_crop ? &ret->is_cropped : &ret->has_boxes) = number == 1;
    } else if (strcmp(name, "width") == 0) {
        if (value_number(value, QUESTION_WIDTH_MIN, IMAGE_PIXELS_MAX, &number, NULL) != 0) {
            return error_set(reterr, BATON_EINVAL, "width must be %d to %d pixels",
                             QUESTION_WIDTH_MIN, IMAGE_PIXELS_MAX);
        }
        ret->width = (int)number;
    } else if (strcmp(name, "source") == 0) {
        if (value_choice(value, "stream|snapshot", NULL) < 0) {
            return error_set(reterr, BATON_EINVAL, "source must be stream or snapshot");
        }
        ret->source = strcmp(value, "stream") == 0 ? IMAGE_STREAM : IMAGE_SNAPSHOT;
    }
    return 0;
}

int camera_question_parse(struct camera_question *ret, const char *path, const char *query,
                          struct baton_error *reterr)
{
    struct camera_question question = {.source = IMAGE_SHOWN};
    int rc = read_path(&question, path, reterr);
    struct url_pair pair;

    while (rc == 0 && url_next(&query, &pair)) {
        char name[16], value[32];
        /* What does not fit is a parameter of others, or no value of ours. */
        if (url_decode(name, sizeof(name), pair.key, pair.key_bytes) == 0) {
            bool fits = url_decode(value, sizeof(value), pair.value, pair.value_bytes) == 0;
            rc = read_pair(&question, name, fits ? value : "", reterr);
        }
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
