/* Frames as a camera hands them over, drawn. */
#ifndef TESTS_DETECTOR_INFER_DRAWN_FRAME_H
#define TESTS_DETECTOR_INFER_DRAWN_FRAME_H

#include "detector/camera/camera.h"
#include "integration/detector_infer/stand.h"

/* Beside the colours of stand.h: a red of which rectangles.onnx is not sure (0.4 in place of 0.9).
 */
enum { PALE_RED = COLOURS, PALETTE };

struct drawn_frame {
    struct camera_frame frame;
    uint8_t *memory; /* owned */
};

/* Grey; even sizes. */
void drawn_frame_init(struct drawn_frame *ret, int width, int height);
void drawn_frame_fini(struct drawn_frame *frame);

/* Grey again but for what is drawn, on even coordinates; `step` frames of 100 ms after the first.
 */
void drawn_frame_draw(struct drawn_frame *frame, int step, const struct drawn *drawn, int count);

#endif
