#include "detector/web_request.h"

#include <stdio.h>
#include <string.h>

#define BLANKS " \t"

bool web_has_header(struct lws *wsi, enum lws_token_indexes which)
{
    char nothing[1];

    return lws_hdr_total_length(wsi, which) > 0 ||
           lws_hdr_copy_fragment(wsi, nothing, sizeof(nothing), which, 0) == 0;
}

/* Of the whole is one byte more for each time that the header came again. */
static bool came_again(struct lws *wsi, enum lws_token_indexes which)
{
    return lws_hdr_total_length(wsi, which) > lws_hdr_fragment_length(wsi, which, 0);
}

bool web_header(struct lws *wsi, enum lws_token_indexes which, char ret[static WEB_HEADER_MAX])
{
    int bytes = lws_hdr_copy(wsi, ret, WEB_HEADER_MAX, which);
    size_t blanks, length;

    if (bytes < 0) {
        (void)snprintf(ret, WEB_HEADER_MAX, "(too long)"); /* there, and nothing that is allowed */
        return true;
    }
    blanks = strspn(ret, BLANKS);
    length = strlen(ret + blanks);
    while (length > 0 && strchr(BLANKS, ret[blanks + length - 1]) != NULL) {
        length--;
    }
    memmove(ret, ret + blanks, length);
    ret[length] = '\0';
    return length > 0;
}

bool web_list_has(const char *list, const char *option)
{
    size_t bytes = strlen(option);

    while (*list != '\0') {
        list += strspn(list, BLANKS ",");
        if (strncasecmp(list, option, bytes) == 0) {
            const char *behind = list + bytes + strspn(list + bytes, BLANKS);
            if (*behind == ',' || *behind == '\0') {
                return true;
            }
        }
        list += strcspn(list, ",");
    }
    return false;
}

/* The version is all behind the second blank. A line break in the URI, and be it encoded, ends the
 * request line for libwebsockets; a blank ends the URI. */
static const char *version_fault(struct lws *wsi)
{
    char version[WEB_HEADER_MAX];

    if (!web_header(wsi, WSI_TOKEN_HTTP, version)) {
        return "the path has a blank or a line break in it, or no version follows it";
    }
    if (strcmp(version, "HTTP/1.1") == 0 || strcmp(version, "HTTP/1.0") == 0) {
        return NULL;
    }
    return strncmp(version, "HTTP/", 5) == 0 && strchr(version, ' ') == NULL
               ? "only HTTP/1.1 and HTTP/1.0 are spoken"
               : "the path has a blank or a line break in it";
}

/* An empty one is allowed: so says who asks for no host. */
static const char *host_fault(struct lws *wsi)
{
    char host[WEB_HEADER_MAX], version[WEB_HEADER_MAX];

    if (!web_has_header(wsi, WSI_TOKEN_HOST)) {
        (void)web_header(wsi, WSI_TOKEN_HTTP, version);
        return strcmp(version, "HTTP/1.1") == 0 ? "a request of HTTP/1.1 needs a Host" : NULL;
    }
    if (came_again(wsi, WSI_TOKEN_HOST)) {
        return "a request has one Host";
    }
    if (!web_header(wsi, WSI_TOKEN_HOST, host)) {
        return NULL;
    }
    for (const char *at = host; *at != '\0'; at++) {
        if (*at <= ' ' || *at >= 0x7f || strchr("()\"#,/<>?@\\^`{|}", *at) != NULL) {
            return "the Host is not the name or address of one";
        }
    }
    return NULL;
}

static const char *body_fault(struct lws *wsi)
{
    char length[WEB_HEADER_MAX];
    bool is_none = !web_has_header(wsi, WSI_TOKEN_HTTP_CONTENT_LENGTH);

    if (!is_none && !came_again(wsi, WSI_TOKEN_HTTP_CONTENT_LENGTH) &&
        web_header(wsi, WSI_TOKEN_HTTP_CONTENT_LENGTH, length)) {
        is_none = strspn(length, "0") == strlen(length);
    }
    return is_none && !web_has_header(wsi, WSI_TOKEN_HTTP_TRANSFER_ENCODING)
               ? NULL
               : "a question has no body";
}

const char *web_request_fault(struct lws *wsi)
{
    const char *fault = version_fault(wsi);

    fault = fault != NULL ? fault : host_fault(wsi);
    return fault != NULL ? fault : body_fault(wsi);
}

bool web_request_is_last(struct lws *wsi)
{
    char options[WEB_HEADER_MAX];

    return web_header(wsi, WSI_TOKEN_CONNECTION, options) && web_list_has(options, "close");
}
