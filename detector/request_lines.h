/* Reads along with what comes over a connection of HTTP/1, and tells which request is none though
 * libwebsockets would let it pass, or make another one of it.
 *
 * It decodes a path and walks it ("/a/../b" is "/b") before anybody sees it, drops the beginning of
 * a name that walks behind a semicolon, and takes "&" for ";" and "+" for a blank; a header without
 * a colon goes on to the next one, wherever that is, and the headers between are lost. Refused is
 *
 * - a path that has ".", ".." or nothing between two slashes, in codes (%2e, %2f) too, but for
 *   slashes that it begins with; that has an ampersand or a plus sign that is no code, or half a
 *   code;
 * - a method in small letters;
 * - a header line without a name, with a blank before its colon, or that goes on with the last one;
 * - a carriage return alone, and other control characters;
 * - a body, which is what smuggles: also where the header is one that libwebsockets lost.
 *
 * Whatever else is wrong with a request is found elsewhere. Pure: bytes in, in pieces of any size.
 */
#ifndef DETECTOR_REQUEST_LINES_H
#define DETECTOR_REQUEST_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REQUEST_NAME_MAX = 18 }; /* of a header that matters: "transfer-encoding" */

enum request_part {
    PART_BEGIN, /* of a request: zero, as all else before the first byte */
    PART_METHOD,
    PART_PATH,
    PART_REST, /* of the request line */
    PART_LINE, /* a header's, or the empty one */
    PART_NAME,
    PART_VALUE,
    PART_OVER, /* what comes is no request: an upgrade came before it */
};

struct request_lines {
    uint64_t begun;    /* requests */
    uint64_t bad;      /* number of the first that is none, from 1; 0: none yet */
    const char *fault; /* of that one; needs no escapes */
    enum request_part part;
    bool is_after_cr;
    bool is_upgrade; /* the request asks for one */
    bool has_path;   /* a byte of it came */
    bool is_deep;    /* one that is no slash came */
    int code;        /* digits of a percent code that are wanted yet */
    unsigned coded;
    unsigned segment, dots; /* bytes since the last slash; how many of them are dots */
    char name[REQUEST_NAME_MAX];
    unsigned name_bytes;
};

/* Returns how many of the bytes are of requests: behind one for an upgrade there are none, as it is
 * granted or the connection ends. */
size_t request_lines_read(struct request_lines *lines, const void *bytes, size_t count);

/* NULL, or why the request of this number (the first is 1), or one before it, is none.
 * `is_upgrade`: what libwebsockets takes it for, which has to be what it says. */
const char *request_lines_fault(const struct request_lines *lines, uint64_t number,
                                bool is_upgrade);

#endif
