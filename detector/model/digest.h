/* SHA-256 of bytes, as text. Any thread. */
#ifndef DETECTOR_MODEL_DIGEST_H
#define DETECTOR_MODEL_DIGEST_H

#include <stdbool.h>
#include <stddef.h>

enum { DIGEST_BYTES = 65 }; /* with its NUL */

/* In parts, as they arrive. These return BATON_ENOMEM or 0. */
struct digest {
    void *context; /* NULL: not begun */
};

int digest_begin(struct digest *digest); /* of a struct of zeroes */
int digest_add(struct digest *digest, const void *bytes, size_t count);
int digest_end(struct digest *digest, char ret[DIGEST_BYTES]);
void digest_fini(struct digest *digest); /* allowed at any time */

/* All of a file, from its start. Also returns BATON_EIO. May block on the disk. */
int digest_add_file(struct digest *digest, int fd);

/* The same at once. */
int digest_of(const void *bytes, size_t count, char ret[DIGEST_BYTES]);
int digest_file(int fd, char ret[DIGEST_BYTES]);

/* True if the text has the form of a digest. */
bool is_digest(const char *text);

#endif
