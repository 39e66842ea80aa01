/* A bucket of a pool's ledger: the first byte says which one, and whether there is something in it
 * before. What was read is written as the same bytes; what was refused has changed nothing. */
#include "work/ledger.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const char before[] = "{\"format\":1,\"items\":["
                             "[\"a\",\"processing\",\"w\",7,3,1,0,0,0,1000,1000]]}";

static void expect(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void fill(struct ledger *ledger)
{
    expect(ledger_decode(ledger, ledger_bucket_of("a"), before, strlen(before), NULL) == BATON_OK);
}

static void give_back(struct ledger *ledger, unsigned bucket, const uint8_t *data, size_t bytes)
{
    struct ledger *fresh = ledger_new();
    struct buffer again;

    expect(fresh != NULL && ledger_decode(fresh, bucket, data, bytes, NULL) == BATON_OK);
    expect(ledger_equal(ledger, fresh));
    buffer_init(&again, LEDGER_BUCKET_MAX);
    ledger_encode(fresh, bucket, &again);
    expect(!again.failed && again.bytes == bytes && memcmp(again.data, data, bytes) == 0);
    buffer_fini(&again);
    ledger_free(fresh);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct ledger *ledger = ledger_new(), *same = ledger_new();
    unsigned bucket = ledger_bucket_of("a");

    if (!ledger || !same || bytes == 0) {
        ledger_free(ledger);
        ledger_free(same);
        return 0;
    }
    if (data[0] & 1) {
        fill(ledger);
        fill(same);
    }
    if (data[0] & 2) {
        bucket = data[0] >> 2;
    }
    if (ledger_decode(ledger, bucket, data + 1, bytes - 1, NULL) != BATON_OK) {
        expect(ledger_equal(ledger, same));
    } else if (bucket == ledger_bucket_of("a") || !(data[0] & 1)) {
        give_back(ledger, bucket, data + 1, bytes - 1);
    }
    ledger_free(ledger);
    ledger_free(same);
    return 0;
}
