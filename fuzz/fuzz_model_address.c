/* The address of a model, which must be told to whoever reads messages without its secrets. */
#include "detector/model/address.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_address(const char *text)
{
    static const char *const hosts[] = {".example", NULL};
    struct url address;
    char *identity = NULL;

    (void)address_parse(&address, text, hosts, NULL);
    if (address_parse(&address, text, NULL, NULL) != 0) {
        return;
    }
    assert(strchr(address.masked, '@') == NULL && strchr(address.masked, '?') == NULL);
    if (address_identity(&identity, 7, text, NULL) == 0) {
        assert(strncmp(identity, "7 http", 6) == 0 && strchr(identity, '?') == NULL);
        free(identity);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (text == NULL) {
        return 0;
    }
    memcpy(text, data, size);
    text[size] = '\0';
    read_address(text);
    free(text);
    return 0;
}
