/* The errors of Baton: one list of codes, one struct that says what went wrong with which value.
 *
 * A function that can fail returns 0 or a negative BATON_E... code. If it takes a
 * `struct baton_error *`, that may be NULL and is written on failure only. The message names the
 * wrong value and says what to do. The struct owns no memory; copy it freely.
 */
#ifndef BATON_ERROR_H
#define BATON_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

/* Marks the symbols that the shared library exports; all others are hidden. */
#define BATON_API __attribute__((visibility("default")))

/* X(symbol, number, text): numbers never change once released. */
#define BATON_ERRORS(X)                                                                            \
    X(BATON_EINVAL, -1, "invalid argument")                                                        \
    X(BATON_ENOMEM, -2, "out of memory")                                                           \
    X(BATON_EIO, -3, "input or output failed")                                                     \
    X(BATON_ETIMEDOUT, -4, "timed out")                                                            \
    X(BATON_ENOTLEADER, -5, "not the leader")                                                      \
    X(BATON_ELOST, -6, "leadership lost")                                                          \
    X(BATON_EUNAVAILABLE, -7, "provider unavailable")                                              \
    X(BATON_EPROTO, -8, "protocol violated by the peer")                                           \
    X(BATON_EAUTH, -9, "not authenticated or not allowed")                                         \
    X(BATON_EBUSY, -10, "in use or in progress")                                                   \
    X(BATON_EEXIST, -11, "exists already")                                                         \
    X(BATON_ENOENT, -12, "not found")                                                              \
    X(BATON_ENOTSUP, -13, "not supported by this provider")                                        \
    X(BATON_ECANCELED, -14, "canceled")                                                            \
    X(BATON_ETOOBIG, -15, "larger than the limit")                                                 \
    X(BATON_ECONFLICT, -16, "changed by another in the meantime")                                  \
    X(BATON_EUNSAFE, -17, "unsafe: two could lead, or nobody for good")                            \
    X(BATON_ECORRUPT, -18, "stored data is damaged")                                               \
    X(BATON_EFULL, -19, "no space left")                                                           \
    X(BATON_ECLOSED, -20, "closed")                                                                \
    X(BATON_EDEADLK, -21, "would wait for itself")

enum baton_error_code {
    BATON_OK = 0,
#define BATON_ERROR_ENUM(symbol, number, text) symbol = (number),
    BATON_ERRORS(BATON_ERROR_ENUM)
#undef BATON_ERROR_ENUM
};

enum { BATON_ERROR_MESSAGE_MAX = 512 };

/* The message says what failed, with which value, and what to do; it never contains a secret. */
struct baton_error {
    int code;                              /* one of enum baton_error_code */
    char message[BATON_ERROR_MESSAGE_MAX]; /* NUL-terminated, one line */
};

/* The short text of a code ("timed out"); static storage; "unknown error" for any other number. */
BATON_API const char *baton_strerror(int code);

#ifdef __cplusplus
}
#endif

#endif
