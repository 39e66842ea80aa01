/* SHA-256 of bytes, as text. Any thread. */
#ifndef DETECTOR_MODEL_DIGEST_H
#define DETECTOR_MODEL_DIGEST_H

#include <stdbool.h>
#include <stddef.h>

enum { DIGEST_BYTES = 65 }; /* with its NUL */

/* Return 0 or BATON_ENOMEM. */
int digest_of(const void *bytes, size_t count, char ret[DIGEST_BYTES]);
/* Of all of a file, from its start. Also returns BATON_EIO. May block on the disk. */
int digest_file(int fd, char ret[DIGEST_BYTES]);

/* True if the text has the form of a digest. */
bool is_digest(const char *text);

#endif
