#include "cmocka_all.h"
#include "net/digest.h"

#include <openssl/crypto.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool is_short;

static void *take(size_t bytes, const char *file, int line)
{
    return is_short ? NULL : malloc(bytes);
}

static void *take_again(void *old, size_t bytes, const char *file, int line)
{
    return is_short ? NULL : realloc(old, bytes);
}

static void give_back(void *memory, const char *file, int line)
{
    free(memory);
}

static void without_memory_the_digest_is_the_same(void **state)
{
    static const uint8_t abc[DIGEST_BYTES] =
        "\xba\x78\x16\xbf\x8f\x01\xcf\xea\x41\x41\x40\xde\x5d\xae\x22\x23"
        "\xb0\x03\x61\xa3\x96\x17\x7a\x9c\xb4\x10\xff\x61\xf2\x00\x15\xad";
    uint8_t digest[DIGEST_BYTES] = {0};

    is_short = true;
    digest_sha256(digest, "abc", 3);
    is_short = false;
    assert_memory_equal(digest, abc, sizeof(abc));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_the_digest_is_the_same),
    };

    if (CRYPTO_set_mem_functions(take, take_again, give_back) != 1) { /* before its first use */
        return EXIT_FAILURE;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
