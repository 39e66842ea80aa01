/* Finds structs by the name that stands in each of them.
 *
 * For structs of which there may be ten thousand: a table of pointers, at most three quarters full,
 * and not a byte in the structs themselves. It owns none of them. Their order is the caller's to
 * keep: a list beside the table.
 */
#ifndef BASE_NAMES_H
#define BASE_NAMES_H

#include <stddef.h>

struct names {
    void **slots; /* NULL: none */
    size_t count, capacity;
    size_t offset; /* of the name in each struct: a char array, NUL-terminated */
};

/* No memory is taken before the first name. */
void names_init(struct names *names, size_t offset);
void names_fini(struct names *names); /* the structs may be gone already */

/* Its name must not be there yet, and not change until it is removed. BATON_ENOMEM. */
int names_add(struct names *names, void *item);
/* It must be there. */
void names_remove(struct names *names, const void *item);
/* NULL: there is none of that name. */
void *names_find(const struct names *names, const char *name);

#endif
