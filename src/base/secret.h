/* Files of secrets: keys, tokens. */
#ifndef BASE_SECRET_H
#define BASE_SECRET_H

#include <stdbool.h>

struct stat;

/* Whether only its owner may read or change the file. The group may read root's file: so a service
 * with a user of its own gets a secret, by hand or as a credential of systemd. */
bool secret_is_private(const struct stat *about);

/* Whether the path is not another user's symbolic link, which that user could redirect; our own and
 * root's are allowed. Also for directories. */
bool secret_has_own_path(const char *path);

#endif
