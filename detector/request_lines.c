#include "detector/request_lines.h"

#include <string.h>

#define BLANKS  " \t"
#define NO_CODE "each percent sign is followed by two hexadecimal digits"
#define NO_LINE "a header is a name, a colon at once and a value, on one line"

static void refuse(struct request_lines *lines, const char *fault)
{
    if (lines->bad == 0 && lines->begun > 0) {
        lines->bad = lines->begun;
        lines->fault = fault;
    }
}

const char *request_lines_fault(const struct request_lines *lines, uint64_t number, bool is_upgrade)
{
    if (lines->bad != 0 && lines->bad <= number) {
        return lines->fault;
    }
    return !is_upgrade && lines->part == PART_OVER && lines->begun <= number
               ? "an Upgrade has a value, and stands behind no header that hides it"
               : NULL;
}

static bool is_in(unsigned char byte, const char *set)
{
    return byte != '\0' && strchr(set, byte) != NULL;
}

static bool is_letter(unsigned char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

/* ---- the request line ---- */

static int digit_of(unsigned char byte)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    const char *at = byte != '\0' ? strchr(digits, byte) : NULL;

    return at == NULL ? -1 : at - digits < 16 ? (int)(at - digits) : (int)(at - digits) - 6;
}

static void end_segment(struct request_lines *lines)
{
    if (lines->segment == lines->dots && lines->segment <= 2 &&
        (lines->segment > 0 || lines->is_deep)) {
        refuse(lines, "the path has a . or .. or nothing between two slashes");
    }
    lines->is_deep = lines->is_deep || lines->segment > 0;
    lines->segment = lines->dots = 0;
}

static void end_path(struct request_lines *lines)
{
    if (lines->code > 0) {
        refuse(lines, NO_CODE);
    }
    if (lines->segment > 0) { /* a slash may be the last of it: that is another page */
        end_segment(lines);
    }
    lines->part = PART_REST;
}

static void read_decoded(struct request_lines *lines, unsigned char byte)
{
    if (byte == '/') {
        if (lines->has_path) {
            end_segment(lines);
        }
    } else {
        lines->segment++;
        lines->dots += byte == '.';
    }
    lines->has_path = true;
}

static void read_coded(struct request_lines *lines, unsigned char byte)
{
    int digit = digit_of(byte);

    if (digit < 0) {
        refuse(lines, NO_CODE);
        digit = 0;
    }
    lines->coded = lines->coded * 16 + (unsigned)digit;
    if (--lines->code == 0) {
        read_decoded(lines, (unsigned char)lines->coded);
    }
}

static void read_path(struct request_lines *lines, unsigned char byte)
{
    if (is_in(byte, BLANKS)) {
        if (lines->has_path) {
            end_path(lines);
        }
    } else if (lines->code > 0) {
        read_coded(lines, byte);
    } else if (byte == '%') {
        lines->code = 2;
        lines->coded = 0;
    } else if (byte == '?') {
        end_path(lines);
    } else {
        if (byte == '&' || byte == '+') {
            refuse(lines, "in a path an ampersand is written %26, and a plus sign %2B");
        }
        read_decoded(lines, byte);
    }
}

static void read_method(struct request_lines *lines, unsigned char byte)
{
    if (lines->part == PART_BEGIN) {
        lines->begun++;
        lines->part = PART_METHOD;
        lines->has_path = lines->is_deep = false;
        lines->code = 0;
        lines->segment = lines->dots = 0;
    }
    if (byte == ' ') {
        lines->part = PART_PATH;
    } else if (byte >= 'a' && byte <= 'z') {
        refuse(lines, "a method is written in capitals");
    }
}

/* ---- the headers ---- */

static bool is_named(const struct request_lines *lines, const char *name)
{
    return lines->name_bytes == strlen(name) && memcmp(lines->name, name, lines->name_bytes) == 0;
}

static void end_name(struct request_lines *lines)
{
    lines->part = PART_VALUE;
    if (lines->name_bytes == 0) {
        refuse(lines, "a header has no name");
    } else if (is_named(lines, "transfer-encoding")) {
        refuse(lines, "a question has no body");
    } else if (is_named(lines, "upgrade")) {
        lines->is_upgrade = true;
    }
}

static void read_name(struct request_lines *lines, unsigned char byte)
{
    if (lines->part == PART_LINE) {
        lines->part = PART_NAME;
        lines->name_bytes = 0;
    }
    if (byte == ':') {
        end_name(lines);
        return;
    }
    if (!is_letter(byte) && !is_in(byte, "0123456789!#$%&'*+-.^_`|~")) {
        refuse(lines, NO_LINE);
    }
    if (lines->name_bytes < REQUEST_NAME_MAX) { /* a longer one is none that matters */
        lines->name[lines->name_bytes++] = (char)(is_letter(byte) ? byte | 0x20 : byte);
    }
}

static void read_value(struct request_lines *lines, unsigned char byte)
{
    if (is_named(lines, "content-length") && !is_in(byte, "0" BLANKS)) {
        refuse(lines, "a question has no body");
    }
}

/* ---- both ---- */

static void end_line(struct request_lines *lines)
{
    switch (lines->part) {
    case PART_BEGIN:
        return;
    case PART_LINE:
        lines->part = lines->is_upgrade ? PART_OVER : PART_BEGIN;
        return;
    case PART_PATH:
        end_path(lines);
        break;
    case PART_NAME:
        refuse(lines, NO_LINE);
        break;
    case PART_METHOD:
    case PART_REST:
    case PART_VALUE:
    case PART_OVER:
    default:
        break;
    }
    lines->part = PART_LINE;
}

static void read_byte(struct request_lines *lines, unsigned char byte)
{
    switch (lines->part) {
    case PART_BEGIN:
    case PART_METHOD:
        read_method(lines, byte);
        break;
    case PART_PATH:
        read_path(lines, byte);
        break;
    case PART_LINE:
    case PART_NAME:
        read_name(lines, byte);
        break;
    case PART_VALUE:
        read_value(lines, byte);
        break;
    case PART_REST:
    case PART_OVER:
    default:
        break;
    }
}

size_t request_lines_read(struct request_lines *lines, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    size_t i;

    for (i = 0; i < count && lines->part != PART_OVER; i++) {
        bool is_control = (at[i] < ' ' && at[i] != '\t' && at[i] != '\r') || at[i] == 0x7f;
        bool was_cr = lines->is_after_cr;

        lines->is_after_cr = at[i] == '\r';
        if (at[i] == '\n') {
            end_line(lines);
            continue;
        }
        if (at[i] != '\r') {
            read_byte(lines, at[i]); /* first: a request may begin with it */
        }
        if (was_cr || is_control) {
            refuse(lines, "a request has no control characters but its line breaks");
        }
    }
    return i;
}
