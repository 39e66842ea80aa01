/* Names of files in a model archive: only those that mean the same on every system. Pure. */
#ifndef DETECTOR_MODEL_NAME_H
#define DETECTOR_MODEL_NAME_H

#include <baton/error.h>

#include <stdbool.h>

enum {
    NAME_BYTES_MAX = 255,
    NAME_PART_BYTES_MAX = 100,
    NAME_DEPTH_MAX = 4, /* folders and file */
};

/* Letters, digits, "._-+@ " and "/" between parts; no part begins with a dot or a space or ends
 * with one; so no "..", nothing absolute, nothing hidden. BATON_EPROTO otherwise. */
int name_check(const char *name, struct baton_error *reterr);

/* True if a name that breaks the rules leads nowhere on any system, so that a file of it may lie in
 * an archive and stay there: not absolute, without "." and ".." as parts, without backslash, colon
 * and control characters. The name of a folder may end with a slash. */
bool name_is_harmless(const char *name);

#endif
