/* What a request says of itself, and whether it can be read in one way only.
 *
 * A question has no body, and a request of HTTP/1.1 names one host. libwebsockets lets it be
 * otherwise, takes what stands for a number as well as it can, and waits for a body for ever. A
 * request that a proxy in front of us ends elsewhere than we do would become two here, one of them
 * a stranger's (RFC 9112, 11.2).
 */
#ifndef DETECTOR_WEB_REQUEST_H
#define DETECTOR_WEB_REQUEST_H

#include <libwebsockets.h>
#include <stdbool.h>

enum { WEB_HEADER_MAX = 512 };

/* Copies a header without the blanks around it; true if there is something in it. One that is too
 * long reads as a text that is never right. */
bool web_header(struct lws *wsi, enum lws_token_indexes which, char ret[static WEB_HEADER_MAX]);

/* True if the header is there, be it empty. */
bool web_has_header(struct lws *wsi, enum lws_token_indexes which);

/* Whether `option` stands between the commas of `list`, in capitals or small letters. */
bool web_list_has(const char *list, const char *option);

/* NULL, or why this GET or HEAD is none and what follows it cannot be one either: answer with 400
 * and hang up. The text needs no escapes. */
const char *web_request_fault(struct lws *wsi);

/* True if the other side wants nothing after this request (Connection: close). libwebsockets hears
 * it only where it stands alone. */
bool web_request_is_last(struct lws *wsi);

#endif
