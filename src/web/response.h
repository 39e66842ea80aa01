/* Reads the response to one HTTP/1 request, each byte once, by http-parser.
 *
 * A response says where it ends, by a length or by chunks: one that ends with the connection is
 * refused, because nobody could tell it from one that was cut off. Interim ones (1xx) are skipped;
 * all heads together have one limit.
 *
 * Pure: bytes go in, in pieces of any size, and a response or a refusal comes out.
 */
#ifndef WEB_RESPONSE_H
#define WEB_RESPONSE_H

#include "web/head.h"

/* Read the fields after WEB_READ_WHOLE. */
struct web_response {
    unsigned status; /* 101: what comes behind it is of the other protocol */
    struct web_head head;
    struct buffer body; /* without the marks of the chunks */
    /* After WEB_READ_REFUSED: */
    int code;           /* BATON_EPROTO or BATON_ETOOBIG */
    const char *reason; /* static text */

    /* The reader's own. */
    http_parser parser;
    bool has_no_body; /* it answers a HEAD */
    bool is_complete;
};

/* body_max: bytes. */
void web_response_init(struct web_response *response, bool is_to_head, size_t head_max,
                       size_t body_max);
void web_response_fini(struct web_response *response);

enum web_read web_response_read(struct web_response *response, const void *data, size_t bytes,
                                size_t *ret_taken);

#endif
