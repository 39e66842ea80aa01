/* The results of a try.
 *
 *   detections    a line of JSON for each: on standard output, or in FOLDER/detections.jsonl
 *   objects       one for every object of every frame, reported or not: in FOLDER/objects.jsonl
 *   sheet         frames at even distances with their objects, as one SVG
 *   frames with detections, whole: FOLDER/frame-NNNNNN.svg
 */
#ifndef DETECTOR_PROGRAM_FINDINGS_H
#define DETECTOR_PROGRAM_FINDINGS_H

#include "detector/infer/inference.h"

enum {
    FINDINGS_TILES = 16, /* of the sheet */
    FINDINGS_COLUMNS = 4,
    FINDINGS_TILE_WIDTH = 320,
    FINDINGS_SHOTS_MAX = 50, /* frames with detections that are drawn */
};

struct findings; /* opaque */

/* Opens the files at once, so that a wrong path is an error before the work. `folder` is made if it
 * is missing; files of an earlier try are overwritten. NULL: standard output, and no objects.
 * `sheet` NULL: FOLDER/sheet.svg, or none. Errors name the file, here and below. */
int findings_open(struct findings **ret, const char *folder, const char *sheet,
                  struct baton_error *reterr);

int findings_add(struct findings *findings, const struct inference_result *result,
                 struct baton_error *reterr);

struct findings_counts {
    uint64_t frames, objects, detections;
    uint64_t unsure; /* of the objects: below the model's confidence */
    uint64_t shots;  /* frames with detections, drawn or not */
};

struct findings_counts findings_counts(const struct findings *findings);

/* Writes the sheet. Returns 0 if all of it has been written. */
int findings_finish(struct findings *findings, struct baton_error *reterr);
void findings_free(struct findings *findings); /* removes an empty sheet; NULL allowed */

#endif
