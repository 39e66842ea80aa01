#include "detector/camera/tls.h"

#include "base/error.h"
#include "detector/camera/url.h"

#include <dlfcn.h>
#include <libavformat/avformat.h>
#include <libavutil/opt.h>
#include <string.h>
#include <unistd.h>

#define VISIBLE __attribute__((visibility("default")))

/* Of gnutls.h, which need not be there to build. */
enum {
    GNUTLS_FAILED = -348, /* GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR */
    GNUTLS_PEM = 1,
    STATUS_REVOKED = 1 << 5,
    STATUS_SIGNER_NOT_FOUND = 1 << 6,
    STATUS_NOT_ACTIVATED = 1 << 9,
    STATUS_EXPIRED = 1 << 10,
    STATUS_UNEXPECTED_OWNER = 1 << 14,
};

/* One camera a process. */
static struct {
    const char *ca_file; /* NULL: the system's */
    char host[URL_HOST_MAX];
    bool is_wanted;
    bool was_checked;
    const char *fault;
} trust;

static const char *const system_files[] = {
    "/etc/ssl/certs/ca-certificates.crt", /* Debian */
    "/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora */
    "/etc/ssl/cert.pem",                  /* Alpine */
};

const char *tls_fault(void)
{
    return trust.fault;
}

static const char *fault_of(unsigned status)
{
    if ((status & STATUS_SIGNER_NOT_FOUND) != 0) {
        return "signed by nobody who is trusted";
    }
    if ((status & STATUS_UNEXPECTED_OWNER) != 0) {
        return "of another host";
    }
    if ((status & (STATUS_EXPIRED | STATUS_NOT_ACTIVATED)) != 0) {
        return (status & STATUS_EXPIRED) != 0 ? "expired" : "not valid yet";
    }
    return (status & STATUS_REVOKED) != 0 ? "revoked" : "not valid";
}

static bool is_trusted(void *session)
{
    int (*verify)(void *, const char *, unsigned *);
    unsigned status = 0;

    *(void **)&verify = dlsym(RTLD_DEFAULT, "gnutls_certificate_verify_peers3");
    trust.was_checked = true;
    if (verify == NULL || verify(session, trust.host, &status) < 0) {
        trust.fault = "missing, or none that can be read";
    } else if (status != 0) {
        trust.fault = fault_of(status);
    }
    return trust.fault == NULL;
}

/* FFmpeg finds these two in place of the library's. */
VISIBLE int gnutls_handshake(void *session);
VISIBLE int gnutls_certificate_set_x509_system_trust(void *credentials);

int gnutls_handshake(void *session)
{
    int (*real)(void *);
    int rc;

    *(void **)&real = dlsym(RTLD_NEXT, "gnutls_handshake");
    rc = real != NULL ? real(session) : GNUTLS_FAILED;
    return rc == 0 && trust.is_wanted && !is_trusted(session) ? GNUTLS_FAILED : rc;
}

int gnutls_certificate_set_x509_system_trust(void *credentials)
{
    int (*real)(void *);
    int (*from_file)(void *, const char *, int);

    if (trust.ca_file != NULL) {
        *(void **)&from_file = dlsym(RTLD_DEFAULT, "gnutls_certificate_set_x509_trust_file");
        return from_file != NULL ? from_file(credentials, trust.ca_file, GNUTLS_PEM)
                                 : GNUTLS_FAILED;
    }
    *(void **)&real = dlsym(RTLD_NEXT, "gnutls_certificate_set_x509_system_trust");
    return real != NULL ? real(credentials) : GNUTLS_FAILED;
}

static bool knows_option(const char *name)
{
    const AVInputFormat *rtsp = av_find_input_format("rtsp");

    return rtsp != NULL && rtsp->priv_class != NULL &&
           av_opt_find((void *)&rtsp->priv_class, name, NULL, 0, AV_OPT_SEARCH_FAKE_OBJ) != NULL;
}

static const char *find_ca_file(void)
{
    if (trust.ca_file != NULL) {
        return trust.ca_file;
    }
    for (size_t i = 0; i < sizeof(system_files) / sizeof(system_files[0]); i++) {
        if (access(system_files[i], R_OK) == 0) {
            return system_files[i];
        }
    }
    return NULL;
}

static int tell_ffmpeg(AVDictionary **options, struct baton_error *reterr)
{
    const char *ca_file = find_ca_file();

    if (av_dict_set(options, "tls_verify", trust.is_wanted ? "1" : "0", 0) < 0 ||
        (ca_file != NULL && trust.is_wanted && knows_option("ca_file") &&
         av_dict_set(options, "ca_file", ca_file, 0) < 0)) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for options");
    }
    trust.was_checked = true;
    return 0;
}

static bool is_with_gnutls(void)
{
    return strstr(avformat_configuration(), "--enable-gnutls") != NULL;
}

int tls_prepare(const struct camera_config *config, AVDictionary **options,
                struct baton_error *reterr)
{
    struct url url;
    int rc = url_parse(&url, config->url, reterr);

    if (rc != 0 || strcmp(url.scheme, "rtsps") != 0) {
        return rc;
    }
    trust.is_wanted = !config->trusts_any;
    trust.ca_file = config->ca_file[0] != '\0' ? config->ca_file : NULL;
    (void)snprintf(trust.host, sizeof(trust.host), "%s", url.host);
    if (trust.ca_file != NULL && access(trust.ca_file, R_OK) != 0) {
        return error_set(reterr, BATON_EINVAL,
                         "--camera-ca: it cannot be read; it must be readable for everybody if "
                         "the worker is root");
    }
    if (knows_option("tls_verify")) {
        return tell_ffmpeg(options, reterr);
    }
    if (trust.is_wanted && !is_with_gnutls()) {
        return error_set(reterr, BATON_ENOTSUP,
                         "open: this FFmpeg cannot check the certificate of rtsps; FFmpeg 8 or "
                         "one with GnuTLS can, and --camera-tls-verify no does without");
    }
    return 0;
}

int tls_check(const struct camera_config *config, struct baton_error *reterr)
{
    if (strncmp(config->url, "rtsps:", 6) != 0 || !trust.is_wanted || trust.was_checked) {
        return 0;
    }
    return error_set(reterr, BATON_ENOTSUP,
                     "open: nobody looked at the camera's certificate; its FFmpeg is another one "
                     "than was thought");
}
