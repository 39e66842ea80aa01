/* What a try writes down, a line of JSON each.
 *
 *   detections   what a backend would be told: to standard output, or FOLDER/detections.jsonl
 *   objects      every object of every frame, reported or not: FOLDER/objects.jsonl
 */
#ifndef DETECTOR_PROGRAM_FINDINGS_H
#define DETECTOR_PROGRAM_FINDINGS_H

#include "detector/infer/inference.h"

struct findings; /* opaque */

/* `folder` is made if it is not there; what an earlier try wrote in it is written over. NULL:
 * standard output, and no objects. The error names the file. */
int findings_open(struct findings **ret, const char *folder, struct baton_error *reterr);

/* BATON_ENOMEM; BATON_EIO and its like name the file. */
int findings_add(struct findings *findings, const struct inference_result *result,
                 struct baton_error *reterr);

struct findings_counts {
    uint64_t frames, objects, detections;
};

struct findings_counts findings_counts(const struct findings *findings);

/* Whether all of it has been written. */
int findings_flush(struct findings *findings, struct baton_error *reterr);
void findings_free(struct findings *findings); /* NULL allowed */

#endif
