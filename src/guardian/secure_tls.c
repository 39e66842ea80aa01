/* Uses the TLS code of the library itself, so that both trust the same servers. */
#include "guardian/secure.h"

#include "net/tls_int.h"

#include <stdlib.h>
#include <string.h>

enum { IGNORED_MAX = 64 * 1024 };

struct secure {
    struct tls *tls;
};

struct secure_session {
    struct tls_session *session;
    struct buffer ignored; /* decrypted replies */
};

/* The process may have died of a stray write: a string without a NUL is refused. */
static bool is_text(const char *text, size_t room)
{
    return strnlen(text, room) < room;
}

static const char *file_of(const char *name)
{
    return name[0] ? name : NULL;
}

struct secure *secure_new(const struct commands_tls *how)
{
    const struct commands_tls copy = *how;
    struct secure *secure = calloc(1, sizeof(*secure));
    struct tls_client_options options = {.ca_file = file_of(copy.ca),
                                         .certificate_file = file_of(copy.certificate),
                                         .key_file = file_of(copy.key),
                                         .trusts_anybody = copy.is_unverified == 1};

    if (!secure || !is_text(copy.ca, sizeof(copy.ca)) ||
        !is_text(copy.certificate, sizeof(copy.certificate)) ||
        !is_text(copy.key, sizeof(copy.key)) ||
        tls_new_client(&secure->tls, &options, NULL) != BATON_OK) {
        free(secure);
        return NULL;
    }
    return secure;
}

struct secure_session *secure_begin(const struct secure *secure, const char *name)
{
    struct secure_session *session = calloc(1, sizeof(*session));

    if (session) {
        session->session = tls_session_new(secure->tls, true, file_of(name));
        buffer_init(&session->ignored, IGNORED_MAX);
        if (!session->session) {
            free(session);
            session = NULL;
        }
    }
    return session;
}

void secure_end(struct secure_session *session)
{
    if (session) {
        tls_session_free(session->session);
        buffer_fini(&session->ignored);
        free(session);
    }
}

bool secure_receive(struct secure_session *session, const void *data, size_t bytes,
                    struct buffer *out)
{
    const char *reason = NULL;
    int r = tls_session_receive(session->session, data, bytes, &session->ignored, out, &reason);

    buffer_clear(&session->ignored);
    return r == BATON_OK && !out->failed;
}

bool secure_is_open(const struct secure_session *session)
{
    return tls_session_is_open(session->session);
}

bool secure_send(struct secure_session *session, const void *data, size_t bytes, struct buffer *out)
{
    return tls_session_send(session->session, data, bytes, out) == BATON_OK && !out->failed;
}
