#include "options/yaml_text.h"

#include <jansson.h>
#include <stdbool.h>

static const char *fault_of_line(const char *line, size_t bytes)
{
    json_t *judged = json_stringn(line, bytes); /* NULL unless it is UTF-8 */
    bool is_utf8 = judged != NULL;

    json_decref(judged);
    if (!is_utf8) {
        return "not UTF-8; save the file as such";
    }
    if (bytes > 0 && line[0] == '%') {
        return "YAML directives (%) are not supported";
    }
    for (size_t i = 0; i < bytes; i++) {
        unsigned char byte = (unsigned char)line[i];
        if (byte == '\t') {
            return "has a tab; indent with spaces";
        }
        if (byte < ' ' || byte == 0x7f) {
            return "has a control character";
        }
    }
    return NULL;
}

const char *yaml_text_fault(const char *text, size_t bytes, int *ret_line)
{
    const char *fault = NULL;
    int number = 1;

    for (size_t at = 0; at < bytes && !fault; number++) {
        size_t length = 0;
        while (at + length < bytes && text[at + length] != '\n' && text[at + length] != '\r') {
            length++;
        }
        fault = fault_of_line(text + at, length);
        at += length;
        at += at < bytes && text[at] == '\r';
        at += at < bytes && text[at] == '\n';
    }
    *ret_line = fault ? number - 1 : 1;
    return fault;
}
