#include "detector/model/name.h"

#include "base/error.h"

#include <string.h>

static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+@ ";

static bool is_edge(char c)
{
    return c == '.' || c == ' ';
}

static bool is_plain_part(const char *part, size_t bytes)
{
    return bytes > 0 && bytes <= NAME_PART_BYTES_MAX && strspn(part, plain) == bytes &&
           !is_edge(part[0]) && !is_edge(part[bytes - 1]);
}

int name_check(const char *name, struct baton_error *reterr)
{
    bool is_right = strlen(name) <= NAME_BYTES_MAX;
    const char *part = name;
    int parts = 0;

    while (is_right) {
        size_t bytes = strcspn(part, "/");

        is_right = is_plain_part(part, bytes) && ++parts <= NAME_DEPTH_MAX;
        if (is_right && part[bytes] == '\0') {
            return 0;
        }
        part += bytes + 1;
    }
    return error_set(
        reterr, BATON_EPROTO,
        "must be a name such as models/car.onnx: at most %d parts joined with \"/\" "
        "and %d bytes, each part 1 to %d letters, digits and \"._-+@ \", without a dot "
        "or a space at either end",
        NAME_DEPTH_MAX, NAME_BYTES_MAX, NAME_PART_BYTES_MAX);
}

bool name_is_harmless(const char *name)
{
    bool is_harmless = true;

    for (const char *at = name; *at != '\0'; at++) {
        is_harmless =
            is_harmless && (unsigned char)*at >= 0x20 && *at != 0x7f && *at != '\\' && *at != ':';
    }
    do {
        size_t bytes = strcspn(name, "/");

        is_harmless = is_harmless && bytes > 0 && (bytes > 2 || strncmp(name, "..", bytes) != 0);
        name += bytes + (name[bytes] == '/');
    } while (is_harmless && *name != '\0');
    return is_harmless;
}
