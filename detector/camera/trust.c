#include "detector/camera/trust.h"

#include "base/error.h"

#include <unistd.h>

/* Where a machine has no certificates, no camera is trusted: libcurl would fail before the camera
 * shows its own. */
static CURLcode leave_out_missing(CURL *curl)
{
    char *file = NULL;
    CURLcode rc = curl_easy_getinfo(curl, CURLINFO_CAINFO, &file);

    return rc != CURLE_OK || file == NULL || access(file, F_OK) == 0
               ? rc
               : curl_easy_setopt(curl, CURLOPT_CAINFO, NULL);
}

CURLcode trust_set_up(CURL *curl, const struct camera_config *config, char *details)
{
    CURLcode rc = curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, details);

    rc = rc ? rc : curl_easy_setopt(curl, CURLOPT_PROXY, "");
    rc = rc ? rc : curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    rc = rc ? rc : curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)config->options.open_ms);
    if (config->options.trusts_any) {
        rc = rc ? rc : curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
        return rc ? rc : curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (config->options.ca_file[0] != '\0') {
        rc = rc ? rc : curl_easy_setopt(curl, CURLOPT_CAPATH, NULL); /* it alone */
        return rc ? rc : curl_easy_setopt(curl, CURLOPT_CAINFO, config->options.ca_file);
    }
    return rc ? rc : leave_out_missing(curl);
}

int trust_failed(CURLcode code, const char *details, struct baton_error *reterr)
{
    switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
        return error_set(reterr, BATON_EPROTO,
                         "the camera's certificate is refused (%.100s); --camera-ca FILE names the "
                         "certificates to trust, --camera-tls-verify no trusts any",
                         details);
    case CURLE_SSL_CACERT_BADFILE:
        return error_set(reterr, BATON_EINVAL,
                         "--camera-ca: it cannot be read; it must be readable for everybody if "
                         "the worker is root");
    case CURLE_COULDNT_RESOLVE_HOST:
        return error_set(reterr, BATON_ENOENT, "the host's name is not known");
    case CURLE_OPERATION_TIMEDOUT:
        return error_set(reterr, BATON_ETIMEDOUT, "%s", curl_easy_strerror(code));
    default:
        return error_set(reterr, BATON_EIO, "%s", curl_easy_strerror(code));
    }
}
