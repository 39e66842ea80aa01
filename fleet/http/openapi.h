/* openapi.json as it was built in: the description of this API. */
#ifndef FLEET_HTTP_OPENAPI_H
#define FLEET_HTTP_OPENAPI_H

#include <stddef.h>

extern const unsigned char openapi_text[];
extern const size_t openapi_bytes;

#endif
