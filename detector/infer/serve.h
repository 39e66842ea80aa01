/* Runs in the child: answers requests until the parent closes the connection. The first request
 * confines the process. */
#ifndef DETECTOR_INFER_SERVE_H
#define DETECTOR_INFER_SERVE_H

void serve_models(int socket);

#endif
