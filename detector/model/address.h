/* Addresses of archives: which are asked, and what of them may be shown. */
#ifndef DETECTOR_MODEL_ADDRESS_H
#define DETECTOR_MODEL_ADDRESS_H

#include "detector/camera/url.h"

#include <stdbool.h>

struct address {
    struct url url; /* url.masked is for messages */
    bool is_https;
};

/* http or https, of one of the hosts (see fetch.h; NULL: any). BATON_EINVAL, BATON_EAUTH. */
int address_parse(struct address *ret, const char *text, const char *const *hosts,
                  struct baton_error *reterr);

/* "7 https://host:443/path": a model's number and its address without what changes with each
 * signature. `ret` is the caller's to free. */
int address_identity(char **ret, int64_t model_id, const char *text, struct baton_error *reterr);

#endif
