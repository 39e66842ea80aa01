/* The digests of a model's files, kept beside them, to find files that the disk has damaged.
 *
 *   <64 hex digits> <name>
 …
 */
#ifndef DETECTOR_MODEL_SUMS_H
#define DETECTOR_MODEL_SUMS_H

#include "base/buffer.h"
#include "detector/model/digest.h"
#include "detector/model/pipeline.h"

/* An archive cannot have this name: see name.h. */
#define SUMS_FILE ".sums"

enum { SUMS_BYTES_MAX = 16 << 10 }; /* of pipeline.json and PIPELINE_MODELS_MAX files */

/* Adds a file. `sums` is a buffer of at most SUMS_BYTES_MAX. */
void sums_add(struct buffer *sums, const char *name, const char digest[DIGEST_BYTES]);

/* Reads pipeline.json and all files that it names, and compares them with the folder's SUMS_FILE.
 * Returns BATON_ECORRUPT if they differ, or BATON_ENOMEM. */
int sums_check(int folder_fd, const struct pipeline *pipeline);

#endif
