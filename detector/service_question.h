/* Parses a GET of /camera/… Pure: path and query are bytes from outside.
 *
 *   /camera/{display;camera}/image[?crop=1][&width=W][&boxes=1][&source=stream|snapshot]
 *   /camera/{display;camera}/stream[?crop=1][&width=W][&boxes=1][&source=stream|snapshot]
 *
 * The path is decoded already. A wrong value is an error and never a guess; an unknown parameter is
 * ignored, because browsers and caches add some.
 */
#ifndef DETECTOR_SERVICE_QUESTION_H
#define DETECTOR_SERVICE_QUESTION_H

#include "detector/image.h"

#include <stdbool.h>

#define QUESTION_PREFIX "/camera/"

enum { QUESTION_WIDTH_MIN = 16 };

struct camera_question {
    bool is_stream;
    char identifier[PROTOCOL_IDENTIFIER_MAX + 1]; /* valid, UTF-8, without "." and ".." segments */
    bool is_cropped, has_boxes;
    enum image_source source; /* IMAGE_SHOWN: the one that the subscription shows */
    int width;                /* 0: its own; else QUESTION_WIDTH_MIN to IMAGE_PIXELS_MAX */
};

/* True if camera_question_parse() handles it. */
bool camera_question_is_one(const char *path);

/* Returns BATON_ENOENT for another page, or BATON_EINVAL for a malformed name or a wrong value. */
int camera_question_parse(struct camera_question *ret, const char *path, const char *query,
                          struct baton_error *reterr);

/* True if an If-None-Match names the tag, which is quoted: among others, as a weak one, or by a
 * star. */
bool question_has_tag(const char *if_none_match, const char *tag);

#endif
