#include "detector/model/digest.h"

#include "base/error.h"

#include <openssl/evp.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK_BYTES = 256 << 10 };

int digest_begin(struct digest *digest)
{
    digest->context = EVP_MD_CTX_new();
    return digest->context != NULL && EVP_DigestInit_ex(digest->context, EVP_sha256(), NULL) == 1
               ? 0
               : BATON_ENOMEM;
}

int digest_add(struct digest *digest, const void *bytes, size_t count)
{
    return EVP_DigestUpdate(digest->context, bytes, count) == 1 ? 0 : BATON_ENOMEM;
}

int digest_end(struct digest *digest, char ret[DIGEST_BYTES])
{
    unsigned char bytes[EVP_MAX_MD_SIZE];

    if (EVP_DigestFinal_ex(digest->context, bytes, NULL) != 1) {
        return BATON_ENOMEM;
    }
    for (size_t i = 0; i < (DIGEST_BYTES - 1) / 2; i++) {
        (void)snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
    }
    return 0;
}

void digest_fini(struct digest *digest)
{
    EVP_MD_CTX_free(digest->context);
    digest->context = NULL;
}

int digest_add_file(struct digest *digest, int fd)
{
    unsigned char *chunk = malloc(CHUNK_BYTES);
    int rc = chunk != NULL ? 0 : BATON_ENOMEM;
    ssize_t got = 1;

    for (off_t at = 0; rc == 0 && got > 0; at += got) {
        got = pread(fd, chunk, CHUNK_BYTES, at);
        rc = got < 0 ? BATON_EIO : digest_add(digest, chunk, (size_t)got);
    }
    free(chunk);
    return rc;
}

int digest_of(const void *bytes, size_t count, char ret[DIGEST_BYTES])
{
    struct digest digest = {0};
    int rc = digest_begin(&digest);

    rc = rc ? rc : digest_add(&digest, bytes, count);
    rc = rc ? rc : digest_end(&digest, ret);
    digest_fini(&digest);
    return rc;
}

int digest_file(int fd, char ret[DIGEST_BYTES])
{
    struct digest digest = {0};
    int rc = digest_begin(&digest);

    rc = rc ? rc : digest_add_file(&digest, fd);
    rc = rc ? rc : digest_end(&digest, ret);
    digest_fini(&digest);
    return rc;
}

bool is_digest(const char *text)
{
    return strspn(text, "0123456789abcdef") == DIGEST_BYTES - 1 && strlen(text) == DIGEST_BYTES - 1;
}
