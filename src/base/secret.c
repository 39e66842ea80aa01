#include "base/secret.h"

#include <sys/stat.h>
#include <unistd.h>

bool secret_is_private(const struct stat *about)
{
    mode_t allowed = about->st_uid == 0 ? 0740 : 0700;

    return (about->st_mode & 0777 & ~allowed) == 0;
}

bool secret_has_own_path(const char *path)
{
    struct stat about;

    return lstat(path, &about) != 0 || !S_ISLNK(about.st_mode) || about.st_uid == 0 ||
           about.st_uid == geteuid();
}
