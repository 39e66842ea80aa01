/* The output of a try, one line of JSON for each finding.
 *
 *   detections   messages for a backend: on standard output, or in FOLDER/detections.jsonl
 *   objects      every object of every frame, reported or not: in FOLDER/objects.jsonl
 */
#ifndef DETECTOR_PROGRAM_FINDINGS_H
#define DETECTOR_PROGRAM_FINDINGS_H

#include "detector/infer/inference.h"

struct findings; /* opaque */

/* `folder` is made if it is missing; files of an earlier try are overwritten. NULL: standard
 * output, and no objects. The error names the file. */
int findings_open(struct findings **ret, const char *folder, struct baton_error *reterr);

/* Returns BATON_ENOMEM, or BATON_EIO and similar codes, which name the file. */
int findings_add(struct findings *findings, const struct inference_result *result,
                 struct baton_error *reterr);

struct findings_counts {
    uint64_t frames, objects, detections;
};

struct findings_counts findings_counts(const struct findings *findings);

/* Returns 0 if all of it has been written. */
int findings_flush(struct findings *findings, struct baton_error *reterr);
void findings_free(struct findings *findings); /* NULL allowed */

#endif
