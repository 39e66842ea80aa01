/* The digests of a model's files, kept beside them: what the disk has damaged is found.
 *
 *   <64 hex digits> <name>\n …
 */
#ifndef DETECTOR_MODEL_SUMS_H
#define DETECTOR_MODEL_SUMS_H

#include "base/buffer.h"
#include "detector/model/digest.h"
#include "detector/model/pipeline.h"

/* No archive has such a name: see name.h. */
#define SUMS_FILE ".sums"

enum { SUMS_BYTES_MAX = 16 << 10 }; /* of pipeline.json and PIPELINE_MODELS_MAX files */

/* Adds a file. `sums` is a buffer of at most SUMS_BYTES_MAX. */
void sums_add(struct buffer *sums, const char *name, const char digest[DIGEST_BYTES]);

/* Whether pipeline.json and what it names are, byte for byte, what the folder's SUMS_FILE says.
 * BATON_ECORRUPT; BATON_ENOMEM. Reads all of them. */
int sums_check(int folder_fd, const struct pipeline *pipeline);

#endif
