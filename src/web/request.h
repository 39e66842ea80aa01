/* Reads the requests of one HTTP/1 connection, each byte once, by http-parser.
 *
 * The target and the headers stay as the client sent them: nothing is decoded, walked or joined. A
 * request that two programs could read in two ways (two lengths, a length and chunks, no Host or
 * two of them, a folded line, a blank in a header's name) is refused, because a proxy in front of
 * the server may end it elsewhere than the server does (RFC 9112, 11.2).
 *
 * Pure: bytes go in, in pieces of any size, and a request or a refusal comes out.
 */
#ifndef WEB_REQUEST_H
#define WEB_REQUEST_H

#include "base/buffer.h"

#include <http_parser.h>
#include <stdbool.h>
#include <stddef.h>

enum { WEB_HEAD_MAX = 65535, WEB_PATH_MAX = 1024 }; /* bytes */

enum web_read {
    WEB_READ_MORE,    /* all bytes were taken, and the request is not complete */
    WEB_READ_REQUEST, /* complete; the bytes behind it are not taken */
    WEB_READ_REFUSED, /* nothing that follows on this connection is a request */
};

/* One request at a time; read the fields after WEB_READ_REQUEST. */
struct web_request {
    const char *method; /* static text, "GET" */
    const char *target; /* as sent, for example "/a%2Fb?x=1" */
    bool is_head;       /* the answer has no body */
    bool is_last;       /* the client expects the connection to end after the answer */
    bool is_http_1_0;
    bool is_upgrade;    /* "Connection: upgrade" with an Upgrade header */
    struct buffer body; /* without the marks of the chunks */
    /* After WEB_READ_REFUSED: */
    unsigned status;    /* 400, 405, 413 or 431 */
    const char *reason; /* static text, in JSON without escapes */

    /* The reader's own. */
    http_parser parser;
    struct buffer head;   /* target NUL, then for each header name NUL value NUL */
    size_t head_max;      /* bytes of a head as sent */
    size_t head_bytes;    /* so far */
    size_t hosts;         /* headers of that name */
    bool is_in_value;     /* the latest piece of a header was of its value */
    bool is_head_read;    /* what comes now is the body */
    bool is_complete;     /* the request can be read */
    bool expects_bytes;   /* the client waits for "100 Continue" before it sends the body */
    unsigned char before; /* the latest byte of the head */
};

/* body_max: bytes; 0: only GET and HEAD are accepted, both without a body. */
void web_request_init(struct web_request *request, size_t head_max, size_t body_max);
void web_request_fini(struct web_request *request);

/* After WEB_READ_REQUEST, call web_request_next() before the following read. */
enum web_read web_request_read(struct web_request *request, const void *data, size_t bytes,
                               size_t *ret_taken);
void web_request_next(struct web_request *request);

/* True while no byte of a request has come. */
bool web_request_is_empty(const struct web_request *request);

/* The first header of that name, without the blanks around the value; NULL: there is none. */
const char *web_request_header(const struct web_request *request, const char *name);
size_t web_request_count(const struct web_request *request, const char *name);
/* Whether an item of the lists in all headers of that name is `item`, in any case of letters. */
bool web_request_lists(const struct web_request *request, const char *name, const char *item);

/* The path of a target, decoded. NULL, or why it has none: a code that is none, a control
 * character, a segment "." or ".." or an empty one behind another (in codes, too), or more than
 * WEB_PATH_MAX bytes. Slashes in front of the first segment are one. */
const char *web_path(const char *target, char ret[static WEB_PATH_MAX]);

/* The byte at `*at`, decoded, and moves behind it; -1: a malformed code. */
int web_decode(const char **at);

/* The query behind the path, or "". */
const char *web_query(const char *target);

#endif
