/* Connections to a camera by libcurl: whose certificate is accepted, for rtsps and https. */
#ifndef DETECTOR_CAMERA_TRUST_H
#define DETECTOR_CAMERA_TRUST_H

#include "detector/camera/message.h"

#include <curl/curl.h>

/* `details` is of CURL_ERROR_SIZE, and borrowed for good. */
CURLcode trust_set_up(CURL *curl, const struct camera_config *config, char *details);
/* Why libcurl failed, with these details. BATON_EPROTO: the certificate. Else BATON_EINVAL,
 * BATON_ENOENT, BATON_ETIMEDOUT, BATON_EIO. */
int trust_failed(CURLcode code, const char *details, struct baton_error *reterr);

#endif
