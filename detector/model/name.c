#include "detector/model/name.h"

#include "base/error.h"

#include <string.h>

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("._-+@ ", c) != NULL);
}

static int check_part(const char *part, size_t bytes, struct baton_error *reterr)
{
    if (bytes == 0) {
        return error_set(reterr, BATON_EPROTO,
                         "it is absolute or has an empty part; use names such as models/car.onnx");
    }
    if (bytes > NAME_PART_BYTES_MAX) {
        return error_set(reterr, BATON_EPROTO, "a part of %zu bytes; at most %d are allowed", bytes,
                         NAME_PART_BYTES_MAX);
    }
    if (part[0] == '.' || part[0] == ' ' || part[bytes - 1] == '.' || part[bytes - 1] == ' ') {
        return error_set(reterr, BATON_EPROTO,
                         "a part begins or ends with a dot or a space; "
                         "use names such as models/car.onnx");
    }
    for (size_t i = 0; i < bytes; i++) {
        if (!is_plain(part[i])) {
            return error_set(
                reterr, BATON_EPROTO,
                "byte 0x%02x is not allowed; letters, digits, \"._-+@ \" and \"/\" are",
                (unsigned)(unsigned char)part[i]);
        }
    }
    return 0;
}

static bool leads_elsewhere(const char *part, size_t bytes)
{
    return bytes == 0 || (bytes <= 2 && strncmp(part, "..", bytes) == 0);
}

bool name_is_harmless(const char *name)
{
    for (const char *at = name; *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20 || *at == 0x7f || *at == '\\' || *at == ':') {
            return false;
        }
    }
    for (;;) {
        size_t part = strcspn(name, "/");
        if (leads_elsewhere(name, part)) {
            return false;
        }
        if (name[part] == '\0') {
            return true;
        }
        name += part + 1;
    }
}

int name_check(const char *name, struct baton_error *reterr)
{
    size_t bytes = strlen(name);
    int parts = 0;

    if (bytes > NAME_BYTES_MAX) {
        return error_set(reterr, BATON_EPROTO, "%zu bytes; at most %d are allowed", bytes,
                         NAME_BYTES_MAX);
    }
    for (;;) {
        size_t part = strcspn(name, "/");
        int rc = check_part(name, part, reterr);
        if (rc != 0) {
            return rc;
        }
        if (++parts > NAME_DEPTH_MAX) {
            return error_set(reterr, BATON_EPROTO, "more than %d parts", NAME_DEPTH_MAX);
        }
        if (name[part] == '\0') {
            return 0;
        }
        name += part + 1;
    }
}
