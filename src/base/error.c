#include "base/error.h"

#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *baton_strerror(int code)
{
    switch (code) {
    case BATON_OK:
        return "success";
#define TEXT_OF(symbol, number, text)                                                              \
    case (symbol):                                                                                 \
        return (text);
        BATON_ERRORS(TEXT_OF)
#undef TEXT_OF
    default:
        return "unknown error";
    }
}

/* A character that the limit cut in two would make a message that JSON cannot hold. */
static void make_printable(struct baton_error *error)
{
    char raw[BATON_ERROR_MESSAGE_MAX];

    memcpy(raw, error->message, sizeof(raw));
    (void)text_clean(error->message, sizeof(error->message), raw, strlen(raw));
}

int error_set(struct baton_error *reterr, int code, const char *format, ...)
{
    if (reterr) {
        va_list arguments;
        reterr->code = code;
        va_start(arguments, format);
        (void)vsnprintf(reterr->message, sizeof(reterr->message), format, arguments);
        va_end(arguments);
        make_printable(reterr);
    }
    return code;
}

int error_wrap(struct baton_error *reterr, const char *format, ...)
{
    char inner[BATON_ERROR_MESSAGE_MAX];
    va_list arguments;
    size_t used;

    if (!reterr) {
        return BATON_EINVAL;
    }
    memcpy(inner, reterr->message, sizeof(inner));
    va_start(arguments, format);
    (void)vsnprintf(reterr->message, sizeof(reterr->message), format, arguments);
    va_end(arguments);
    used = strlen(reterr->message);
    (void)snprintf(reterr->message + used, sizeof(reterr->message) - used, ": %s", inner);
    make_printable(reterr);
    return reterr->code;
}

int error_from_errno(int errnum)
{
    switch (errnum) {
    case EINVAL:
        return BATON_EINVAL;
    case ENOMEM:
        return BATON_ENOMEM;
    case ETIMEDOUT:
        return BATON_ETIMEDOUT;
    case EACCES:
    case EPERM:
        return BATON_EAUTH;
    case EBUSY:
    case EADDRINUSE:
        return BATON_EBUSY;
    case EEXIST:
        return BATON_EEXIST;
    case ENOENT:
        return BATON_ENOENT;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return BATON_EFULL;
    case ECONNREFUSED:
    case ENETUNREACH:
    case EHOSTUNREACH:
        return BATON_EUNAVAILABLE;
    case ECANCELED:
        return BATON_ECANCELED;
    default:
        return BATON_EIO;
    }
}
