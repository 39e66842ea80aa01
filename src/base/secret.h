/* Files of secrets: keys, tokens. */
#ifndef BASE_SECRET_H
#define BASE_SECRET_H

#include <stdbool.h>

struct stat;

/* Nobody but its owner may read or change it. Root's file may be read by its group, too: that is
 * how a service with a user of its own is given a secret, by hand or as a credential of systemd. */
bool secret_is_private(const struct stat *about);

/* The path is no symbolic link that another user could turn elsewhere: one of ours, or root's, may
 * be. Also for directories. */
bool secret_has_own_path(const char *path);

#endif
