/* Addresses of archives: the allowed ones, and the parts that may be shown. */
#ifndef DETECTOR_MODEL_ADDRESS_H
#define DETECTOR_MODEL_ADDRESS_H

#include "detector/camera/url.h"

#include <sys/socket.h>

/* Accepts http or https of one of the hosts (see fetch.h; NULL: any). Returns BATON_EINVAL or
 * BATON_EAUTH. ret->masked is for messages. */
int address_parse(struct url *ret, const char *text, const char *const *hosts,
                  struct baton_error *reterr);

/* Writes "7 https://host:443/path": a model's number, and its address without the parts that change
 * with each signature. The caller frees `ret`. */
int address_identity(char **ret, int64_t model_id, const char *text, struct baton_error *reterr);

/* True for this machine's own addresses and those of private networks, which another network cannot
 * reach: 10/8, 100.64/10, 127/8, 172.16/12, 192.168/16, ::1, fc00::/7, and what stands for them;
 * and for what is no address of the internet. */
bool address_is_private(const struct sockaddr *address);

#endif
