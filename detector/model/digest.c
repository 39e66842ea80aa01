#include "detector/model/digest.h"

#include "base/error.h"

#include <openssl/evp.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK_BYTES = 256 << 10 };

static int end(EVP_MD_CTX *context, char ret[DIGEST_BYTES])
{
    unsigned char bytes[EVP_MAX_MD_SIZE];

    if (EVP_DigestFinal_ex(context, bytes, NULL) != 1) {
        return BATON_ENOMEM;
    }
    for (size_t i = 0; i < (DIGEST_BYTES - 1) / 2; i++) {
        (void)snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
    }
    return 0;
}

/* The bytes, or with none those of the file. */
static int digest(const void *bytes, size_t count, int fd, char ret[DIGEST_BYTES])
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    unsigned char *chunk = malloc(CHUNK_BYTES);
    ssize_t got = bytes == NULL;
    int rc = context != NULL && chunk != NULL &&
                     EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1 &&
                     (bytes == NULL || EVP_DigestUpdate(context, bytes, count) == 1)
                 ? 0
                 : BATON_ENOMEM;

    for (off_t at = 0; rc == 0 && got > 0; at += got) {
        got = pread(fd, chunk, CHUNK_BYTES, at);
        rc = got < 0                                              ? BATON_EIO
             : EVP_DigestUpdate(context, chunk, (size_t)got) == 1 ? 0
                                                                  : BATON_ENOMEM;
    }
    rc = rc ? rc : end(context, ret);
    free(chunk);
    EVP_MD_CTX_free(context);
    return rc;
}

int digest_of(const void *bytes, size_t count, char ret[DIGEST_BYTES])
{
    return digest(bytes, count, -1, ret);
}

int digest_file(int fd, char ret[DIGEST_BYTES])
{
    return digest(NULL, 0, fd, ret);
}

bool is_digest(const char *text)
{
    return strspn(text, "0123456789abcdef") == DIGEST_BYTES - 1 && strlen(text) == DIGEST_BYTES - 1;
}
