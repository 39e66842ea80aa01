#include "options/exit_code.h"

#include <baton/error.h>

enum exit_code exit_code_of_error(int code)
{
    switch (code) {
    case BATON_OK:
        return EXIT_OK;
    case BATON_EINVAL:
        return EXIT_USAGE_WRONG;
    case BATON_EUNSAFE:
        return EXIT_UNSAFE;
    case BATON_ETIMEDOUT:
        return EXIT_TIMED_OUT;
    case BATON_EUNAVAILABLE:
    case BATON_ECLOSED:
        return EXIT_UNAVAILABLE;
    case BATON_EAUTH:
        return EXIT_DENIED;
    case BATON_EIO:
    case BATON_ECORRUPT:
    case BATON_EFULL:
        return EXIT_STORAGE;
    case BATON_ELOST:
        return EXIT_LOST;
    default:
        return EXIT_REFUSED;
    }
}

int exit_code_local_error(int code)
{
    switch (code) {
    case BATON_ENOENT:  /* a file that an option names is missing */
    case BATON_EEXIST:  /* the data directory belongs to another node */
    case BATON_ETOOBIG: /* the path of the data directory is too long */
        return BATON_EINVAL;
    case BATON_ECORRUPT: /* the data directory is damaged, … */
    case BATON_ENOTSUP:  /* … or has another format: a retry would not help */
        return BATON_EUNSAFE;
    case BATON_EBUSY: /* another process has the port or the directory */
        return BATON_EIO;
    default:
        return code;
    }
}
