/* A certificate's frame, as any stranger may send it: what decodes must encode to the same frame.
 */
#include "base/invariant.h"
#include "guardian/certificate.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct certificate certificate;
    uint8_t frame[CERTIFICATE_BYTES];

    if (certificate_decode(&certificate, data, bytes)) {
        certificate_encode(frame, &certificate);
        INVARIANT(bytes == sizeof(frame));
        INVARIANT(memcmp(frame, data, sizeof(frame)) == 0);
    }
    return 0;
}
