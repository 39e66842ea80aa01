#include "api/sized.h"

#include "base/error.h"

#include <stdbool.h>
#include <string.h>

enum { SIZE_MAX_BYTES = 4096 }; /* more is no size, but memory that was not set */

static bool is_zero(const char *from, const char *to)
{
    while (from < to && *from == 0) {
        from++;
    }
    return from == to;
}

int sized_copy(void *ret, size_t bytes, const void *given, const char *type,
               struct baton_error *reterr)
{
    const char *from = given;
    size_t size = 0;

    memset(ret, 0, bytes);
    if (!given) {
        return BATON_OK;
    }
    memcpy(&size, given, sizeof(size));
    if (size < sizeof(size) || size % sizeof(size) != 0 || size > SIZE_MAX_BYTES) {
        return error_set(reterr, BATON_EINVAL,
                         "%s: its size is %zu; set the field `size` to sizeof(%s)", type, size,
                         type);
    }
    if (size > bytes && !is_zero(from + bytes, from + size)) {
        return error_set(reterr, BATON_EINVAL,
                         "%s: a field is set that this library does not know: it is older than "
                         "the <baton.h> of the program",
                         type);
    }
    memcpy(ret, given, size < bytes ? size : bytes);
    return BATON_OK;
}
