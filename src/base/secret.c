#include "base/secret.h"

#include <sys/stat.h>

bool secret_is_private(const struct stat *about)
{
    mode_t allowed = about->st_uid == 0 ? 0740 : 0700;

    return (about->st_mode & 0777 & ~allowed) == 0;
}
