/* Parses a GET of /camera/… (service.h). Pure: path and query are bytes from outside.
 *
 * The path is one of web_path(), the query as it was sent, without a fault of web_query_fault(). A
 * wrong value is an error and never a guess; an unknown parameter is ignored, because browsers and
 * caches add some.
 */
#ifndef DETECTOR_SERVICE_QUESTION_H
#define DETECTOR_SERVICE_QUESTION_H

#include "detector/image.h"

#include <stdbool.h>

enum { QUESTION_WIDTH_MIN = 16 };

struct camera_question {
    bool is_stream;
    char identifier[PROTOCOL_IDENTIFIER_MAX + 1]; /* valid, without "." and ".." segments */
    bool is_cropped, has_boxes;
    enum image_source source; /* IMAGE_SHOWN: the one that the subscription shows */
    int width;                /* 0: its own; else QUESTION_WIDTH_MIN to IMAGE_PIXELS_MAX */
};

/* Returns BATON_ENOENT for another page, or BATON_EINVAL for a malformed name or a wrong value. The
 * message needs no escapes in JSON. */
int camera_question_parse(struct camera_question *ret, const char *path, const char *query,
                          struct baton_error *reterr);

/* True if an If-None-Match names the tag, which is quoted: among others, as a weak one, or by a
 * star. */
bool question_has_tag(const char *if_none_match, const char *tag);

#endif
