#include "detector/model/digest.h"

#include "base/error.h"

#include <openssl/evp.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK_BYTES = 64 << 10 };

static void write_text(char ret[DIGEST_BYTES], const unsigned char *bytes)
{
    for (size_t i = 0; i < (DIGEST_BYTES - 1) / 2; i++) {
        (void)snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
    }
}

int digest_of(const void *bytes, size_t count, char ret[DIGEST_BYTES])
{
    unsigned char digest[EVP_MAX_MD_SIZE];

    if (EVP_Digest(bytes, count, digest, NULL, EVP_sha256(), NULL) != 1) {
        return BATON_ENOMEM;
    }
    write_text(ret, digest);
    return 0;
}

int digest_file(int fd, char ret[DIGEST_BYTES])
{
    unsigned char chunk[CHUNK_BYTES], digest[EVP_MAX_MD_SIZE];
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool is_right = context != NULL && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1;
    ssize_t got = 0;

    for (off_t at = 0; is_right && (got = pread(fd, chunk, sizeof(chunk), at)) > 0; at += got) {
        is_right = EVP_DigestUpdate(context, chunk, (size_t)got) == 1;
    }
    is_right = is_right && EVP_DigestFinal_ex(context, digest, NULL) == 1;
    EVP_MD_CTX_free(context);
    if (got < 0 || !is_right) {
        return got < 0 ? BATON_EIO : BATON_ENOMEM;
    }
    write_text(ret, digest);
    return 0;
}

bool is_digest(const char *text)
{
    return strspn(text, "0123456789abcdef") == DIGEST_BYTES - 1 && strlen(text) == DIGEST_BYTES - 1;
}
