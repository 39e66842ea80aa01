/* The child's end: answers requests until nobody asks any more. The fences go up with the first. */
#ifndef DETECTOR_INFER_SERVE_H
#define DETECTOR_INFER_SERVE_H

void serve_models(int socket);

#endif
