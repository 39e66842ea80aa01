/* Structs that a program hands over with their size, so that they can grow.
 *
 * The first field of such a struct is a size_t with the sizeof of the <baton.h> that the program
 * was compiled with. Fields are only ever added at the end, each new one at a multiple of
 * sizeof(size_t), because the padding behind the last field of an older struct has any value.
 */
#ifndef API_SIZED_H
#define API_SIZED_H

#include <baton/error.h>
#include <stddef.h>

/* Copies `given` into *ret, which has `bytes` bytes: fields that an older program does not know are
 * zero. NULL is all zero. BATON_EINVAL: the size is not set, or a field is set that is newer than
 * this library. `type` is the struct's name, for the error. */
int sized_copy(void *ret, size_t bytes, const void *given, const char *type,
               struct baton_error *reterr);

#endif
