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

#include "web/head.h"

enum { WEB_PATH_MAX = 1024 }; /* bytes */

/* One request at a time; read the fields after WEB_READ_WHOLE. */
struct web_request {
    const char *method; /* static text, "GET" */
    const char *target; /* as sent, for example "/a%2Fb?x=1" */
    bool is_head;       /* the answer has no body */
    bool is_last;       /* the client expects the connection to end after the answer */
    bool is_http_1_0;
    bool is_upgrade; /* "Connection: upgrade" with an Upgrade header */
    struct web_head head;
    struct buffer body; /* without the marks of the chunks */
    /* After WEB_READ_REFUSED: */
    unsigned status;    /* 400, 405, 413 or 431 */
    const char *reason; /* static text, in JSON without escapes */

    /* How many bytes the body may have, by the head; more than body_max has no effect. NULL:
     * body_max. Set after web_request_init(). */
    size_t (*limit)(void *userdata, const struct web_request *request);
    void *limit_userdata;

    /* The reader's own. */
    http_parser parser;
    size_t body_max;
    bool is_complete;   /* the request can be read */
    bool expects_bytes; /* the client waits for "100 Continue" before it sends the body */
};

/* body_max: bytes; 0: only GET and HEAD are accepted, both without a body. */
void web_request_init(struct web_request *request, size_t head_max, size_t body_max);
void web_request_fini(struct web_request *request);

/* After WEB_READ_WHOLE, call web_request_next() before the following read. */
enum web_read web_request_read(struct web_request *request, const void *data, size_t bytes,
                               size_t *ret_taken);
void web_request_next(struct web_request *request);

/* The path of a target, decoded. NULL, or why it has none: a code that is none, a control
 * character, bytes that are not UTF-8, a segment "." or ".." or an empty one behind another (in
 * codes, too), or more than WEB_PATH_MAX bytes. Slashes in front of the first segment are one. */
const char *web_path(const char *target, char ret[static WEB_PATH_MAX]);

/* The query behind the path, or ""; base/url.h has its pairs. */
const char *web_query(const char *target);
/* NULL, or why no pair of it should be read: a code that is none, a control character. */
const char *web_query_fault(const char *target);

#endif
