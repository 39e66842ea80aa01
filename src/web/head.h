/* The head of an HTTP/1 message, as http-parser reports it: what the readers of requests and of
 * responses share.
 *
 *   text: the target of a request, or "", NUL, then for each header name NUL value NUL
 *
 * Headers stay as they were sent, but for the blanks around a value. What http-parser lets pass and
 * another program may read in another way has a fault: a folded line, a blank in a name, a NUL.
 *
 * Pure.
 */
#ifndef WEB_HEAD_H
#define WEB_HEAD_H

#include "base/buffer.h"

#include <http_parser.h>
#include <stdbool.h>
#include <stddef.h>

enum { WEB_HEAD_MAX = 65535 }; /* bytes */

enum web_read {
    WEB_READ_MORE,    /* all bytes were taken, and the message is not complete */
    WEB_READ_WHOLE,   /* complete; the bytes behind it are not taken */
    WEB_READ_REFUSED, /* nothing that follows on this connection is a message */
};

enum web_head_part { WEB_HEAD_FIRST, WEB_HEAD_NAME, WEB_HEAD_VALUE };

struct web_head {
    struct buffer text;
    size_t max;   /* bytes as sent */
    size_t bytes; /* so far */
    bool is_read; /* what comes now is the body */
    enum web_head_part part;
    unsigned char before; /* the latest byte */
};

/* The first header of that name; NULL: there is none. */
const char *web_header(const struct web_head *head, const char *name);
size_t web_header_count(const struct web_head *head, const char *name);
/* Whether an item of the lists in all headers of that name is `item`, in any case of letters. */
bool web_header_lists(const struct web_head *head, const char *name, const char *item);

/* ---- For the readers ------------------------------------------------------------------------- */

/* max: at most WEB_HEAD_MAX */
void web_head_init(struct web_head *head, size_t max);
void web_head_fini(struct web_head *head);
void web_head_next(struct web_head *head); /* of the next message */

/* Gives the parser bytes up to the head's limit, or to a folded line. Returns how many it took. If
 * the parser took all of those, the head is not complete, and more follows, *ret_fault says why it
 * cannot become complete. */
size_t web_head_feed(struct web_head *head, http_parser *parser,
                     const http_parser_settings *settings, const char *data, size_t bytes,
                     const char **ret_fault);

/* Of the parser's callbacks. NULL, or the fault. */
const char *web_head_name(struct web_head *head, const char *at, size_t bytes);
const char *web_head_value(struct web_head *head, const char *at, size_t bytes);
const char *web_head_end(struct web_head *head, const http_parser *parser);

/* What http-parser found wrong in the head or in the chunks; NULL: the first line. */
const char *web_head_explain(enum http_errno code);

#endif
