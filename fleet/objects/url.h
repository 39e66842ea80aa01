/* URLs of objects: checked as a worker will check them, and masked. Pure.
 *
 *   SCHEME://USER:PASSWORD@HOST:PORT/PATH?QUERY
 *            ^^^^^^^^^^^^^           ^^^^^^^^^^ of a camera, which takes passwords there too;
 *                                         ^^^^^ of a model, whose URL may be signed
 */
#ifndef FLEET_OBJECTS_URL_H
#define FLEET_OBJECTS_URL_H

#include "base/error.h"

#include <stdbool.h>

#define FLEET_MASK "***"

enum fleet_url_use {
    FLEET_URL_STREAM,  /* rtsp, rtsps */
    FLEET_URL_PICTURE, /* http, https */
    FLEET_URL_MODEL,   /* http, https, s3://BUCKET/KEY */
    FLEET_URL_WORKER,  /* ws, wss, and with dns+ or srv+ before them */
};

/* BATON_EINVAL: "FIELD: what is wrong, and what is allowed". The message quotes nothing of the URL
 * but a scheme of letters. A URL with the mask in it is refused. */
int fleet_url_check(const char *url, enum fleet_url_use use, const char *field,
                    struct baton_error *reterr);

/* The URL as people may see it, for free(); NULL: out of memory. Of any text: what cannot be read
 * as a URL is the mask alone. */
char *fleet_url_masked(const char *url, enum fleet_url_use use);

/* A text as a message may quote it: cut to fewer than FLEET_SHOWN_MAX bytes; the mask if it may be
 * a URL, which somebody wrote where none belongs. Returns `ret`. */
enum { FLEET_SHOWN_MAX = 64 };
const char *fleet_text_shown(const char *text, char ret[static FLEET_SHOWN_MAX]);

/* Whether two URLs of workers, both checked, lead to the same place: scheme and host in letters of
 * either case, the scheme's port or none, "/" or no path. */
bool fleet_url_is_same(const char *a, const char *b);

/* Whether it has a password before its host. */
bool fleet_url_has_password(const char *url);

#endif
