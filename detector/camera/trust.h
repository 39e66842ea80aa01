/* Whose certificate is accepted, for rtsps and https, by libcurl. */
#ifndef DETECTOR_CAMERA_TRUST_H
#define DETECTOR_CAMERA_TRUST_H

#include "detector/camera/message.h"

#include <curl/curl.h>

CURLcode trust_set_up(CURL *curl, const struct camera_config *config);
/* Why libcurl failed; `details` is its buffer for errors. BATON_EAUTH: the certificate. Else
 * BATON_EINVAL, BATON_ENOENT, BATON_ETIMEDOUT, BATON_EIO. */
int trust_failed(CURLcode code, const char *details, struct baton_error *reterr);

#endif
