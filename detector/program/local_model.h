/* A model archive of this machine, in place of those that a backend names: for tries, and where the
 * archives cannot be reached. */
#ifndef DETECTOR_PROGRAM_LOCAL_MODEL_H
#define DETECTOR_PROGRAM_LOCAL_MODEL_H

#include "detector/program/models.h"

struct local_model; /* opaque; on the loop's thread */

/* Unpacks the archive into a folder of its own below TMPDIR, which blocks. The error names the
 * archive's fault. */
int local_model_new(struct local_model **ret, uv_loop_t *loop, const char *path,
                    struct baton_error *reterr);
/* Removes the folder. Call it after its tickets and the loop's last run. NULL is allowed. */
void local_model_free(struct local_model *model);

/* Answers every request with this archive. */
struct models_source local_model_source(struct local_model *model);

#endif
