/* The results of a try; and their boxes for a worker's pictures.
 *
 *   detections   a line of JSON for each: on standard output, or in FOLDER/detections.jsonl
 *   objects      one for every object of every frame, reported or not: in FOLDER/objects.jsonl
 *   pictures     frames with their objects drawn in: FOLDER/seen.html
 *
 * A picture is a JPEG below rectangles and texts of SVG, which a browser draws; docs/detector.md
 * says how an object's box looks. */
#ifndef DETECTOR_PROGRAM_FINDINGS_H
#define DETECTOR_PROGRAM_FINDINGS_H

#include "detector/infer/inference.h"

#include <stdio.h>

enum {
    FINDINGS_EVEN = 16,      /* pictures at even distances, */
    FINDINGS_REPORTED = 50,  /* and those of the first frames with detections */
    FINDINGS_WIDTH_MAX = 960 /* of a picture; wider frames are scaled down */
};

struct findings {
    FILE *detections, *objects, *page; /* the last two are NULL without a folder */
    int even, reported;                /* pictures so far */
    struct {
        uint64_t frames, objects, detections;
    } counts;
};

/* Opens the files at once, so that a wrong path is an error before the work. `folder` is made if it
 * is missing; files of an earlier try are overwritten. NULL: standard output alone. Errors name the
 * file. */
int findings_open(struct findings *ret, const char *folder, struct baton_error *reterr);

/* `position` is the part of the clip that is over, 0 to 1, or below 0 if it is unknown: then there
 * are no pictures at even distances but the first. */
int findings_add(struct findings *findings, const struct inference_result *result, double position,
                 struct baton_error *reterr);

/* Returns the number of boxes of the objects that are in the frame. */
size_t findings_boxes(struct image_box ret[IMAGE_BOXES_MAX], const struct inference_result *result);

/* Closes the files. Returns 0 if all of them have been written. */
int findings_close(struct findings *findings, struct baton_error *reterr);

#endif
