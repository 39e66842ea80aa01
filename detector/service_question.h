/* What a GET of /camera/… asks for. Pure: path and query are a stranger's bytes, taken apart here.
 *
 *   /camera/{display;camera}/image[?crop=1][&width=W][&boxes=1][&source=stream|snapshot]
 *   /camera/{display;camera}/stream[?crop=1][&width=W][&boxes=1][&source=stream|snapshot]
 *
 * The path is decoded already. A value that makes no sense is an error and never a guess; a
 * parameter that is not known is left alone, because browsers and caches add some.
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
    enum image_source source; /* IMAGE_SHOWN: what the subscription shows */
    int width; /* 0: as large as it is; else QUESTION_WIDTH_MIN to IMAGE_PIXELS_MAX */
};

/* Whether camera_question_parse() is to answer for it. */
bool camera_question_is_one(const char *path);

/* BATON_ENOENT: no such page. BATON_EINVAL: a malformed name or a value that makes no sense. */
int camera_question_parse(struct camera_question *ret, const char *path, const char *query,
                          struct baton_error *reterr);

/* Whether an If-None-Match names the tag, which is quoted: among others, as a weak one, or by a
 * star.
 */
bool question_has_tag(const char *if_none_match, const char *tag);

#endif
