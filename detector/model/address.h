/* Addresses of archives: the allowed ones, and the parts that may be shown. */
#ifndef DETECTOR_MODEL_ADDRESS_H
#define DETECTOR_MODEL_ADDRESS_H

#include "detector/camera/url.h"

#include <stdbool.h>

struct address {
    struct url url; /* url.masked is for messages */
    bool is_https;
};

/* Accepts http or https of one of the hosts (see fetch.h; NULL: any). Returns BATON_EINVAL or
 * BATON_EAUTH. */
int address_parse(struct address *ret, const char *text, const char *const *hosts,
                  struct baton_error *reterr);

/* Writes "7 https://host:443/path": a model's number, and its address without the parts that change
 * with each signature. The caller frees `ret`. */
int address_identity(char **ret, int64_t model_id, const char *text, struct baton_error *reterr);

#endif
